"use strict";
// Charts that are drawn when they come into view, and tables that are sorted, searched and folded.

const theme = () => {
  const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [ink, soft, line] = [of("--ink"), of("--soft"), of("--line")];
  return {
    aria: false, background: "transparent", font: "system-ui, sans-serif",
    view: { stroke: line }, rule: { color: soft },
    axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: soft, tickColor: soft },
    legend: { labelColor: ink, titleColor: ink }, title: { color: ink },
  };
};

function draw(element, spec) {
  spec = spec || JSON.parse(element.querySelector("script").textContent);
  element.spec = element.spec || spec;
  return vegaEmbed(element, { ...spec, config: theme() }, { actions: false, renderer: "svg" })
    .then(() => { element.querySelector("svg").setAttribute("aria-hidden", "true"); element.dataset.drawn = "yes"; }, (error) => console.error(error));
}

// Keeps the first of what a chart is made from, and shows the rows of these series alone.
function drawOnly(element, names) {
  element.spec = element.spec || JSON.parse(element.querySelector("script").textContent);
  const values = element.spec.data.values.filter((row) => names.includes(row.series));
  return draw(element, { ...element.spec, data: { values } });
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
}, { rootMargin: "300px" });

const number = (text) => {
  const found = /^\s*[-+−]?[\d.]+(e[-+]?\d+)?[KM]?/i.exec(text.replace("−", "-"));
  if (!found) return null;
  const scale = { K: 1e3, M: 1e6 }[found[0].slice(-1)] || 1;
  return parseFloat(found[0]) * scale;
};

function sortBy(table, place, header) {
  const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  const rows = [...table.tBodies[0].rows].map((row) => [row.cells[place].dataset.value ?? row.cells[place].textContent.trim(), row]);
  const sign = direction === "ascending" ? 1 : -1;
  rows.sort(([one], [other]) => {
    const [a, b] = [number(one), number(other)];
    if (a === null || b === null) return a === b ? sign * one.localeCompare(other) : a === null ? 1 : -1;
    return sign * (a - b);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function sortable(table) {
  [...table.tHead.rows[table.tHead.rows.length - 1].cells].forEach((header, place) => {
    if (!header.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortBy(table, place, header));
    header.append(button);
  });
}

function searched(input) {
  const rows = [...document.querySelectorAll(input.dataset.rows)];
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".chart:not(.waits)").forEach((chart) => seen.observe(chart));
  document.querySelectorAll("table.sorted").forEach(sortable);
  document.querySelectorAll("input[data-rows]").forEach(searched);
  document.querySelectorAll("input[data-fold]").forEach((box) => {
    const table = document.getElementById(box.dataset.of);
    box.addEventListener("change", () => table.classList.toggle(`fold-${box.dataset.fold}`, !box.checked));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    document.querySelectorAll(".chart[data-drawn]").forEach((chart) => draw(chart, chart.spec));
  });
});
