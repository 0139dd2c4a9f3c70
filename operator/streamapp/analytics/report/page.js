"use strict";
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const specifications = read("specifications");
  const palettes = read("palettes");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const themes = ["system", "light", "dark"];
  const choose = document.getElementById("choose");
  const button = document.getElementById("theme");
  const shown = new Map();
  let wanted = "system";
  try { wanted = localStorage.getItem("theme") || "system"; } catch (error) { /* Nothing is kept for a file. */ }
  if (!themes.includes(wanted)) wanted = "system";

  const isDark = () => (wanted === "system" ? system.matches : wanted === "dark");

  function config(width) {
    const dark = isDark();
    const ink = dark ? "#e8ecef" : "#1d2329";
    const soft = dark ? "#a3adb6" : "#5b6570";
    const grid = dark ? "#2c343a" : "#e8ebed";
    const first = palettes[dark ? "dark" : "light"];
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      range: { category: first },
      view: { stroke: null },
      mark: { color: first[0] },
      bar: { color: first[0] }, line: { color: first[0] }, point: { color: first[0] },
      axis: { labelColor: soft, titleColor: soft, domainColor: soft, tickColor: soft, gridColor: grid, titleFontWeight: 500, labelFontSize: 11.5, titleFontSize: 12 },
      legend: { labelColor: ink, titleColor: soft, orient: "bottom", direction: "horizontal", columns: Math.max(1, Math.min(8, Math.floor(width / 200))), labelFontSize: 12, titleFontSize: 12, labelLimit: 220, symbolLimit: 12 },
    };
  }

  async function draw(place) {
    const page = document.getElementById(place);
    const series = read("data-" + place);
    for (const element of page.querySelectorAll("[data-chart]")) {
      const name = element.dataset.chart;
      const one = specifications[name];
      const unit = series.units[one.data] || "";
      const spec = JSON.parse(JSON.stringify(one.spec).replaceAll("{unit}", unit).replaceAll("{ink}", isDark() ? "#e8ecef" : "#1d2329"));
      spec.datasets = series.data;
      if (shown.has(element)) shown.get(element).finalize();
      try {
        const result = await vegaEmbed(element, spec, {
          mode: "vega-lite", actions: false, renderer: "svg", ast: true, config: config(element.clientWidth),
          tooltip: { theme: isDark() ? "dark" : "light" },
        });
        shown.set(element, result);
      } catch (error) {
        element.textContent = "This chart could not be drawn: " + error.message;
      }
    }
    page.dataset.drawn = "yes";
  }

  function open() {
    const id = decodeURIComponent(location.hash.slice(1)) || "fleet";
    const page = document.getElementById(id);
    const place = page && page.classList.contains("page") ? id : "fleet";
    for (const other of document.querySelectorAll(".page")) other.hidden = other.id !== place;
    choose.value = place;
    if (document.getElementById("data-" + place)) draw(place);
    window.scrollTo(0, 0);
  }

  function dress() {
    if (wanted === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = wanted;
    button.textContent = "Theme: " + wanted;
  }

  function sort(table, heading) {
    const at = [...heading.parentNode.children].indexOf(heading);
    const up = heading.getAttribute("aria-sort") === "descending";
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => { const cell = row.children[at]; return "sort" in cell.dataset ? (cell.dataset.sort === "" ? -Infinity : Number(cell.dataset.sort)) : cell.textContent.trim(); };
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
    table.tBodies[0].append(...rows);
  }

  button.addEventListener("click", () => {
    wanted = themes[(themes.indexOf(wanted) + 1) % themes.length];
    try { localStorage.setItem("theme", wanted); } catch (error) { /* It holds for this page. */ }
    dress();
    open();
  });
  system.addEventListener("change", () => { if (wanted === "system") open(); });
  choose.addEventListener("change", () => { location.hash = choose.value; });
  window.addEventListener("hashchange", open);
  for (const table of document.querySelectorAll(".sortable"))
    for (const heading of table.tHead.rows[0].cells) heading.addEventListener("click", () => sort(table, heading));
  dress();
  open();
})();
