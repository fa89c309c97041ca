// A token that is pointed at or focused shows where attention goes from it, or comes to it from.
// A click keeps it; arrows go from token to token, Escape lets go.
const SHOWN = 4;
for (const view of document.querySelectorAll(".attention")) {
  const { weights } = JSON.parse(view.querySelector("script").textContent);
  const mean = weights[0].map((row, j) =>
    row.map((_, i) => weights.reduce((sum, layer) => sum + layer[j][i], 0) / weights.length),
  );
  const sides = ["source", "target"].map((side) => [
    ...view.querySelectorAll(`.${side} .token`),
  ]);
  const [source, target] = sides;
  const output = view.querySelector("output");
  const asked = output.textContent;
  let kept = null;

  const layer = () => {
    const chosen = view.querySelector("input:checked").value;
    return chosen === "mean" ? mean : weights[Number(chosen)];
  };
  const clear = () => {
    for (const token of [...source, ...target]) {
      token.style.removeProperty("--weight");
      token.setAttribute("aria-pressed", String(token === kept));
    }
  };
  const show = (token) => {
    clear();
    if (!token) {
      output.textContent = asked;
      return;
    }
    const isTarget = target.includes(token);
    const place = (isTarget ? target : source).indexOf(token);
    const others = isTarget ? source : target;
    const share = others.map((_, k) => (isTarget ? layer()[place][k] : layer()[k][place]));
    others.forEach((other, k) => other.style.setProperty("--weight", share[k].toFixed(4)));
    token.setAttribute("aria-pressed", "true");
    const largest = share.map((_, k) => k).sort((a, b) => share[b] - share[a]);
    const told = largest.slice(0, SHOWN).map((k) => `${others[k].textContent} ${share[k].toFixed(2)}`);
    const verb = isTarget ? "looks at" : "is looked at by";
    output.textContent = `${token.textContent} ${verb}: ${told.join(", ")}`;
  };

  for (const tokens of sides) {
    tokens.forEach((token, place) => {
      token.addEventListener("pointerenter", () => show(token));
      token.addEventListener("pointerleave", () => show(kept));
      token.addEventListener("focus", () => show(token));
      token.addEventListener("blur", () => show(kept));
      token.addEventListener("click", () => {
        kept = kept === token ? null : token;
        show(kept ?? token);
      });
      token.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        const other = tokens === source ? target : source;
        const next = step
          ? tokens[place + step]
          : event.key === "ArrowDown" || event.key === "ArrowUp"
            ? other[Math.min(place, other.length - 1)]
            : null;
        if (next) {
          event.preventDefault();
          next.focus();
        }
        if (event.key === "Escape") {
          kept = null;
          token.blur();
        }
      });
    });
  }
  for (const choice of view.querySelectorAll("input")) {
    choice.addEventListener("change", () => show(kept));
  }
}
