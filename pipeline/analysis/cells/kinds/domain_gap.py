"""How far a system's error rate lies from a target-trained one, of the way to a source-trained one (Cold Fusion)."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.analysis.cells.cell import Place, Row
from pipeline.analysis.cells.measured_cell import MeasuredCell
from pipeline.analysis.names import DecodingName, SystemName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product, RunId
from pipeline.metrics.statistics.edits import domain_gap

MEANING = "(WER - WER if trained on target) / (WER if trained on source - WER if trained on target), %, if defined"


class DomainGapCell(MeasuredCell):
    """How far a system's word error rate lies from a target-trained one, of the way to a source-trained one, in %."""

    kind: Literal["domain_gap"]
    source_trained: SystemName = Field(description="System at 100 %")
    target_trained: SystemName = Field(description="System at 0 %")
    ends_decoding: DecodingName = Field(description="Named decoding of those two")

    def end_runs(self, view: PaperView) -> list[RunId]:
        """Of both ends, the source-trained one first."""
        return [run for end in (self.source_trained, self.target_trained) for run in view.runs(end, self.dataset)]

    def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
        if runs := self.runs(view, row):
            yield from view.scored(runs, self, self.decodings_of(row))
            yield from view.scored(self.end_runs(view), self, [self.ends_decoding])

    def fill(self, place: Place) -> dict[str, str]:
        gaps = self.gaps(place)
        ours = f"{statistics.fmean(gaps):.2f}" if gaps else ""
        return {"printed": self.printed_in(place.row), "ours": ours} | place.comparison(self, ours)

    def gaps(self, place: Place) -> list[float]:
        """The domain gap of each seed that all three have; none where the ends are as good, or a run is missing."""
        view, measured = place.table.view, place.table.measured
        runs, ends, gaps = self.runs(view, place.row), self.end_runs(view), []
        for seed in dict.fromkeys(run.seed for run in runs):
            own = [run for run in runs if run.seed == seed]
            sides = [(own, self.decodings_of(place.row))]
            sides += [([end], [self.ends_decoding]) for end in ends if end.seed == seed]
            if len(sides) < 3:  # one of the ends is trained with fewer seeds
                continue
            found = [measured.measure(side, decodings, self) for side, decodings in sides]
            rates = [one.mean for one in found if one is not None]
            if len(rates) < len(found) or rates[1] == rates[2]:
                return []
            gaps.append(domain_gap(*rates))
        return gaps

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        return f"{MEANING}, of the runs on {self.dataset}{remark}."
