const form = document.getElementById("form");
const field = id => document.getElementById(id);
const model = () => field("model").selectedOptions[0].dataset;
const bytes = text => new TextEncoder().encode(text).length;
const MOST_BYTES = Number(form.dataset.bytes);
const MOST_OPENED = 3; // number of translations up to which attention is shown at once
// The beginning of a text up to the end of its last sentence, or else up to its last blank.
const BEGINNING = /^.*[.!?…。！？]["'”’»)\]]*\s|^.*\s/su;

form.addEventListener("submit", event => {
  event.preventDefault();
  work(translate);
});
field("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});
field("file").addEventListener("change", () => {
  if (field("file").files.length) work(translateFile);
});
field("example").addEventListener("click", () => {
  field("text").value = model().example;
  form.requestSubmit();
});
field("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(translatedLines().join("\n"));
  say("Copied");
});
field("model").addEventListener("change", chooseModel);
chooseModel();

function chooseModel() {
  field("text").lang = model().source;
  field("attention").disabled = model().attends === "false";
  field("example").hidden = !model().example;
}

// Run one function at a time, and show what goes wrong.
async function work(run) {
  const button = form.querySelector("button");
  if (button.disabled) return;
  button.disabled = true;
  field("translations").replaceChildren();
  field("copy").hidden = true;
  try {
    await run();
  } catch (error) {
    say(error.message, true);
  } finally {
    button.disabled = false;
    // Browsers offer the clipboard to pages of this machine and of https only.
    field("copy").hidden = !navigator.clipboard || !field("translations").childElementCount;
  }
}

async function ask(path, options) {
  const response = await fetch(path, { method: "POST", ...options }).catch(error => {
    throw new Error(`No answer from the server: ${error.message}`);
  });
  const answer = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function translate() {
  const { source, target } = model();
  const beam = field("beam").valueAsNumber;
  const attention = field("attention").checked && !field("attention").disabled;
  const texts = field("text").value.split(/\r?\n/).flatMap((line, n) => cut(line).map(text => ({ text, line: n })));
  let done = 0;
  for (const portion of portions(texts, beam)) {
    say(`Translating ${done + 1} of ${texts.length} …`);
    const asked = { texts: portion.map(one => one.text), source, target, beam, attention };
    const answer = await ask("translate", { headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked) });
    const items = answer.translations.map((one, n) => item(one, portion[n].line, texts.length <= MOST_OPENED));
    field("translations").append(...items);
    done += portion.length;
  }
  say(done === 1 ? "1 translation" : `${done} translations`);
}

// Return a line in parts that the server takes. A part without a blank stays too long, and is refused.
function cut(line) {
  const parts = [];
  let rest = line;
  while (bytes(rest) > MOST_BYTES) {
    const part = rest.slice(0, MOST_BYTES / 3).match(BEGINNING)?.[0]; // a character has at most 3 bytes
    if (!part) break;
    parts.push(part);
    rest = rest.slice(part.length);
  }
  return [...parts, rest].map(part => part.trim()).filter(Boolean);
}

// Divide texts into requests within the server's limits. A text has at most as many tokens as bytes.
function portions(texts, beam) {
  const most = Math.min(MOST_BYTES, Number(form.dataset.work) / beam);
  const found = [];
  let left = 0;
  for (const text of texts) {
    left -= bytes(text.text);
    if (left < 0 || found.at(-1).length >= Number(form.dataset.texts)) {
      found.push([]);
      left = most - bytes(text.text);
    }
    found.at(-1).push(text);
  }
  return found;
}

async function translateFile() {
  const { source, target } = model();
  const file = field("file").files[0];
  say(`Translating ${file.name} …`);
  const body = new FormData();
  for (const [name, value] of Object.entries({ file, source, target })) body.append(name, value);
  try {
    const answer = await ask("translate_file", { headers: { "X-Requested-With": "page" }, body });
    const link = document.createElement("a");
    link.href = `download_file/${answer.translatedFileUrl.split("/").at(-1)}`;
    link.download = file.name.replace(/(?=\.[^.]*$)/, `.${target}`);
    link.textContent = link.download;
    say("Translated: ");
    field("status").append(link);
  } finally {
    field("file").value = "";
  }
}

function item(translation, line, isOpen) {
  const li = document.createElement("li");
  li.dataset.line = line;
  const add = (name, text, lang) => {
    const paragraph = document.createElement("p");
    paragraph.className = name;
    paragraph.textContent = text;
    if (lang) paragraph.lang = lang;
    li.append(paragraph);
  };
  add("source", translation.source, model().source);
  add("text", translation.text, model().target);
  add("score", `score ${translation.score.toFixed(3)}`);
  if (translation.attention) {
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Attention";
    const view = document.createElement("div");
    details.append(summary, view);
    details.addEventListener("toggle", () => showAttention(view, translation.attention), { once: true });
    details.open = isOpen;
    li.append(details);
  }
  return li;
}

// Return the translations, with the parts of a line joined, and empty lines where the text has them.
function translatedLines() {
  const lines = [];
  for (const li of field("translations").children) {
    const text = li.querySelector(".text").textContent;
    const before = lines[li.dataset.line];
    lines[li.dataset.line] = before ? `${before} ${text}` : text;
  }
  return lines;
}

function say(text, isError = false) {
  field("status").textContent = text;
  field("status").classList.toggle("error", isError);
}
document.documentElement.dataset.ready = "yes";
