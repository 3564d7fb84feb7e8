"""Columns of scores: the score itself, the gain over another row, and the domain gap of Cold Fusion."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from pipeline.analysis.cells.cell import (
    NOT_COMPARABLE,
    Cell,
    CellContext,
    PrintedTable,
    Row,
    RunCell,
    shown_interval,
)
from pipeline.analysis.evidence import contrast
from pipeline.analysis.reference_types import DecodingName, SystemName
from pipeline.analysis.view import PaperView, ScoredSplits
from pipeline.core.artifacts import Artifact, RunId
from pipeline.core.schema import unknown
from pipeline.metrics.error_rates import domain_gap

SCORE_COLUMNS = ("printed", "ours", "spread", "low", "high", "difference", "test_set", "signature")
OTHER_RECIPES = {"bleu_paper": ("bleu_tok", "sacrebleu")}
"""Metrics of the same outputs that the CSV has beside one, never compared with a printed number."""
DOMAIN_GAP = "(WER - WER if trained on target) / (WER if trained on source - WER if trained on target), %, if defined"


class MeasuredCell(RunCell, ScoredSplits):
    """A column that is read from a metric of some runs and decodings on some test sets."""

    decoding: DecodingName | None = Field(default=None, description="Named decoding of the paper that owns the system")
    decoding_column: str | None = Field(
        default=None, description="Column that names each row's decoding instead; several names are averaged"
    )

    @model_validator(mode="after")
    def one_decoding(self) -> Self:
        """Return the cell if it names one decoding.

        Raises:
            ValueError: It has neither `decoding` nor `decoding_column`, or both.
        """
        if (self.decoding is None) == (self.decoding_column is None):
            raise ValueError("needs one of decoding and decoding_column")
        return self

    @property
    def compared_metric(self) -> str | None:
        return self.metric

    def columns(self) -> set[str]:
        return super().columns() | ({self.decoding_column} if self.decoding_column else set())

    def decodings_of(self, row: Row) -> list[str]:
        """Return the decodings of a row."""
        return [self.decoding] if self.decoding else row[self.decoding_column or ""].split()


class ScoreCell(MeasuredCell):
    """The score itself."""

    required: ClassVar[bool] = True
    kind: Literal["score"] = "score"

    def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
        yield from view.scored(self.runs(view, row), self, self.decodings_of(row))

    def fill(self, context: CellContext) -> dict[str, str]:
        """Fill in the mean over seeds, spread, interval and difference beside the printed number."""
        columns = dict.fromkeys(SCORE_COLUMNS, "") | {"printed": self.printed_in(context.row)}
        runs = self.runs(context.table.view, context.row)
        found = context.table.folders.measurement(runs, self.decodings_of(context.row), self) if runs else None
        if found is not None:
            columns |= {
                "ours": f"{found.mean:.2f}",
                "spread": "" if found.spread is None else f"{found.spread:.2f}",
                "low": "" if found.low is None else f"{found.low:.2f}",
                "high": "" if found.high is None else f"{found.high:.2f}",
                "difference": difference(found.mean, columns["printed"], context.why_not),
                "test_set": found.test_set,
                "signature": found.signature,
            }
        return columns | self.other_recipes(context, runs) | context.comparison(self, columns["ours"])

    def other_recipes(self, context: CellContext, runs: Sequence[RunId]) -> dict[str, str]:
        """Return the same outputs scored by other recipes, each with its signature."""
        columns: dict[str, str] = {}
        for metric in OTHER_RECIPES.get(self.metric, ()):
            other = self.model_copy(update={"metric": metric})
            decodings = self.decodings_of(context.row) if runs else []
            found = context.table.folders.mean_if_scored(runs, decodings, other)
            columns[metric], columns[f"{metric}_signature"] = (f"{found[0]:.2f}", found[1]) if found else ("", "")
        return columns

    def shown(self, values: Mapping[str, str]) -> dict[str, str]:
        spread = f" ± {values['spread']}" if values["spread"] else ""
        interval = shown_interval(values["low"], values["high"])
        return {"printed": values["printed"], "ours": values["ours"] + spread, "95 %": interval}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        seen = {(row["test_set"], row["signature"]) for row in values if row["ours"]}
        made = "; ".join(f"{test_set}, {signature}" for test_set, signature in sorted(seen)) or "no score yet"
        scored = self.scored_on or self.dataset
        return f"{self.metric} of {scored} ({', '.join(self.splits)}){remark}. Ours: {made}."


def difference(ours: float, printed: str, why_not: str) -> str:
    """Return our number minus the printed one, or that they are not comparable; empty if none is printed.

    Args:
        ours: Our mean over seeds.
        printed: Printed number as text.
        why_not: Reason why both are not comparable; empty if they are.
    """
    if not printed:
        return ""
    return NOT_COMPARABLE if why_not else f"{ours - float(printed):+.2f}"


class GainCell(Cell):
    """The difference between a row's score and that of another row."""

    kind: Literal["gain"]
    cell: str = Field(description="Score column of this table that is compared")
    over: SystemName = Field(description="System of the other row")

    def faults(self, rows: Sequence[Row], cells: Mapping[str, Cell], where: str) -> Iterator[str | None]:
        scores = {name: cell for name, cell in cells.items() if isinstance(cell, ScoreCell)}
        yield unknown(self.cell, scores, f"{where}.cell")
        if self.cell in scores:
            yield unknown(self.over, {row[scores[self.cell].system] for row in rows}, f"{where}.over")

    def compared(self, table: PrintedTable) -> tuple[ScoreCell, int]:
        """Return the score column that is compared, and the index of the other row."""
        score = table.cells[self.cell]
        assert isinstance(score, ScoreCell), "checked when the paper was loaded"
        return score, next(number for number, row in enumerate(table.rows) if row[score.system] == self.over)

    def comparability_sources(self, table: PrintedTable, index: int) -> list[tuple[Cell, Row]]:
        score, other = self.compared(table)
        return [(score, table.rows[index]), (score, table.rows[other])]

    def fill(self, context: CellContext) -> dict[str, str]:
        """Fill in the difference paired by sentence; empty in the other row itself, or if one was not run."""
        columns = dict.fromkeys(("printed", "ours", "low", "high"), "") | {"printed": self.printed_in(context.row)}
        score, other = self.compared(context.table)
        folders = context.table.folders
        rows = [context.row, context.table.rows[other]]
        sides = [(score.runs(context.table.view, row), score.decodings_of(row), score) for row in rows]
        if context.index != other and all(folders.measurement(*side) for side in sides):
            own, over = (folders.sample(*side) for side in sides)
            found = contrast("", [(1, own), (-1, over)])
            known = {"low": f"{found.low:+.2f}", "high": f"{found.high:+.2f}"} if found.error is not None else {}
            columns |= {"ours": f"{found.value:+.2f}"} | known
        return columns | context.comparison(self, columns["ours"])

    def shown(self, values: Mapping[str, str]) -> dict[str, str]:
        interval = shown_interval(values["low"], values["high"])
        return {"printed": values["printed"], "ours": values["ours"], "95 %": interval}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        covered = "95 %: over the sentences and, if both rows have several, over the seeds"
        return f"{self.cell} less that of {self.over}, paired by sentence{remark}. {covered}."


class DomainGapCell(MeasuredCell):
    """The domain gap of a word error rate: 0 % as a target-trained system, 100 % as a source-trained one."""

    kind: Literal["domain_gap"]
    source_trained: SystemName = Field(description="System at 100 %")
    target_trained: SystemName = Field(description="System at 0 %")
    ends_decoding: DecodingName = Field(description="Named decoding of both")

    def end_runs(self, view: PaperView) -> list[RunId]:
        """Return the runs of both ends, the source-trained one first."""
        return [run for end in (self.source_trained, self.target_trained) for run in view.runs(end, self.dataset)]

    def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
        if runs := self.runs(view, row):
            yield from view.scored(runs, self, self.decodings_of(row))
            yield from view.scored(self.end_runs(view), self, [self.ends_decoding])

    def fill(self, context: CellContext) -> dict[str, str]:
        gaps = self.gaps(context)
        ours = f"{statistics.fmean(gaps):.2f}" if gaps else ""
        return {"printed": self.printed_in(context.row), "ours": ours} | context.comparison(self, ours)

    def gaps(self, context: CellContext) -> list[float]:
        """Return the domain gap of each seed that all three systems have.

        There is none if the ends are equally good, or a run is missing.
        """
        view, folders = context.table.view, context.table.folders
        runs, ends, gaps = self.runs(view, context.row), self.end_runs(view), []
        for seed in dict.fromkeys(run.seed for run in runs):
            own = [run for run in runs if run.seed == seed]
            sides = [(own, self.decodings_of(context.row))]
            sides += [([end], [self.ends_decoding]) for end in ends if end.seed == seed]
            if len(sides) < 3:  # one of the ends is trained with fewer seeds
                continue
            found = [folders.measurement(side, decodings, self) for side, decodings in sides]
            rates = [sample.mean for sample in found if sample is not None]
            if len(rates) < len(found) or rates[1] == rates[2]:
                return []
            gaps.append(domain_gap(*rates))
        return gaps

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        return f"{DOMAIN_GAP}, of the runs on {self.dataset}{remark}."
