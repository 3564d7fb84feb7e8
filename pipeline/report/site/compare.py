"""Pages that compare rows of a table: settings that differ, learning curves, and the paired test."""

from itertools import combinations
from typing import Any

import numpy as np

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.analysis.training_curves import read_progress_lines
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import RunId
from pipeline.core.layout import PROGRESS_FILE
from pipeline.core.records.training import ValidationLine
from pipeline.metrics.metric import compare_resamples
from pipeline.report.filled_table import FilledTable
from pipeline.report.labels import metric_title, output_name, report_title, short_title
from pipeline.report.site.charts import curves
from pipeline.report.site.output_set import OutputSet
from pipeline.report.site.pages import Pages
from pipeline.report.site.runs import flat
from pipeline.report.site.site_data import SiteData, file_name, run_page


def compare_page(paper: str, table: str) -> str:
    """Return the name of the page."""
    return f"compare-{file_name(paper, table)}.html"


def write_comparison(pages: Pages, paper: str, name: str, filled: FilledTable) -> bool:
    """Write the page that compares rows of a table, if it has two scores of ours, and return whether it was written."""
    scores = [key for key, cell in filled.entry.cells.items() if isinstance(cell, ScoreCell)]
    found = (sides(pages.site, paper, filled, key) for key in scores)
    chosen = next((group for group in found if len(group) > 1), None)
    if chosen is None:
        return False
    points = [{"x": x, "y": y, "series": side["label"]} for side in chosen for x, y in side["curve"]]
    shown = [{key: value for key, value in side.items() if key not in ("sample", "curve")} for side in chosen]
    page = compare_page(paper, name)
    pages.script(page.removesuffix(".html"), "comparison", {"sides": shown, "pairs": pairs(chosen)})
    pages.page(
        page,
        "compare.html",
        title=f"Compare rows of {report_title(name)}, {short_title(pages.site.project.papers[paper].title)}",
        paper=paper,
        table=name,
        sides=shown,
        drawn=curves(points, "nats per symbol", "Development loss") if points else None,
        data=page.removesuffix(".html"),
    )
    return True


def sides(site: SiteData, paper: str, filled: FilledTable, key: str) -> list[dict[str, Any]]:
    """Return each row of ours that has a score in a cell: settings, development loss and score of its first run."""
    cell, view = filled.entry.cells[key], PaperView(site.project, paper)
    assert isinstance(cell, ScoreCell)
    found = []
    for index, row in enumerate(filled.table.rows):
        runs = cell.runs(view, row) if is_ours(row) else []
        if not runs or not filled.cells[key][index]["ours"]:
            continue
        decodings, run = cell.decodings_of(row), runs[0]
        sample = filled.table.folders.sample([run], decodings, cell)
        found.append(
            {
                "label": filled.names[index],
                "system": f"{run.paper}/{run.system}",
                "page": run_page(run),
                "output": output_name(site.project, run, decodings[0]),
                "outputs": outputs_page(site, cell, run),
                "settings": flat(site.spec(run)),
                "curve": development(site, run),
                "metric": metric_title(cell.metric),
                "score": f"{sample.mean:.2f}",
                "sample": sample,
            }
        )
    return found


def outputs_page(site: SiteData, cell: ScoreCell, run: RunId) -> str:
    """Return the page of the outputs behind a score; empty if there are none, as a perplexity needs none."""
    dataset = site.project.stand_in(cell.scored_on) if cell.scored_on else run.dataset
    of = OutputSet(site, dataset, cell.splits[0])
    return of.page if of.artifacts else ""


def development(site: SiteData, run: RunId) -> list[tuple[float, float]]:
    """Return the development losses of a run: steps, and nats per token."""
    folder = site.project.layout.run(run)
    if not (folder / PROGRESS_FILE).exists():
        return []
    return [(event.step, round(event.dev.nll_per_token, 4)) for event in read_progress_lines(folder, ValidationLine)]


def pairs(sides: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the paired test of every two finite rows of one test set, first minus second, by `first,second`."""
    found = {}
    for (i, first), (j, second) in combinations(enumerate(side["sample"] for side in sides), 2):
        bases = [(side.test_set, side.rows, side.basis) for side in (first, second)]
        draws = first.draws[0], second.draws[0]
        if bases[0] == bases[1] and first.rows > 1 and np.isfinite(draws).all():
            result = compare_resamples(first.mean - second.mean, draws[0] - draws[1])
            found[f"{i},{j}"] = {name: round(value, 4) for name, value in vars(result).items()}
    return found
