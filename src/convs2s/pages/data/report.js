// Tables sort and filter, plots answer to the pointer. The page is whole without either.
for (const table of document.querySelectorAll("table.sortable")) {
  const caption = table.caption.textContent.trim();
  window.$(table).DataTable({
    paging: false,
    autoWidth: false,
    order: [],
    layout: { topStart: "search", topEnd: null, bottomStart: "info", bottomEnd: null },
    language: { search: "Filter rows", info: "_TOTAL_ rows", infoFiltered: "of _MAX_" },
    initComplete() {
      const field = this.api().table().container().querySelector("input");
      field.setAttribute("aria-label", `Filter rows of ${caption}`);
    },
  });
}
for (const chart of document.querySelectorAll(".chart")) {
  const [spec, drawing] = [chart.querySelector("script"), chart.querySelector(".drawing")];
  // "ast": expressions are interpreted, as the page's policy forbids to compile them.
  const options = { ast: true, renderer: "svg", actions: false };
  await window.vegaEmbed(drawing, JSON.parse(spec.textContent), options);
}
document.documentElement.dataset.ready = "yes";
