"""The runs behind the cells of a table, one by one."""

from dataclasses import dataclass

from made_records import score_file, start_cost, trained_run, training_cost

from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import RunId, Score, Trained
from pipeline.papers.project import Project


@dataclass(frozen=True)
class CellRun:
    """One run behind one cell of a table."""

    row: int
    cell: str
    run: RunId
    decodings: list[str]


def cell_runs(project: Project, paper: str, table: str) -> list[CellRun]:
    """Every run that a cell of the table needs."""
    found: list[CellRun] = []
    for index, row in enumerate(project.printed[paper][table]):
        for name, cell in project.table(paper, table).cells.items():
            for artifact in cell.needs(PaperView(project, paper), row):
                if isinstance(artifact, Trained):
                    found.append(CellRun(index, name, artifact.run, []))
                elif isinstance(artifact, Score) and artifact.decoding not in found[-1].decodings:
                    found[-1].decodings.append(artifact.decoding)
    return found


def write_cell(project: Project, cell: CellRun, split: str, value: float) -> None:
    """Write a run folder as the stages do, with a made-up score."""
    folder = project.layout.run(cell.run)
    parameters = {"total": 123456, "branch_weights": 0}
    trained_run(steps=7, parameters=parameters, provenance={"commit": "abc"}).write(folder / "done.json")
    training_cost(start_cost(seconds=900, processes=2, flops=2.5e9)).write(folder / "cost.json")
    entry = {"value": value, "low": value - 1.5, "high": value + 0.5, "signature": "sig"}
    score = score_file({"bleu_paper": entry, "gleu": entry}, lines=10)
    for decoding in cell.decodings:
        score.write(folder / "scores" / decoding / f"{split}.json")
