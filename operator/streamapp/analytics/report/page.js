"use strict";
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const specifications = read("specifications");
  const palettes = read("palettes");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const themes = ["system", "light", "dark"];
  const choose = document.getElementById("choose");
  const button = document.getElementById("theme");
  const span = document.getElementById("span");
  const inputs = { since: document.getElementById("since"), until: document.getElementById("until") };
  const shown = new Map();
  let times = { since: 0, until: 1 };
  let dragged = null;
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
      for (const param of spec.params || []) if (param.name in times) param.value = times[param.name];
      if (shown.has(element)) shown.get(element).finalize();
      try {
        const result = await vegaEmbed(element, spec, {
          mode: "vega-lite", actions: false, renderer: "svg", ast: true, config: config(element.clientWidth),
          tooltip: { theme: isDark() ? "dark" : "light" },
        });
        shown.set(element, result);
        if (JSON.stringify(spec).includes('"name":"span"')) {
          result.view.addSignalListener("span", (_, value) => { dragged = { view: result.view, range: Object.values(value)[0] }; });
          result.view.addEventListener("dblclick", () => choose_times({}));
        }
      } catch (error) {
        element.textContent = "This chart could not be drawn: " + error.message;
      }
    }
    page.dataset.drawn = "yes";
  }

  // A link names a part by its id, or an application by its name, and can name a time: #shop/orders?since=…&until=…
  function target() {
    const [name, query] = location.hash.slice(1).split("?");
    const id = decodeURIComponent(name) || "fleet";
    const pages = [...document.querySelectorAll(".page")];
    const page = pages.find((one) => one.id === id) || pages.filter((one) => one.dataset.name === id).pop() || document.getElementById("fleet");
    const given = Object.fromEntries([...new URLSearchParams(query || "")].map(([key, value]) => [key, Date.parse(value)]));
    return { page, given };
  }

  const text = (at) => new Date(at).toISOString().slice(0, 19);

  // Where nothing is chosen the whole record is shown.
  function take(page, given) {
    if (!page.dataset.from) return;
    const from = Number(page.dataset.from), to = Number(page.dataset.to);
    const since = Number.isFinite(given.since) ? given.since : from;
    const until = Number.isFinite(given.until) ? given.until : to;
    times = since < until ? { since, until } : { since: from, until: to };
    for (const name of Object.keys(inputs)) inputs[name].value = text(times[name]);
    for (const row of page.querySelectorAll("tr[data-t]"))
      row.hidden = Number(row.dataset.t) > times.until || Number(row.dataset.end) < times.since;
  }

  function choose_times(given) {
    const { page } = target();
    if (!page.dataset.from) return;
    take(page, given);
    const isWhole = times.since === Number(page.dataset.from) && times.until === Number(page.dataset.to);
    const query = isWhole ? "" : "?since=" + text(times.since) + "Z&until=" + text(times.until) + "Z";
    history.replaceState(null, "", "#" + encodeURI(page.dataset.name) + query);
    for (const [element, result] of shown)
      if (page.contains(element)) result.view.signal("since", times.since).signal("until", times.until).runAsync();
  }

  function open() {
    const { page, given } = target();
    const place = page.id;
    for (const other of document.querySelectorAll(".page")) other.hidden = other.id !== place;
    choose.value = place;
    span.hidden = !page.dataset.from;
    take(page, given);
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

  document.addEventListener("pointerup", () => {
    const last = dragged;
    dragged = null;
    if (!last || !last.range || last.range.length !== 2) return;
    const [since, until] = last.range.map(Number).sort((one, other) => one - other);
    last.view.signal("span_x", []);
    if (until - since >= 1000) choose_times({ since, until });
  });
  for (const [name, input] of Object.entries(inputs))
    input.addEventListener("change", () => choose_times({ ...times, [name]: Date.parse(input.value + "Z") }));
  for (const last of span.querySelectorAll("[data-last]"))
    last.addEventListener("click", () => {
      const until = Number(target().page.dataset.to);
      choose_times(last.dataset.last ? { since: until - 1000 * Number(last.dataset.last), until } : {});
    });
  span.addEventListener("submit", (event) => event.preventDefault());
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
