"""The score of a row's system beside the printed one: mean over seeds, spread, interval, difference."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from pipeline.analysis.cells.cell import NOT_COMPARABLE, Place, Row
from pipeline.analysis.cells.measured_cell import MeasuredCell
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product

COLUMNS = ("printed", "ours", "spread", "low", "high", "difference", "test_set", "signature")


class ScoreCell(MeasuredCell):
    """The score itself."""

    required: ClassVar[bool] = True
    kind: Literal["score"] = "score"

    def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
        yield from view.scored(self.runs(view, row), self, self.decodings_of(row))

    def fill(self, place: Place) -> dict[str, str]:
        columns = dict.fromkeys(COLUMNS, "") | {"printed": self.printed_in(place.row)}
        runs = self.runs(place.table.view, place.row)
        found = place.table.measured.measure(runs, self.decodings_of(place.row), self) if runs else None
        if found is not None:
            columns |= {
                "ours": f"{found.mean:.2f}",
                "spread": "" if found.spread is None else f"{found.spread:.2f}",
                "low": "" if found.low is None else f"{found.low:.2f}",
                "high": "" if found.high is None else f"{found.high:.2f}",
                "difference": difference(found.mean, columns["printed"], place.why_not),
                "test_set": found.test_set,
                "signature": found.signature,
            }
        return columns | place.comparison(self, columns["ours"])

    def shown(self, values: Mapping[str, str]) -> dict[str, str]:
        spread = f" ± {values['spread']}" if values["spread"] else ""
        interval = f"{values['low']}–{values['high']}" if values["low"] else ""
        return {"printed": values["printed"], "ours": values["ours"] + spread, "95 %": interval}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        seen = {(row["test_set"], row["signature"]) for row in values if row["ours"]}
        made = "; ".join(f"{test_set}, {signature}" for test_set, signature in sorted(seen)) or "not run"
        return f"{self.metric} of {self.dataset} ({', '.join(self.splits)}){remark}. Ours: {made}."


def difference(ours: float, printed: str, why_not: str) -> str:
    if not printed:
        return ""
    return NOT_COMPARABLE if why_not else f"{ours - float(printed):+.2f}"
