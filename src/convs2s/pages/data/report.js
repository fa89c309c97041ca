// Make tables sortable and plots interactive. Without this program the page still has all values.
for (const table of document.querySelectorAll("table.sortable")) {
  const caption = table.caption.textContent.trim();
  const filters = table.tBodies[0].rows.length >= 15;
  window.$(table).DataTable({
    paging: false,
    autoWidth: false,
    order: [],
    layout: { topStart: filters ? "search" : null, topEnd: null, bottomStart: filters ? "info" : null, bottomEnd: null },
    language: { search: "Filter rows", info: "_TOTAL_ rows", infoFiltered: "of _MAX_" },
    initComplete() {
      const field = this.api().table().container().querySelector("input");
      field?.setAttribute("aria-label", `Filter rows of ${caption}`);
    },
  });
}
// A plot is drawn as wide as the element that contains it. In a closed part of the page that width is
// not known, so the plot is drawn when the part is opened.
async function draw(chart) {
  const [spec, drawing] = [chart.querySelector("script"), chart.querySelector(".drawing")];
  chart.dataset.drawn = "yes";
  // "ast": expressions are interpreted, because the page's policy forbids to compile code.
  const options = { ast: true, renderer: "svg", actions: false };
  await window.vegaEmbed(drawing, JSON.parse(spec.textContent), options);
}
document.addEventListener("toggle", (event) => {
  for (const chart of event.target.querySelectorAll(".chart:not([data-drawn])")) draw(chart);
}, true);
window.addEventListener("beforeprint", () => {
  for (const table of document.querySelectorAll("details.long")) table.open = true;
});
for (const chart of document.querySelectorAll(".chart")) {
  if (!chart.closest("details:not([open])")) await draw(chart);
}
document.documentElement.dataset.ready = "yes";
