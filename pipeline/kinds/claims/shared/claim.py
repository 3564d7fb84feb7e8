"""What every claim has and does, and what is found for it."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pipeline.kinds.claims.shared.measurements import Measurements, NotRun
from pipeline.kinds.claims.shared.terms import Scores
from pipeline.kinds.evidence import Evidence, verdict
from pipeline.kinds.names import ScaleName
from pipeline.kinds.view import PaperView
from pipeline.products import Product
from pipeline.schema import Closed

Number = Annotated[float, Field(strict=False)]


@dataclass(frozen=True)
class Findings:
    """`ours` as a reader sees it, the quantities that are positive if the claim is true, and how they were tested."""

    ours: str
    evidence: list[Evidence]
    test: str
    settled: str | None = None
    """The verdict of a claim that needs no evidence."""

    @property
    def verdict(self) -> str:
        return self.settled or verdict(self.evidence)

    @property
    def p_value(self) -> float | None:
        """The largest of the evidence; None without any."""
        return max((one.p_value for one in self.evidence if one.p_value is not None), default=None)


class Claim(Closed):
    """What every claim has."""

    statement: str = Field(description="What the paper says, in one sentence")
    printed: str = Field(description="The evidence that it prints, or where it says so")
    scales: list[ScaleName] | None = Field(default=None, description="Scales at which it can be tested; null = all")

    @property
    def datasets(self) -> list[str]:
        """Datasets that it names itself, beside those of its scores, as the papers name them."""
        return []

    def check(self, scores: Scores) -> None:
        """Raises ValueError when it names a score that is not there or does not fit."""

    def is_tested(self, scale: str) -> bool:
        """Whether it can be tested at a scale."""
        return self.scales is None or scale in self.scales

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        """All that it is judged by, every training among it."""
        return iter(())

    @abstractmethod
    def judge(self, measured: Measurements) -> Findings:
        """Raises NotRun, naming what is missing."""

    def findings(self, measured: Measurements) -> Findings:
        """`judge` at the scales at which it can be tested. Raises NotRun at others, and as `judge` does."""
        if self.scales is not None and not self.is_tested(measured.view.layout.scale):
            raise NotRun(f"can be tested at scale {', '.join(self.scales)} only")
        return self.judge(measured)
