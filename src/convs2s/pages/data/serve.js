const form = document.getElementById("form");
const field = id => document.getElementById(id);

form.addEventListener("submit", event => {
  event.preventDefault();
  translate();
});
field("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

async function translate() {
  const button = form.querySelector("button");
  const texts = field("text").value.split(/\r?\n/).filter(text => text.trim());
  if (!texts.length || button.disabled) return;
  button.disabled = true;
  say("Translating …");
  try {
    const asked = { texts, beam: field("beam").valueAsNumber, attention: field("attention").checked };
    const response = await fetch("translate", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked),
    });
    const answer = await response.json().catch(() => ({ error: response.statusText }));
    if (response.ok) show(answer.translations);
    else say(answer.error, true);
  } catch (error) {
    say(`No answer from the server: ${error.message}`, true);
  } finally {
    button.disabled = false;
  }
}

function show(translations) {
  field("translations").replaceChildren(...translations.map(item));
  say(translations.length === 1 ? "1 translation" : `${translations.length} translations`);
}

function item(translation) {
  const li = document.createElement("li");
  const add = (name, text, lang) => {
    const paragraph = document.createElement("p");
    paragraph.className = name;
    paragraph.textContent = text;
    if (lang) paragraph.lang = lang;
    li.append(paragraph);
  };
  add("source", translation.source, document.body.dataset.source);
  add("text", translation.text, document.body.dataset.target);
  add("score", `score ${translation.score.toFixed(3)}`);
  if (translation.attention) {
    const view = document.createElement("div");
    view.setAttribute("aria-label", "Attention");
    showAttention(view, translation.attention);
    li.append(view);
  }
  return li;
}

function say(text, isError = false) {
  field("status").textContent = text;
  field("status").classList.toggle("error", isError);
}
document.documentElement.dataset.ready = "yes";
