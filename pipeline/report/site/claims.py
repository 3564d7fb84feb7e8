"""Claims with their evidence drawn."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.analysis.claims.verdicts import ClaimResult, Verdict
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.view import PaperView
from pipeline.core.errors import UserError
from pipeline.report.site.charts import Chart, evidence
from pipeline.report.site.present import Present


@dataclass(frozen=True)
class ShownClaim:
    name: str
    group: str
    statement: str
    printed: str
    verdict: str
    why: str = ""
    """Why it was not judged."""
    ours: str = ""
    test: str = ""
    p_value: float | None = None
    chart: Chart | None = None

    @property
    def mark(self) -> str:
        return self.verdict.replace(" ", "-")


def shown_claims(present: Present, paper: str) -> list[ShownClaim]:
    """In the order of claims.yaml."""
    results = present.project.claims[paper].evaluate(PaperView(present.project, paper), (NotRun, UserError))
    return [shown_claim(one) for one in results]


def shown_claim(one: ClaimResult) -> ShownClaim:
    found, said = one.found, (one.name, one.group, one.claim.full_statement, one.claim.printed, str(one.verdict))
    if found is None:
        return ShownClaim(*said, why=one.why)
    rows = [
        {"name": part.name, "value": part.value, "low": part.low, "high": part.high}
        for part in found.evidence
        if part.error is not None
    ]
    chart = evidence(rows) if rows else None
    return ShownClaim(
        *said, why=one.why, ours=found.ours, test=found.test_description, p_value=one.p_value, chart=chart
    )


def tally(claims: Iterable[ShownClaim]) -> list[tuple[str, str, int]]:
    """(verdict, mark, how many), in the order of the verdicts."""
    counted = Counter(claim.verdict for claim in claims)
    return [(str(name), name.replace(" ", "-"), counted[name]) for name in Verdict if counted[name]]
