"""Claims with their evidence drawn."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.errors import UserError
from pipeline.kinds.claims.shared.claim import Claim, NotRun
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.evidence import Verdict
from pipeline.kinds.view import PaperView
from reprise.site.charts import Chart, evidence
from reprise.site.present import Present


@dataclass(frozen=True)
class ShownClaim:
    name: str
    statement: str
    printed: str
    verdict: str
    why: str = ""
    """Why it was not judged."""
    ours: str = ""
    test: str = ""
    p_value: float | None = None
    chart: Chart | None = None
    one_seed: bool = False

    @property
    def mark(self) -> str:
        return self.verdict.replace(" ", "-")


def shown_claims(present: Present, paper: str) -> list[ShownClaim]:
    """In the order of claims.yaml."""
    claims = present.project.claims[paper]
    measured = Measurements(PaperView(present.project, paper), claims.scores)
    return [shown_claim(name, claim, measured) for name, claim in claims.claims.items()]


def shown_claim(name: str, claim: Claim, measured: Measurements) -> ShownClaim:
    try:
        found = claim.findings(measured)
    except (NotRun, UserError) as missing:
        return ShownClaim(name, claim.statement, claim.printed, Verdict.NOT_RUN, why=str(missing))
    rows = [{"name": one.name, "value": one.value, "low": one.low, "high": one.high} for one in found.evidence]
    return ShownClaim(
        name,
        claim.statement,
        claim.printed,
        str(found.verdict),
        ours=found.ours,
        test=found.test,
        p_value=found.p_value,
        chart=evidence(rows) if rows else None,
        one_seed=len(measured.view.seeds) == 1 and bool(rows),
    )


def tally(claims: Iterable[ShownClaim]) -> list[tuple[str, str, int]]:
    """(verdict, mark, how many), in the order of the verdicts."""
    counted = Counter(claim.verdict for claim in claims)
    known = [*map(str, Verdict), "tested"]
    order = [name for name in known if counted[name]] + [name for name in counted if name not in known]
    return [(name, name.replace(" ", "-"), counted[name]) for name in order]
