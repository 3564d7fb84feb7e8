"""Claims with their evidence drawn, grouped by verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.claims.verdicts import ClaimResult, Verdict
from pipeline.analysis.evidence import Evidence
from pipeline.report.names import Labels, metric_title
from pipeline.report.site.charts import DotChart, Number, differences
from pipeline.report.site.overview import mark_of


@dataclass(frozen=True)
class ShownClaim:
    """A claim in words.

    Attributes:
        name: Its name in claims.yaml.
        group: Its group, such as `primary`.
        statement: The sentence of the paper.
        about: Systems and data, which distinguish it from the other links of its chain.
        printed: The paper's evidence.
        verdict: Its verdict.
        why: Why it was not decided; empty if it was.
        ours: Our findings.
        test: The test behind its p-value.
        p_value: Adjusted p-value; None if it was not tested.
        chart: Its evidence, drawn.
    """

    name: str
    group: str
    statement: str
    about: str
    printed: str
    verdict: str
    why: str = ""
    ours: str = ""
    test: str = ""
    p_value: float | None = None
    chart: DotChart | None = None

    @property
    def mark(self) -> str:
        """Return the class of its badge."""
        return mark_of(self.verdict)


def shown_claims(labels: Labels, results: Sequence[ClaimResult], scores: dict) -> list[tuple[str, list[ShownClaim]]]:
    """Return (verdict, claims) in the order of the verdicts; primary claims come first.

    Args:
        labels: Names of systems.
        results: Results of the claims.
        scores: Scores of the paper's claims, by name.
    """
    shown = [shown_claim(labels, result, scores) for result in results]
    groups = [(str(verdict), [claim for claim in shown if claim.verdict == verdict]) for verdict in Verdict]
    return [(name, sorted(found, key=lambda claim: claim.group != "primary")) for name, found in groups if found]


def shown_claim(labels: Labels, result: ClaimResult, scores: dict) -> ShownClaim:
    """Put a claim into words.

    Args:
        labels: Names of systems.
        result: Result of the claim.
        scores: Scores of the paper's claims, by name.

    Returns:
        The claim as its page shows it.
    """
    worded = labels.result(result)
    stated = (
        result.name,
        result.group,
        result.claim.full_statement,
        about(labels, result, scores),
        result.claim.printed,
    )
    if worded.found is None:
        return ShownClaim(*stated, str(result.verdict), why=worded.why)
    found = worded.found
    known = [part for part in found.evidence if part.error is not None and math.isfinite(part.value)]
    chart = evidence(known) if known else None
    return ShownClaim(
        *stated, str(result.verdict), worded.why, found.ours, found.test_description, result.p_value, chart
    )


def about(labels: Labels, result: ClaimResult, scores: dict) -> str:
    """Return the systems and data of a claim as `systems: data`; either may be missing.

    Args:
        labels: Names of systems.
        result: Result of the claim.
        scores: Scores of the paper's claims, by name.
    """
    systems = [labels.term(term) for term in result.claim.compared]
    systems = systems or [labels.system(system) for system, _ in result.claim.trainings]
    named = [scores[name] for name in result.claim.score_names]
    tests = "; ".join(dict.fromkeys(labels.test_sets(score) for score in named))
    metrics = " and ".join(dict.fromkeys(metric_title(score.metric) for score in named))
    data = f"{metrics} on {tests}" if named else ", ".join(dict.fromkeys(data for _, data in result.claim.trainings))
    return ": ".join(filter(None, [" and ".join(dict.fromkeys(systems)), data]))


def evidence(known: Sequence[Evidence]) -> DotChart:
    """Draw quantities that are positive if a claim is true."""
    names = [part.name for part in known]
    numbers: list[Number | None] = [Number(part.value, part.low, part.high) for part in known]
    return differences("Evidence with 95 % intervals", names, {"right of zero: as the paper says": numbers})
