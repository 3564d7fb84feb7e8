"""Runs that a table sets side by side: settings that differ, curves laid over each other, the paired test."""

from itertools import combinations
from typing import Any

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import RunId
from pipeline.core.layout import PROGRESS_FILE
from pipeline.report.comparison import compared
from pipeline.report.filled_table import FilledTable
from pipeline.report.site.charts import curves
from pipeline.report.site.pages import Pages
from pipeline.report.site.present import Present, run_page, system_name
from pipeline.report.site.runs import flat, run_curves


def compare_page(paper: str, table: str) -> str:
    return f"compare-{paper}-{table}.html"


def write_comparison(pages: Pages, paper: str, name: str, filled: FilledTable) -> bool:
    """Of a table with at least two scores of ours; whether there is something to compare."""
    present = pages.present
    found = [
        one
        for key, cell in filled.entry.cells.items()
        if isinstance(cell, ScoreCell) and len(one := sides(present, paper, filled, key)) > 1
    ]
    if not found:
        return False
    chosen = found[0]
    blank = curves([{"x": 0, "y": 0, "series": ""}], "nats a symbol", "Development loss")
    pages.script(
        f"compare-{paper}-{name}",
        "comparison",
        {"sides": [without_draws(one) for one in chosen], "pairs": pairs(chosen)},
    )
    pages.page(
        compare_page(paper, name),
        "compare.html",
        title=f"Compare: {present.project.papers[paper].title}, {name}",
        paper=paper,
        table=name,
        sides=chosen,
        metric=chosen[0]["metric"],
        chart_=blank,
        data=f"compare-{paper}-{name}",
    )
    return True


def sides(present: Present, paper: str, filled: FilledTable, key: str) -> list[dict[str, Any]]:
    """Each row of ours that has a score in this cell: its first run, settings, development loss, that run's score."""
    cell, view = filled.entry.cells[key], PaperView(present.project, paper)
    assert isinstance(cell, ScoreCell)
    found = []
    for index, row in enumerate(filled.table.rows):
        runs = cell.runs(view, row) if is_ours(row) else []
        if not runs or not filled.cells[key]["ours"][index]:
            continue
        decodings, run = cell.decodings_of(row), runs[0]
        found.append(
            {
                "label": filled.names[index],
                "system": system_name(run),
                "page": run_page(run),
                "output": f"{system_name(run)} {decodings[0]}",
                "outputs": outputs_page(cell, run, view),
                "settings": flat(present.project.run_spec(run)),
                "curve": development(present, run),
                "metric": cell.metric,
                "score": filled.cells[key]["ours"][index],
                "sample": filled.table.folders.sample([run], decodings, cell),
            }
        )
    return found


def outputs_page(cell: ScoreCell, run: RunId, view: PaperView) -> str:
    dataset = view.experiment.stand_in(cell.scored_on) if cell.scored_on else run.dataset
    return f"outputs-{dataset}-{cell.splits[0]}.html"


def development(present: Present, run: RunId) -> list[tuple[float, float]]:
    if not (present.project.layout.run(run) / PROGRESS_FILE).exists():
        return []
    losses = run_curves(present, run).get("loss", [])
    return [(one["x"], round(one["y"], 4)) for one in losses if one["series"] == "development"]


def pairs(sides: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The paired test of every two of one test set, by their places, `first,second`: first less second."""
    found = {}
    for (one, first), (other, second) in combinations(enumerate(side["sample"] for side in sides), 2):
        bases = [(side.test_set, side.rows, side.basis) for side in (first, second)]
        if bases[0] == bases[1] and first.rows > 1:
            result = compared(first.mean - second.mean, first.draws[0] - second.draws[0])
            found[f"{one},{other}"] = {name: round(value, 4) for name, value in vars(result).items()}
    return found


def without_draws(side: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in side.items() if key != "sample"}
