"""By how much a row's score exceeds that of another row, paired by sentence."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.analysis.cells.cell import Cell, Place, PrintedTable, Row
from pipeline.analysis.cells.kinds.score import ScoreCell
from pipeline.analysis.evidence import contrast
from pipeline.analysis.names import SystemName
from pipeline.core.schema import unknown


class GainCell(Cell):
    """By how much a row's score exceeds that of another row."""

    kind: Literal["gain"]
    cell: str = Field(description="Score of this table that is compared")
    over: SystemName = Field(description="System of the other row")

    def faults(self, rows: Sequence[Row], cells: Mapping[str, Cell], where: str) -> Iterator[str | None]:
        scores = {name: cell for name, cell in cells.items() if isinstance(cell, ScoreCell)}
        yield unknown(self.cell, scores, f"{where}.cell")
        if self.cell in scores:
            yield unknown(self.over, {row[scores[self.cell].system] for row in rows}, f"{where}.over")

    def compared(self, table: PrintedTable) -> tuple[ScoreCell, int]:
        """The score that is compared, and the number of the other row."""
        score = table.cells[self.cell]
        assert isinstance(score, ScoreCell), "checked when the paper was loaded"
        return score, next(number for number, row in enumerate(table.rows) if row[score.system] == self.over)

    def made_of(self, table: PrintedTable, index: int) -> list[tuple[Cell, Row]]:
        score, other = self.compared(table)
        return [(score, table.rows[index]), (score, table.rows[other])]

    def fill(self, place: Place) -> dict[str, str]:
        """Empty in the other row itself, and as long as one of both was not run."""
        columns = dict.fromkeys(("printed", "ours", "low", "high"), "") | {"printed": self.printed_in(place.row)}
        score, other = self.compared(place.table)
        measured = place.table.measured
        rows = [place.row, place.table.rows[other]]
        sides = [(score.runs(place.table.view, row), score.decodings_of(row), score) for row in rows]
        if place.index != other and all(measured.measure(*side) for side in sides):
            own, over = (measured.sample(*side) for side in sides)
            found = contrast("", [(1, own), (-1, over)])
            known = {"low": f"{found.low:+.2f}", "high": f"{found.high:+.2f}"} if found.error is not None else {}
            columns |= {"ours": f"{found.value:+.2f}"} | known
        return columns | place.comparison(self, columns["ours"])

    def shown(self, values: Mapping[str, str]) -> dict[str, str]:
        interval = f"{values['low']}–{values['high']}" if values["low"] else ""
        return {"printed": values["printed"], "ours": values["ours"], "95 %": interval}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        return f"{self.cell} less that of {self.over}, paired by sentence{remark}."
