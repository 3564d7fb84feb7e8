"""One table of one paper: each printed number next to ours, with spread, cost and provenance.

    python -m pipeline table --paper weighted --table table2 --out results/demo/weighted/table2.csv

writes the CSV and, beside it, a Markdown twin to be read in a terminal. Settings come from config.yaml;
`--set scale=small` replaces one of them.
"""

import argparse
import logging
import math
import statistics
from pathlib import Path
from typing import Any

from pipeline.experiment.paper import FactCell, GainCell, GapCell, Row, ScoreCell, SizeCell
from pipeline.experiment.project import CellRun, Project, load_project, parse_settings
from pipeline.files import atomic_write, write_csv
from pipeline.kinds.evidence import difference as gain
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.training_cost import flops_by_time
from pipeline.products import RunId
from pipeline.reporting.markdown import render

log = logging.getLogger(__name__)

NOT_RUN, CITED, NOT_COMPARABLE = "not run", "cited", "not comparable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=Path(), help="project root (default: the working directory)")
    parser.add_argument("--paper", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="replace a key of config.yaml")
    parser.add_argument("--out", type=Path, required=True, help="CSV to write; the Markdown twin lies beside it")


def run(args: argparse.Namespace) -> None:
    project = load_project(args.root, parse_settings(args.set))
    rows = table_rows(project, args.paper, args.table)
    write_csv(args.out, rows)
    with atomic_write(args.out.with_suffix(".md")) as handle:
        handle.write(render(project, args.paper, args.table, rows))
    log.info("%s: %d rows, %d not run", args.out, len(rows), sum(row["status"] == NOT_RUN for row in rows))


def table_rows(project: Project, paper: str, table: str) -> list[dict[str, Any]]:
    """The table's rows as they stand in the CSV: every row has every column, empty where nothing applies."""
    entry = project.table(paper, table)
    folders = RunFolders(project)
    runs = project.cell_runs(paper, table)
    rows = []
    for index, printed in enumerate(project.printed[paper][table]):
        row: dict[str, Any] = {key: printed[key] for key in (*entry.label, *entry.settings)}
        mine = [cell for cell in runs if cell.row == index]
        for name, cell in entry.cells.items():
            here = [run for run in mine if run.cell == name]
            if isinstance(cell, GainCell):
                row |= gain_columns(project, paper, table, name, index)
            elif isinstance(cell, ScoreCell):
                row |= score_columns(project, folders, name, cell, here, printed)
            elif isinstance(cell, GapCell):
                row |= gap_columns(project, folders, name, cell, here, printed)
            elif isinstance(cell, SizeCell):
                row |= size_columns(project, paper, name, cell, printed)
            else:
                row |= fact_columns(folders, name, cell, here, printed)
        row["status"] = status(printed, row, entry.cells)
        rows.append(
            row
            | cost_columns(folders, unique_runs([cell for cell in mine if not cell.compared_with]))
            | notes_columns(project, paper, printed, entry.run_cells)
        )
    return rows


def unique_runs(cells: list[CellRun]) -> list[RunId]:
    return list(dict.fromkeys(cell.run for cell in cells))


def score_columns(
    project: Project, folders: RunFolders, name: str, cell: ScoreCell, runs: list[CellRun], printed: Row
) -> dict[str, Any]:
    """Printed value, ours over seeds, interval, difference, test set and signature of one measured column."""
    reported = printed[cell.printed] if cell.printed else ""
    measured = folders.measure(runs, cell)
    columns = dict.fromkeys(("printed", "ours", "spread", "low", "high", "difference", "test_set", "signature"), "")
    columns["printed"] = reported
    if measured is not None:
        comparable = not any(project.is_stand_in(run.run.dataset) for run in runs)
        columns |= {
            "ours": f"{measured.mean:.2f}",
            "spread": "" if measured.spread is None else f"{measured.spread:.2f}",
            "low": "" if measured.low is None else f"{measured.low:.2f}",
            "high": "" if measured.high is None else f"{measured.high:.2f}",
            "difference": difference(measured.mean, reported) if comparable else NOT_COMPARABLE,
            "test_set": measured.test_set,
            "signature": measured.signature,
        }
    return {f"{name}_{key}": value for key, value in columns.items()}


def gap_columns(
    project: Project, folders: RunFolders, name: str, cell: GapCell, runs: list[CellRun], printed: Row
) -> dict[str, str]:
    """Printed and own domain gap, the mean over seeds."""
    gaps = folders.gap(runs, cell, project.config.seed_list) if runs else []
    reported = printed[cell.printed] if cell.printed else ""
    return {f"{name}_printed": reported, f"{name}_ours": f"{statistics.fmean(gaps):.2f}" if gaps else ""}


def gain_columns(project: Project, paper: str, table: str, name: str, index: int) -> dict[str, Any]:
    """By how much a row exceeds another, paired by sentence; empty in that other row, and as long as one is missing."""
    entry, printed = project.table(paper, table), project.printed[paper][table]
    cell = entry.cells[name]
    score = entry.cells[cell.cell]
    columns = dict.fromkeys(("printed", "ours", "low", "high"), "")
    columns["printed"] = printed[index][cell.printed] if cell.printed else ""
    other = next(number for number, row in enumerate(printed) if row[score.system] == cell.over)
    folders, runs = RunFolders(project), project.cell_runs(paper, table)
    sides = [[run for run in runs if (run.row, run.cell) == (row, cell.cell)] for row in (index, other)]
    if index != other and all(folders.measure(side, score) for side in sides):
        found = gain("", *(folders.sample(side, score) for side in sides))
        columns |= {"ours": f"{found.value:+.2f}", "low": f"{found.low:+.2f}", "high": f"{found.high:+.2f}"}
    return {f"{name}_{key}": value for key, value in columns.items()}


def difference(ours: float, printed: str) -> str:
    return f"{ours - float(printed):+.2f}" if printed else ""


def size_columns(project: Project, paper: str, name: str, cell: SizeCell, printed: Row) -> dict[str, str]:
    """Printed and own number of parameters at the paper's size."""
    ours = ""
    if printed["source"] == "ours-to-run" and (system := printed[cell.system]):
        from pipeline.models.build import build_model  # with torch, which no other column needs
        from pipeline.models.size import size_of

        vocab = cell.vocab_of.get(system, cell.vocab)
        config = project.full_section(*project.locate(system, paper), "model")
        ours = str(size_of(lambda: build_model(config, (vocab, vocab))))
    return {f"{name}_printed": in_our_unit(printed, cell), f"{name}_ours": ours}


def in_our_unit(printed: Row, cell: FactCell | SizeCell) -> str:
    """The paper's number, written out."""
    return f"{float(reported) * cell.unit:.6g}" if cell.printed and (reported := printed[cell.printed]) else ""


def fact_columns(folders: RunFolders, name: str, cell: FactCell, runs: list[CellRun], printed: Row) -> dict[str, Any]:
    """Printed and own value of a column about the training: its parameters, operations or fit."""
    values = [value for run in unique_runs(runs) if (value := fact(folders, run, cell.kind))]
    ours = str(values[0]) if cell.kind == "parameters" and values else shown_mean(values)
    return {f"{name}_printed": in_our_unit(printed, cell), f"{name}_ours": ours}


def fact(folders: RunFolders, run: RunId, kind: str) -> float | None:
    """Of one run; None when it is not there, NaN when an older version did not measure it."""
    trained, cost = folders.trained(run), folders.cost(run)
    match kind:
        case "parameters":
            return trained and trained.parameters.total
        case "fit":
            return trained and (trained.fit.perplexity if trained.fit else math.nan)
        case "flops":
            return cost and cost.total.flops
        case "flops_by_time":
            return cost and flops_by_time(cost.starts, folders.layer_times)
    raise ValueError(f"no fact of kind {kind!r}")


def shown_mean(values: list[float]) -> str:
    """Empty without values, or when one is not known."""
    return "" if not values or math.isnan(sum(values)) else f"{sum(values) / len(values):.6g}"


def status(printed: Row, row: dict[str, Any], cells: dict[str, Any]) -> str:
    if printed["source"] != "ours-to-run":
        return CITED
    wanted = [name for name, cell in cells.items() if cell.kind == "score" and printed[cell.system]]
    return "run" if all(row[f"{name}_ours"] for name in wanted) else NOT_RUN


def cost_columns(folders: RunFolders, runs: list[RunId]) -> dict[str, Any]:
    """Steps, hours, operations and provenance of the trainings behind a row, summed over them."""
    trained = [record for run in runs if (record := folders.trained(run))]
    costs = [record for run in runs if (record := folders.cost(run))]
    return {
        "steps": joined(record.steps for record in trained),
        "device_hours": f"{sum(record.device_hours for record in costs):.4f}" if costs else "",
        "train_flops": f"{sum(record.total.flops for record in costs):.3e}" if costs else "",
        "hardware": joined(record.hardware for record in costs),
        "commit": joined(record.provenance.get("commit", "") for record in trained),
        "runs": joined(run.folder for run in runs),
    }


def joined(values: Any) -> str:
    """Distinct values in order, `; ` between."""
    return "; ".join(dict.fromkeys(str(value) for value in values if value != ""))


def notes_columns(project: Project, paper: str, printed: Row, cells: dict[str, Any]) -> dict[str, str]:
    """Which deviations of the paper concern this row, by their number below the table."""
    systems = {printed[cell.system] for cell in cells.values()} - {""}
    numbers = [
        str(number)
        for number, deviation in enumerate(project.papers[paper].deviations, start=1)
        if systems and (systems & set(deviation.systems) or "*" in deviation.systems)
    ]
    return {"deviations": " ".join(numbers)}
