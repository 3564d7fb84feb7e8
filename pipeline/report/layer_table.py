"""Printed complexities of Attention Is All You Need, Table 1, beside the measured times of layers."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.analysis.cells.cell import shown_interval
from pipeline.analysis.claims.without_training import LayerTimings
from pipeline.analysis.evidence import over_seeds
from pipeline.analysis.figures.figure import COLOURS, GREY, curve_style, new_figure, save
from pipeline.core.schema import require_known
from pipeline.papers.paper import Row
from pipeline.papers.project import Project, ProjectOptions
from pipeline.report.markup import grid, literal, paragraphs, prose, write_report

log = logging.getLogger(__name__)


def write_layer_table(*, paper: str, table: str, layer_times: Path, out: Path, project: ProjectOptions) -> None:
    r"""Compare measured layer times with the complexities that the paper prints.

        python -m pipeline layer-table --paper attention --table table1 --set scale=demo \
            --layer-times work/demo/layer_times.json --out results/demo/attention/table1.csv

    Write the CSV and, beside it, Markdown and the plot (SVG and PNG).

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        layer_times: JSON written by `layer-times`.
        out: CSV to write, with Markdown, SVG and PNG beside it.
        project: The project and its settings.
    """
    make_layer_table(project.load([paper]), paper, table, layer_times, out)


def make_layer_table(project: Project, paper: str, table: str, layer_times: Path, out: Path) -> None:
    """Write a table of layer times; see `write_layer_table`.

    Raises:
        UserError: The paper has no such table, or the times are missing.
    """
    require_known(table, project.papers[paper].layer_costs, f"papers/{paper}: layer_costs")
    times = LayerTimings.read(layer_times)
    printed = project.printed[paper][table]
    rows = [table_row(row, times) for row in printed]
    write_report(out, rows, render(project, paper, table, times, rows))
    save(plot(printed, times), out.with_suffix(".svg"))
    log.info("%s: %d layer types, %s", out, len(rows), times.description)


def table_row(printed: Row, times: LayerTimings) -> dict[str, Any]:
    """Return the row of a layer type: printed cells, fitted exponents, and its formulas for the longest sequence."""
    layer, n, d = printed["layer"], times.lengths[-1], times.widths[-1]
    operations, path = theoretical_costs(layer, n, times.record.kernel, times.record.window)
    row = {key: printed[key] for key in ("layer_type", "complexity_per_layer")}
    for variable in ("n", "d"):
        exponent = over_seeds("", times.exponents(layer, variable))
        row |= {
            f"exponent_{variable}_printed": printed[f"exponent_{variable}"],
            f"exponent_{variable}_ours": f"{exponent.value:.2f}",
            f"exponent_{variable}_low": f"{exponent.low:.2f}",
            f"exponent_{variable}_high": f"{exponent.high:.2f}",
        }
    return row | {
        "milliseconds": f"{1000 * float(np.median(times.seconds[layer, n, d])):.3g}",
        "n": n,
        "d": d,
        "sequential_operations": printed["sequential_operations"],
        "sequential_operations_derived": operations,
        "max_path_length": printed["max_path_length"],
        "max_path_length_derived": path,
        "kernel": times.record.kernel,
        "window": times.record.window,
        "source": printed["source"],
        "measured": times.description,
        "commit": times.record.provenance["commit"],
    }


def theoretical_costs(layer: str, n: int, kernel: int, window: int) -> tuple[int, int]:
    """Return sequential operations and the longest path between two positions (Vaswani et al. 2017, Table 1).

    Convolutions are dilated, because the paper has O(log_k(n)).

    Args:
        layer: Layer type.
        n: Length of the sequence.
        kernel: Width k of convolutions.
        window: Neighbourhood r of restricted self-attention.
    """
    found = {
        "self-attention": (1, 1),
        "recurrent": (n, n),
        "convolutional": (1, math.ceil(math.log(n, kernel))),
        "restricted self-attention": (1, math.ceil(n / window)),
    }
    require_known(layer, found, "layer type")
    return found[layer]


def render(project: Project, paper: str, table: str, times: LayerTimings, rows: list[dict[str, Any]]) -> str:
    """Return the table in Markdown, for a terminal."""
    header = ["layer type", "complexity", "n^", "n^ ours", "95 %", "d^", "d^ ours", "95 %", "ms"]
    header += ["operations", "at this n", "path", "at this n"]
    cells = [grid_cells(row) for row in rows]
    record, entry = project.papers[paper], project.papers[paper].layer_costs[table]
    n, d, kernel, window = rows[0]["n"], rows[0]["d"], times.record.kernel, times.record.window
    return paragraphs(
        f"# {literal(record.title)}: {table}",
        prose(entry.caption),
        grid(header, cells),
        f"Exponents: of time, fitted as c n^p d^q to the larger sizes up to n = {n}, d = {d}; 95 %: of the repeats. "
        f"ms: one forward pass of n = {n}, d = {d}. Operations and paths: the printed formula, and its value for "
        f"n = {n} with kernel k = {kernel} (dilated) and neighbourhood r = {window}. Measured: {times.description}.",
        f"![{table}]({table}.svg)",
    )


def grid_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row in the order of the header."""
    cells = [row["layer_type"], row["complexity_per_layer"]]
    for v in "nd":
        interval = shown_interval(row[f"exponent_{v}_low"], row[f"exponent_{v}_high"])
        cells += [row[f"exponent_{v}_printed"], row[f"exponent_{v}_ours"], interval]
    cells += [row["milliseconds"], row["sequential_operations"], str(row["sequential_operations_derived"])]
    return [*cells, row["max_path_length"], str(row["max_path_length_derived"])]


def plot(printed: list[Row], times: LayerTimings) -> Figure:
    """Draw time against n at the largest d, and against d at the largest n; printed powers are dotted."""
    picture = new_figure(8, 3.6)
    panels = picture.subplots(1, 2, sharey=True)
    for axes, variable, fixed in zip(panels, "nd", (times.widths[-1], times.lengths[-1]), strict=True):
        sizes = np.array(times.lengths if variable == "n" else times.widths)
        for number, row in enumerate(printed):
            places = [(size, fixed) if variable == "n" else (fixed, size) for size in sizes.tolist()]
            seconds = [times.seconds[row["layer"], n, d] for n, d in places]
            middle = 1000 * np.median(seconds, axis=1)
            spread = 1000 * np.abs(np.percentile(seconds, [0, 100], axis=1) - middle / 1000)
            label = f"{row['layer_type']}, {row['complexity_per_layer']}"
            axes.errorbar(sizes, middle, spread, linewidth=1.2, label=label, **curve_style(number))
            power = middle[-1] * (sizes / sizes[-1]) ** float(row[f"exponent_{variable}"])
            axes.plot(sizes, power, color=COLOURS[number], linestyle=":", linewidth=1)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
    panels[0].set_xlabel(f"sequence length n (positions), d = {times.widths[-1]}")
    panels[1].set_xlabel(f"width d (units), n = {times.lengths[-1]}")
    panels[0].set_ylabel("time of a forward pass (ms)")
    panels[0].plot([], [], color=GREY, linestyle=":", label="printed power through the last point")
    picture.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return picture
