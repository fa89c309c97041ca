let attentionViews = 0;

// What the tokenizer writes in place of some characters.
const ESCAPED = { "&apos;": "'", "&quot;": '"', "&#124;": "|", "&#91;": "[", "&#93;": "]", "&lt;": "<", "&gt;": ">", "&amp;": "&" };

// Return a token as a reader writes it: without the marks of BPE and of the tokenizer.
function plainToken(token) {
  const unmarked = token.replace(/^@(\S)@$/, "$1").replace(/@@$/, "");
  return unmarked.replace(/&(?:apos|quot|#124|#91|#93|lt|gt|amp);/g, found => ESCAPED[found]);
}

// Show an attention map in an element of a page.
// A target token that is pointed at or focused shows where it looks; a source token shows which target
// tokens look at it. Until then, the first target token is shown.
// Tokens are shown as text until the view is asked for those of the model. A click keeps a token shown. Arrow keys move from token to token, and Escape releases the token.
function showAttention(view, map) {
  const NAMED = 4; // number of tokens that the line below the tokens names
  const ASKED = "Point at a token, or go to it by Tab and arrow keys.";
  const mean = map.target.map((_, n) =>
    map.source.map((_, m) => map.weights.reduce((sum, layer) => sum + layer[n][m], 0) / map.weights.length));
  let weights = mean;
  let kept = null;

  const make = (name, attributes = {}, ...inner) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inner);
    return element;
  };
  const raw = make("input", { type: "checkbox" });
  raw.addEventListener("change", label);
  const output = make("output", { "aria-live": "polite" });
  const table = make("table");
  const [source, target] = [row("source", "Source"), row("target", "Translation")];
  view.classList.add("attention");
  view.setAttribute("role", "group");
  view.replaceChildren(choice(), source.box, target.box, output, make("details", {},
    make("summary", {}, "All weights as a table"),
    make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "All weights" }, table)));
  label();

  function label() {
    for (const [side, { tokens }] of Object.entries({ source, target })) {
      tokens.forEach((token, i) => {
        token.textContent = raw.checked ? map[side][i] : plainToken(map[side][i]);
        token.classList.toggle("part", map[side][i].endsWith("@@"));
      });
    }
    choose(weights);
  }

  function choice() {
    attentionViews += 1;
    const name = `layer-${attentionViews}`;
    const radio = (text, value, found) => {
      const input = make("input", { type: "radio", name, value });
      input.checked = value === "mean";
      input.addEventListener("change", () => choose(found));
      return make("label", {}, input, ` ${text}`);
    };
    return make("fieldset", {}, make("legend", {}, "Decoder layer"), radio("mean of all", "mean", mean),
      ...map.weights.map((layer, i) => radio(String(i + 1), String(i), layer)), make("label", {}, raw, " the model's tokens"));
  }

  function row(side, name) {
    const tokens = map[side].map(() => make("button", { type: "button", class: "token" }));
    tokens.forEach((token, i) => {
      token.addEventListener("pointerenter", () => show(token));
      token.addEventListener("pointerleave", () => show(kept));
      token.addEventListener("focus", () => show(token));
      token.addEventListener("blur", () => show(kept));
      token.addEventListener("click", () => {
        kept = kept === token ? null : token;
        show(kept ?? token);
      });
      token.addEventListener("keydown", event => move(event, token, tokens, i));
    });
    const head = make("li", { class: "side", "aria-hidden": "true" }, name);
    const items = tokens.map(token => make("li", {}, token));
    return { tokens, box: make("ul", { class: `tokens ${side}`, "aria-label": name }, head, ...items) };
  }

  function move(event, token, tokens, i) {
    const other = tokens === source.tokens ? target.tokens : source.tokens;
    const across = other[Math.min(i, other.length - 1)];
    const next = {
      ArrowLeft: tokens[i - 1], ArrowRight: tokens[i + 1], ArrowUp: across, ArrowDown: across,
    }[event.key];
    if (next) {
      event.preventDefault();
      next.focus();
    }
    if (event.key === "Escape") {
      kept = null;
      token.blur();
    }
  }

  function choose(found) {
    weights = found;
    show(kept);
    table.replaceChildren(
      make("tr", {}, make("td"), ...source.tokens.map(token => make("th", { scope: "col" }, token.textContent))),
      ...target.tokens.map((token, n) => make("tr", {}, make("th", { scope: "row" }, token.textContent), ...weights[n].map(cell))));
  }

  function cell(weight) {
    const element = make("td", {}, weight.toFixed(2));
    element.style.setProperty("--weight", weight.toFixed(4));
    return element;
  }

  function show(token) {
    for (const each of [...source.tokens, ...target.tokens]) {
      each.style.removeProperty("--weight");
      each.setAttribute("aria-pressed", String(each === (token ?? kept)));
    }
    const shown = token ?? target.tokens[0];
    output.textContent = [shown && sentence(shown), token ? "" : ASKED].filter(Boolean).join(". ");
  }

  function sentence(token) {
    const isTarget = target.tokens.includes(token);
    const place = (isTarget ? target : source).tokens.indexOf(token);
    const others = (isTarget ? source : target).tokens;
    const share = others.map((_, k) => (isTarget ? weights[place][k] : weights[k][place]));
    others.forEach((other, k) => other.style.setProperty("--weight", share[k].toFixed(4)));
    const largest = share.map((_, k) => k).sort((a, b) => share[b] - share[a]);
    const named = largest.slice(0, NAMED).map(k => `${others[k].textContent} ${share[k].toFixed(2)}`);
    return `${token.textContent} ${isTarget ? "looks at" : "is looked at by"}: ${named.join(", ")}`;
  }
}
