"use strict";
// Shows where each layer looks: a token of either side is chosen by pointer, focus or arrow keys, and
// the other side's tokens are colored by its weights.
function showAttention(root, map) {
  const STRONGEST = 60; // per cent of the color: the text on it stays readable, light and dark
  const NAMED = 3; // tokens that the line below names
  const make = (name, text, attributes = {}) => {
    const one = document.createElement(name);
    if (text !== null) one.textContent = text;
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    return one;
  };
  const mean = map.target.map((_, n) => map.source.map((_, m) =>
    map.weights.reduce((sum, layer) => sum + layer[n][m], 0) / map.weights.length));
  const layers = [["mean of all layers", mean], ...map.weights.map((one, i) => [`layer ${i + 1}`, one])];
  let weights = mean;
  let chosen = null;

  const select = make("select", null);
  layers.forEach(([name], i) => select.append(make("option", name, { value: i })));
  const label = make("label", "Attention of ");
  label.append(select);
  const said = make("p", "Choose a token: what it looks at, or is looked at by, is colored.", { class: "said", "aria-live": "polite" });
  const table = make("table", null);
  const rows = { target: row("target", "translation"), source: row("source", "source") };
  const details = make("details", null);
  const scrolls = make("div", null, { class: "scrolls", tabindex: "0", role: "region", "aria-label": "All weights" });
  scrolls.append(table);
  details.append(make("summary", "All weights as a table"), scrolls);
  root.classList.add("attention");
  root.replaceChildren(label, ...rows.target.parts, ...rows.source.parts, said, details);
  select.addEventListener("change", () => {
    weights = layers[select.value][1];
    draw();
  });
  draw();

  function row(side, name) {
    const box = make("div", null, { class: "tokens", role: "toolbar", "aria-label": `tokens of the ${name}` });
    const buttons = map[side].map((token, i) => {
      const one = make("button", token, { type: "button", "aria-pressed": "false", tabindex: i ? "-1" : "0" });
      for (const event of ["pointerenter", "focus", "click"]) one.addEventListener(event, () => choose(side, i));
      one.addEventListener("keydown", event => move(event, buttons, i));
      return one;
    });
    box.append(...buttons);
    return { buttons, parts: [make("p", `Tokens of the ${name}`, { class: "side" }), box] };
  }

  function move(event, buttons, i) {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    event.preventDefault();
    buttons.forEach((one, j) => { one.tabIndex = j === to ? 0 : -1; });
    buttons[to].focus();
  }

  function choose(side, i) {
    chosen = { side, i };
    draw();
  }

  function draw() {
    for (const side of ["target", "source"]) {
      rows[side].buttons.forEach((one, i) => {
        const isChosen = chosen !== null && chosen.side === side && chosen.i === i;
        one.setAttribute("aria-pressed", String(isChosen));
        color(one, chosen === null || chosen.side === side ? 0 : share(side, i));
      });
    }
    if (chosen !== null) said.textContent = sentence();
    table.replaceChildren(heading(), ...map.target.map(line));
  }

  function share(side, i) {
    return side === "source" ? weights[chosen.i][i] : weights[i][chosen.i];
  }

  function sentence() {
    const other = chosen.side === "target" ? "source" : "target";
    const verb = chosen.side === "target" ? "looks at" : "is looked at by";
    const found = map[other].map((token, i) => [share(other, i), token]).sort((a, b) => b[0] - a[0]);
    const named = found.slice(0, NAMED).map(([weight, token]) => `${token} (${weight.toFixed(2)})`);
    return `${map[chosen.side][chosen.i]} ${verb} ${named.join(", ")}`;
  }

  function heading() {
    const tr = make("tr", null);
    tr.append(make("td", null), ...map.source.map(token => make("th", token, { scope: "col" })));
    return tr;
  }

  function line(token, n) {
    const tr = make("tr", null);
    tr.append(make("th", token, { scope: "row" }));
    for (const weight of weights[n]) {
      const cell = make("td", weight.toFixed(2));
      color(cell, weight);
      tr.append(cell);
    }
    return tr;
  }

  function color(element, weight) {
    element.style.setProperty("--share", `${Math.round(STRONGEST * weight)}%`);
  }
}
