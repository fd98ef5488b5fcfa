"use strict";
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const charts = read("calibrant-charts");
  const views = {};

  async function draw() {
    for (const [name, spec] of Object.entries(charts)) {
      const place = document.getElementById("chart-" + name);
      if (!place) continue;
      const made = await vegaEmbed(place, spec, { mode: "vega-lite", renderer: "svg", actions: false });
      views[name] = made.view;
    }
    if (views.groups && views["group-curves"]) {
      // a click on a group in the forest chooses it in the picker
      views.groups.addEventListener("click", (event, item) => {
        const group = item && item.datum && item.datum.group;
        if (group !== undefined) views["group-curves"].signal("group", group).runAsync();
      });
    }
    fold();
    document.documentElement.dataset.drawn = String(Object.keys(views).length);
  }

  // Folded parts arrive open, so that their charts can take their width and a page without scripts shows all.
  function fold() {
    const parts = Array.from(document.querySelectorAll("details.more"));
    const aim = document.getElementById(location.hash.slice(1));
    parts.forEach((part) => { part.open = Boolean(aim && (aim.contains(part) || part.contains(aim))); });
    window.addEventListener("hashchange", () => {
      const target = document.getElementById(location.hash.slice(1));
      const part = target && (target.querySelector("details.more") || target.closest("details.more"));
      if (!part) return;
      part.open = true;
      target.scrollIntoView();
    });
    let open = [];
    window.addEventListener("beforeprint", () => {
      open = parts.map((part) => part.open);
      parts.forEach((part) => { part.open = true; });
    });
    window.addEventListener("afterprint", () => parts.forEach((part, k) => { part.open = open[k]; }));
  }

  function compare(a, b) {
    const x = Number(a), y = Number(b);
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    if (a === "" || b === "") return (a === "") - (b === "");
    return a < b ? -1 : a > b ? 1 : 0;
  }

  function sortable(table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      head.firstElementChild.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[column].dataset.key;
        const rows = Array.from(table.tBodies[0].rows);
        rows.sort((a, b) => (up ? 1 : -1) * compare(key(a), key(b)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelector("details.raw").addEventListener("toggle", () => {
    document.getElementById("raw").textContent = JSON.stringify(read("calibrant-evaluation"), null, 2);
  });
  draw();
})();
