"""The runs behind the cells of a table, one by one."""

from dataclasses import dataclass

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
            for product in cell.needs(PaperView(project, paper), row):
                if isinstance(product, Trained):
                    found.append(CellRun(index, name, product.run, []))
                elif isinstance(product, Score) and product.decoding not in found[-1].decodings:
                    found[-1].decodings.append(product.decoding)
    return found
