"use strict";
// Tables that are sorted, searched and folded, and charts that show chosen series.

// Shows only these series of a chart, each in a colour of its own.
function showSeries(chart, names) {
  for (const element of chart.querySelectorAll("[data-series]")) {
    const place = names.indexOf(element.dataset.series);
    element.toggleAttribute("hidden", place < 0);
    if (place >= 0) element.setAttribute("class", `${element.classList.contains("line") ? "line " : ""}s${place}`);
  }
}

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
  document.querySelectorAll("table.sorted").forEach(sortable);
  document.querySelectorAll("input[data-rows]").forEach(searched);
  document.querySelectorAll("input[data-fold]").forEach((box) => {
    const table = document.getElementById(box.dataset.of);
    box.addEventListener("change", () => table.classList.toggle(`fold-${box.dataset.fold}`, !box.checked));
  });
  // a link to a claim opens the group that it is in, and printing opens all
  const open = () => document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details")?.setAttribute("open", "");
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll("details.verdict").forEach((one) => one.setAttribute("open", "")));
});
