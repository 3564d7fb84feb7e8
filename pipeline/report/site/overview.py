"""A paper in a few lines: its question, the answer at this scale, differences between systems, and what they cost."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.analysis.cells.cell import RunCell
from pipeline.analysis.cells.scores import MeasuredCell
from pipeline.analysis.claims.scores import OrderClaim
from pipeline.analysis.claims.verdicts import ClaimResult, Verdict
from pipeline.analysis.view import NamedScore
from pipeline.core.artifacts import RunId, Trained
from pipeline.core.errors import count_of
from pipeline.metrics import metric_named
from pipeline.papers.printed_scores import printed_score
from pipeline.report.filled_table import FilledTable
from pipeline.report.labels import Labels, metric_title
from pipeline.report.site.charts import DotChart, Number, differences
from pipeline.report.site.site_data import SiteData
from pipeline.workflow.targets import scale_with_tables, snakemake_command

MOST_PAIRS = 8
"""Differences on the first screen."""


@dataclass(frozen=True)
class RunTotals:
    """Resources that the runs of a paper took; empty while none is done.

    Attributes:
        runs: All runs that the paper's reports need.
        done: Number of trained runs.
        device_hours: Hours of all trainings.
        began: Start of the first training; empty if none started.
        ended: End of the last training; empty if none ended.
        commits: Commits of the code that trained.
        hardware: Devices that trained.
        datasets: Each dataset of the paper, and the one that was used.
    """

    runs: list[RunId]
    done: int
    device_hours: float
    began: str
    ended: str
    commits: list[str]
    hardware: list[str]
    datasets: list[tuple[str, str]]

    @property
    def missing(self) -> int:
        """Return how many runs are not done."""
        return len(self.runs) - self.done

    @property
    def hours_left(self) -> float | None:
        """Return the cost of the missing runs at the mean cost of the finished ones; None if none is finished."""
        return self.missing * self.device_hours / self.done if self.done else None


@dataclass(frozen=True)
class Card:
    """A paper on the first screen.

    Attributes:
        record: Its settings.
        answer: Answer to its question at this scale.
        chart: Differences between systems; None if none was measured.
        tally: Verdict, mark and count, in the order of the verdicts.
        totals: Resources of its runs.
        scale: The scale of that command: this one, or the first that has tables of it.
        command: Command that makes its results.
        measured: A run of its own, or a claim, was measured.
    """

    paper: str
    record: Any
    answer: str
    chart: DotChart | None
    tally: list[tuple[str, str, int]]
    totals: RunTotals
    scale: str
    command: str
    measured: bool

    @property
    def question(self) -> str:
        """Return the paper's question, or a general one."""
        return self.record.question or f"Do the results of “{self.record.title}” repeat?"

    @property
    def last_made(self) -> tuple[str, float]:
        """Return a key by which the paper that was run last is the greatest."""
        return self.totals.ended, self.totals.done / max(1, len(self.totals.runs))


@dataclass(frozen=True)
class Difference:
    """A claim that one system is above another under a score, and how far it was.

    Attributes:
        name: The two systems.
        printed: The paper's difference; None if a number is not printed.
        ours: Our difference; positive if the claim holds.
        primary: The claim is a primary one.
        whole: It is a claim of its own, not a link of a chain.
    """

    name: str
    printed: float | None
    ours: Number
    primary: bool
    whole: bool

    @property
    def as_printed(self) -> bool:
        """Return whether ours has the sign that the paper says."""
        return self.ours.value > 0


def make_card(site: SiteData, paper: str, results: Sequence[ClaimResult], tables: dict[str, FilledTable]) -> Card:
    """Sum up a paper on the card of the first screen."""
    project, record = site.project, site.project.papers[paper]
    labels = Labels(site.view(paper))
    score, found = main_differences(site, paper, results, labels)
    chart = difference_chart(labels, score, found) if score else None
    scale = scale_with_tables(project, paper)
    return Card(
        paper,
        record,
        answer(project.config.scale, found, results),
        chart,
        tally(results),
        run_totals(site, paper, tables),
        scale,
        snakemake_command(project, paper, scale=scale),
        measured=bool(found) or any(run.paper == paper and site.trained(run) for run in site.runs),
    )


def main_differences(
    site: SiteData, paper: str, results: Sequence[ClaimResult], labels: Labels
) -> tuple[NamedScore | None, list[Difference]]:
    """Return the score under which most order claims between trained systems were measured, and their differences.

    Returns:
        The score, None if nothing was measured; the differences, primary ones first.
    """
    claims = site.project.claims[paper]
    scores, named = claims.scores, claims.claims
    found: dict[str, list[Difference]] = {}
    for result in results:
        if (
            result.found is None
            or result.found.not_trained
            or not isinstance(result.claim, OrderClaim)
            or result.claim.margin
            or not result.found.evidence
        ):
            continue
        (lower, upper), (evidence,) = result.claim.compared, result.found.evidence
        if not math.isfinite(evidence.value):
            continue
        score = scores[result.claim.score]
        scale = metric_named(score.metric).comparison_scale
        numbers = [printed_score(site.project, paper, term, score) for term in (lower, upper)]
        printed = None
        if None not in numbers:
            low, high = (float(scale(np.array(number))) for number in numbers)
            printed = high - low
        name = " − ".join(labels.pair([upper, lower]))
        ours = Number(evidence.value, evidence.low, evidence.high)
        difference = Difference(name, printed, ours, result.group == "primary", result.name in named)
        found.setdefault(result.claim.score, []).append(difference)
    if not found:
        return None, []
    chosen = max(found, key=lambda name: (len(found[name]), sum(difference.primary for difference in found[name])))
    whole = [difference for difference in found[chosen] if difference.whole] or found[chosen]
    return scores[chosen], sorted(whole, key=lambda difference: not difference.primary)


def difference_chart(labels: Labels, score: NamedScore, found: Sequence[Difference]) -> DotChart:
    """Draw printed differences and ours, up to `MOST_PAIRS`, in panels with axes of their own."""
    shown, metric = found[:MOST_PAIRS], metric_named(score.metric)
    unit = metric_title(score.metric)
    if metric.comparison_scale is not np.asarray:
        unit = f"log {unit}"
    panels: dict[str, list[Number | None]] = {}
    if any(difference.printed is not None for difference in shown):
        panels["printed"] = [None if difference.printed is None else Number(difference.printed) for difference in shown]
    panels[f"ours, 95 %, on {labels.test_sets(score)}"] = [difference.ours for difference in shown]
    title = f"Differences in {unit}; right of zero: as claimed"
    return differences(title, [difference.name for difference in shown], panels)


def answer(scale: str, found: Sequence[Difference], results: Iterable[ClaimResult]) -> str:
    """Answer the question of a paper in a sentence or two."""
    verdicts = Counter(result.verdict for result in results)
    total = sum(count for verdict, count in verdicts.items() if verdict not in (Verdict.TESTED, Verdict.NOT_RUN))
    if not total:
        return f"Not known at scale {scale} yet."
    parts = [
        f"{verdicts[verdict]} {verdict}" for verdict in (Verdict.UPHELD, Verdict.CONTRADICTED) if verdicts[verdict]
    ]
    undecided = total - verdicts[Verdict.UPHELD] - verdicts[Verdict.CONTRADICTED]
    parts += [f"{undecided} undecided"] if undecided else []
    measured = f"{count_of(total, 'claim')} measured at scale {scale}"
    claims = f"Of {measured}: {', '.join(parts)}." if undecided < total else f"Of {measured}, none is decided yet."
    if not found:
        return claims
    agreeing = sum(difference.as_printed for difference in found)
    pairs = f"{agreeing} of {len(found)} differences {'is' if agreeing == 1 else 'are'} in the claimed direction."
    if len(found) == 1:
        pairs = f"The one measured difference is {'' if agreeing else 'not '}in the claimed direction."
    return f"{pairs} {claims}"


def tally(results: Iterable[ClaimResult]) -> list[tuple[str, str, int]]:
    """Return (verdict, mark, how many) in the order of the verdicts."""
    counted = Counter(result.verdict for result in results)
    return [(str(name), mark_of(name), counted[name]) for name in Verdict if counted[name]]


def mark_of(verdict: str) -> str:
    """Return the class of a badge."""
    return verdict.replace(" ", "-")


def run_totals(site: SiteData, paper: str, tables: dict[str, FilledTable]) -> RunTotals:
    """Add up the resources that the runs of a paper took."""
    needed = site.graph.closure(site.graph.reports([paper]))
    runs = [artifact.run for artifact in needed if isinstance(artifact, Trained)]
    trained = [record for run in runs if (record := site.trained(run))]
    costs = [cost for run in runs if (cost := site.cost(run))]
    starts = [start for cost in costs for start in cost.starts]
    cells = [cell for filled in tables.values() for cell in filled.entry.cells.values()]
    named = {cell.dataset for cell in cells if isinstance(cell, RunCell)}
    named |= {cell.scored_on for cell in cells if isinstance(cell, MeasuredCell) and cell.scored_on}
    return RunTotals(
        runs=runs,
        done=len(trained),
        device_hours=sum(cost.device_hours for cost in costs),
        began=min((start.started for start in starts), default=""),
        ended=max((start.stopped for start in starts), default=""),
        commits=sorted({str(record.provenance.get("commit", "")) for record in trained} - {""}),
        hardware=sorted({cost.hardware for cost in costs}),
        datasets=sorted((name, site.project.stand_in(name)) for name in named),
    )
