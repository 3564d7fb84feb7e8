"use strict";
// Two rows of a table beside each other.

document.addEventListener("DOMContentLoaded", () => {
  const { sides, pairs } = window.comparison;
  const of = (name) => document.getElementById(name);
  const [one, other, body, test, changed, chart] = ["one", "other", "differences", "test", "changed", "curve"].map(of);
  const cell = (name, text) => { const made = document.createElement(name); made.textContent = text ?? ""; return made; };
  sides.forEach((side, place) => { for (const select of [one, other]) { const option = cell("option", side.label); option.value = place; select.append(option); } });
  other.value = Math.min(1, sides.length - 1);

  const signed = (x) => x.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−");
  // a long name breaks at a dot or an underscore
  const breaking = (element) => { element.replaceChildren(...element.textContent.split(/(?<=[._])(?!\d)/).flatMap((part) => [part, document.createElement("wbr")])); return element; };

  function paired(a, b) {
    const found = pairs[a < b ? `${a},${b}` : `${b},${a}`];
    if (!found) return "No paired test: the same row twice, another test set, or an infinite score.";
    const sign = a < b ? 1 : -1;
    const bounds = [sign * found.low, sign * found.high].sort((x, y) => x - y);
    const significant = found.p_value <= 0.05 ? "These two trainings differ significantly; other seeds may not" : "These two trainings do not differ significantly";
    return `${sides[a].label} minus ${sides[b].label}: ${signed(sign * found.difference)} ${sides[a].metric}, 95 % ${signed(bounds[0])} to ${signed(bounds[1])}, p = ${found.p_value.toFixed(3)} (paired bootstrap over the sentences of one seed). ${significant}.`;
  }

  function show() {
    const [a, b] = [+one.value, +other.value];
    const keys = [...new Set([...Object.keys(sides[a].settings), ...Object.keys(sides[b].settings)])];
    const rows = keys.filter((key) => sides[a].settings[key] !== sides[b].settings[key]).map((key) => {
      const row = document.createElement("tr");
      const header = breaking(cell("th", key));
      header.scope = "row";
      row.append(header, ...[a, b].map((place) => breaking(cell("td", sides[place].settings[key]))));
      return row;
    });
    body.replaceChildren(...rows);
    for (const header of document.querySelectorAll("#settings th")) header.removeAttribute("aria-sort");
    of("none").hidden = rows.length > 0;
    for (const [name, place] of [["first", a], ["second", b]]) {
      const link = cell("a", sides[place].label);
      link.href = sides[place].page;
      of(name).replaceChildren(link, ` ${sides[place].metric} ${sides[place].score}`);
    }
    test.textContent = paired(a, b);
    changed.hidden = !sides[a].outputs;
    changed.href = `${sides[a].outputs}#${new URLSearchParams({ a: sides[a].output, b: sides[b].output })}`;
    if (chart) showSeries(chart, [sides[a].label, sides[b].label]);
  }

  one.addEventListener("change", show);
  other.addEventListener("change", show);
  show();
});
