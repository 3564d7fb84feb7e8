"use strict";
// Tables that are sorted, searched and folded, and charts that show chosen series.

// Shows only these series of a chart, each in a colour of its own, with axes that fit them.
function showSeries(chart, names) {
  for (const element of chart.querySelectorAll("[data-series]")) {
    const place = names.indexOf(element.dataset.series);
    element.toggleAttribute("hidden", place < 0);
    if (place >= 0) element.setAttribute("class", `${element.classList.contains("line") ? "line " : ""}s${place}`);
  }
  fitAxes(chart);
}

// An axis with ticks at multiples of 1, 2 or 5 times a power of ten, as charts.py draws it.
function niceAxis(values, margin) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (low === high) [low, high] = low ? [low - Math.abs(low) / 2, high + Math.abs(high) / 2] : [0, 1];
  [low, high] = [low - margin * (high - low), high + margin * (high - low)];
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((found) => found >= rough * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step * 1.001))), ticks = [];
  for (let n = Math.ceil(low / step); n <= Math.floor(high / step); n += 1) ticks.push([n * step, tickLabel(n * step, digits)]);
  return { low, high, ticks };
}

function tickLabel(value, digits) {
  const plain = value.toFixed(digits), short = value ? (+value.toPrecision(10)).toExponential().replace("e+", "e") : "0";
  return (plain.length > 7 && short.length < plain.length ? short : plain).replaceAll("-", "−");
}

// Draws the axes again for the series that are shown: in the page they cover all series.
function fitAxes(chart) {
  const drawn = { up: chart.dataset.up, across: chart.dataset.across }, plot = chart.querySelector(".plot > svg"), view = plot.querySelector("svg");
  const points = [...view.querySelectorAll("path:not([hidden])")].flatMap((path) => [...path.getAttribute("d").matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [x / 10, 100 - y / 10]));
  if (!points.length) return;
  const shares = {}; // of the drawn axis, in percent: where the shown one begins and ends
  for (const [name, place, margin] of [["across", 0, 0], ["up", 1, 0.04]]) {
    shares[name] = [0, 100];
    if (!drawn[name]) continue;
    const [low, high] = drawn[name].split(" ").map(Number), at = (value) => (100 * (value - low)) / (high - low);
    const digit = (high - low) / 2000; // a path has rounded places
    const axis = niceAxis(points.map((point) => digit * Math.round((low + (point[place] * (high - low)) / 100) / digit)), margin);
    shares[name] = [at(axis.low), at(axis.high)];
    const group = plot.querySelector(`g.${name}`), title = group.querySelector(".axis");
    const ticks = axis.ticks.flatMap(([value, label]) => tick(name, (100 * (value - axis.low)) / (axis.high - axis.low), label));
    group.replaceChildren(...ticks, ...(title ? [title] : []));
    group.classList.toggle("crowded", name === "across" && axis.ticks.length > 6);
  }
  const [[left, right], [bottom, top]] = [shares.across, shares.up];
  view.setAttribute("viewBox", [left, 100 - top, right - left, top - bottom].map((share) => 10 * share).join(" "));
  for (const circle of plot.querySelectorAll("circle")) {
    circle.dataset.at ??= `${circle.getAttribute("cx")} ${circle.getAttribute("cy")}`;
    const [x, y] = circle.dataset.at.split(" ").map(parseFloat);
    circle.setAttribute("cx", `${(100 * (x - left)) / (right - left)}%`);
    circle.setAttribute("cy", `${(100 * (y - 100 + top)) / (top - bottom)}%`);
  }
}

// The line and label of a tick, as charts.html has them.
function tick(axis, share, label) {
  const made = (name, attributes) => { const element = document.createElementNS("http://www.w3.org/2000/svg", name); for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value); return element; };
  const along = `${axis === "up" ? 100 - share : share}%`;
  const line = made("line", axis === "up" ? { class: "grid", x2: "100%", y1: along, y2: along } : { class: "grid", y2: "100%", x1: along, x2: along });
  const text = made("text", axis === "up" ? { x: -8, y: along, dy: ".32em", "text-anchor": "end" } : { x: along, y: "100%", dy: "1.3em", "text-anchor": "middle" });
  text.textContent = label;
  return [line, text];
}

const number = (text) => {
  const found = /^\s*[-+−]?(?=\.?\d)[\d.]+(e[-+]?\d+)?[KM]?/i.exec(text.replace("−", "-"));
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
