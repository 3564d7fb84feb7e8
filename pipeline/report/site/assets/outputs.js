"use strict";
// The outputs browser: the only system, or two of several, beside source and reference, what differs from the reference marked.

const { systems, rows, form, better, metric } = window.outputs;
const PAGE = 25;
const make = (name, text, attributes = {}) => {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// Which words of `ours` and of `theirs` are in a longest common subsequence.
function common(ours, theirs) {
  const table = Array.from({ length: ours.length + 1 }, () => new Uint16Array(theirs.length + 1));
  for (let i = ours.length - 1; i >= 0; i--)
    for (let j = theirs.length - 1; j >= 0; j--)
      table[i][j] = ours[i].word === theirs[j].word ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const steps = [];
  let [i, j] = [0, 0];
  while (i < ours.length || j < theirs.length) {
    if (i < ours.length && j < theirs.length && ours[i].word === theirs[j].word) { steps.push(["same", ours[i]]); i++; j++; }
    else if (j >= theirs.length || (i < ours.length && table[i + 1][j] >= table[i][j + 1])) steps.push(["extra", ours[i++]]);
    else steps.push(["missing", theirs[j++]]);
  }
  return steps;
}

// Words, each with the space after it; of Chinese and Japanese, which write none, characters.
const WORD = /([\u3001-\u30ff\u3400-\u9fff\uff00-\uffef]|[^\s\u3001-\u30ff\u3400-\u9fff\uff00-\uffef]+)(\s*)/g;
const words = (text) => [...text.matchAll(WORD)].map(([, word, space]) => ({ word, space }));

function marked(text, reference) {
  if (!text.trim()) return make("span", "(nothing)", { class: "soft" });
  const line = make("span");
  for (const [kind, { word, space }] of common(words(text), words(reference))) {
    if (kind === "same") line.append(word, space);
    else if (kind === "extra") line.append(make("mark", word, { title: "not in the reference" }), space);
    else if (form === "speech") line.append(" ", make("mark", word, { class: "missing", title: "left out" }), " ");
  }
  return line;
}

function parse(text) {
  const stack = [{ label: "", children: [] }];
  for (const symbol of text.match(/[()]|[^\s()]+/g) || []) {
    const top = stack[stack.length - 1];
    if (symbol === "(") { const node = { label: null, children: [] }; top.children.push(node); stack.push(node); }
    else if (symbol === ")") { if (stack.length > 1) stack.pop(); }
    else if (top.label === null) top.label = symbol;
    else top.children.push({ label: symbol, children: [] });
  }
  return stack[0].children[0];
}

function tree(text) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const add = (name, attributes, content) => {
    const element = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (content) element.textContent = content;
    svg.append(element);
  };
  let [right, deepest] = [10, 0];
  const place = (node, depth) => {
    deepest = Math.max(deepest, depth);
    const below = node.children.map((child) => place(child, depth + 1));
    const y = 16 + 34 * depth;
    let x;
    if (!below.length) { const width = Math.max(24, 7 * (node.label || "").length + 10); x = right + width / 2; right += width; }
    else x = (below[0] + below[below.length - 1]) / 2;
    for (const child of below) add("line", { x1: x, y1: y + 4, x2: child, y2: y + 20 });
    add("text", { x, y, class: below.length ? "" : "word" }, node.label || "");
    return x;
  };
  const root = parse(text);
  const holder = make("div", null, { class: "tree", tabindex: "0", role: "group", "aria-label": "tree" });
  if (!root) { holder.textContent = text; return holder; }
  place(root, 0);
  svg.setAttribute("width", right + 10);
  svg.setAttribute("height", 34 * deepest + 28);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", text);
  holder.append(svg);
  return holder;
}

const shown = (text, reference) => (form === "trees" ? tree(text) : marked(text, reference));
const score = (value) => (value === null ? "" : `${metric} ${value}`);

function entry(list, name, value, content, page) {
  const term = make("dt");
  term.append(page ? make("a", name, { href: page }) : name);
  if (value) term.append(make("br"), value);
  const text = make("dd");
  text.append(content);
  list.append(term, text);
}

function sentence(row, chosen) {
  const box = make("article", null, { class: "sentence" });
  box.append(make("h3", `line ${row.line}`));
  const list = make("dl");
  if (row.source) entry(list, "source", "", row.source);
  entry(list, "reference", "", form === "trees" ? tree(row.reference) : row.reference);
  for (const place of chosen) entry(list, systems[place].name, score(row.scores[place]), shown(row.outputs[place], row.reference), systems[place].page);
  if (row.audio) box.append(make("audio", null, { controls: "", preload: "none", src: row.audio, "aria-label": `line ${row.line}` }));
  box.append(list);
  const others = systems.map((_, place) => place).filter((place) => !chosen.includes(place));
  if (others.length) {
    const more = make("details");
    more.append(make("summary", others.length > 1 ? `the other ${others.length} outputs` : "the other output"));
    more.addEventListener("toggle", () => {
      if (!more.open || more.querySelector("dl")) return;
      const rest = make("dl");
      for (const place of others) entry(rest, systems[place].name, score(row.scores[place]), shown(row.outputs[place], row.reference), systems[place].page);
      more.append(rest);
    });
    box.append(more);
  }
  return box;
}

const sign = better === "higher" ? 1 : -1;
const mean = (row, chosen) => chosen.reduce((sum, place) => sum + (row.scores[place] ?? 0), 0) / chosen.length;
const orders = {
  differ: (chosen) => (row) => -Math.abs((row.scores[chosen[0]] ?? 0) - (row.scores[chosen[1] ?? chosen[0]] ?? 0)),
  first: (chosen) => (row) => sign * ((row.scores[chosen[1] ?? chosen[0]] ?? 0) - (row.scores[chosen[0]] ?? 0)),
  second: (chosen) => (row) => sign * ((row.scores[chosen[0]] ?? 0) - (row.scores[chosen[1] ?? chosen[0]] ?? 0)),
  worst: (chosen) => (row) => sign * mean(row, chosen),
  best: (chosen) => (row) => -sign * mean(row, chosen),
  line: () => (row) => row.line,
};

document.addEventListener("DOMContentLoaded", () => {
  const of = (name) => document.getElementById(name);
  const [order, search, list, more, count] = ["order", "search", "sentences", "more", "count"].map(of);
  const selects = systems.length > 1 ? ["one", "other"].map(of) : [];
  for (const select of selects) systems.forEach((system, place) => select.append(make("option", system.name, { value: place })));
  const asked = new URLSearchParams(location.hash.slice(1));
  const placeOf = (key, otherwise) => { const found = systems.findIndex((system) => system.name === asked.get(key)); return found < 0 ? otherwise : found; };
  selects.forEach((select, place) => { select.value = placeOf("ab"[place], place); });
  const chosenSystems = () => (selects.length ? [...new Set(selects.map((select) => +select.value))] : [0]);
  let [found, end] = [[], 0];
  const further = () => {
    const chosen = chosenSystems();
    for (const row of found.slice(end, end + PAGE)) list.append(sentence(row, chosen));
    end = Math.min(end + PAGE, found.length);
    more.hidden = end >= found.length;
    count.textContent = `${end} of ${found.length} sentences`;
  };
  const again = () => {
    const [chosen, wanted] = [chosenSystems(), search.value.toLowerCase()];
    const texts = (row) => [row.source, row.reference, ...chosen.map((place) => row.outputs[place])].join("\n").toLowerCase();
    const key = orders[order.value](chosen);
    found = rows.filter((row) => texts(row).includes(wanted)).sort((a, b) => key(a) - key(b) || a.line - b.line);
    end = 0;
    list.replaceChildren();
    further();
  };
  const charts = () => document.querySelectorAll(".chart.chosen").forEach((chart) => showSeries(chart, chosenSystems().map((place) => systems[place].name)));
  for (const select of selects) select.addEventListener("change", () => { again(); charts(); });
  order.addEventListener("change", again);
  search.addEventListener("input", again);
  more.addEventListener("click", further);
  again();
  charts();
});
