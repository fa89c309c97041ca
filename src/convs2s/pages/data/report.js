// Tables sort and filter, plots answer to the pointer. The page is whole without either.
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
// A plot needs its place's width, so that one in a closed part is drawn when that opens.
async function draw(chart) {
  const [spec, drawing] = [chart.querySelector("script"), chart.querySelector(".drawing")];
  chart.dataset.drawn = "yes";
  // "ast": expressions are interpreted, as the page's policy forbids to compile them.
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
