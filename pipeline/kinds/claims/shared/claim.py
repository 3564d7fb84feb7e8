"""What every claim has and does."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipeline.kinds.claims.shared.findings import Findings, NotRun
from pipeline.kinds.scored import ScoredSplits
from pipeline.kinds.view import PaperView
from pipeline.products import Product
from pipeline.schema import Closed

if TYPE_CHECKING:
    from pipeline.kinds.claims.shared.measurements import Measurements

Number = Annotated[float, Field(strict=False)]


class NamedScore(ScoredSplits):
    """What is compared: a metric under one decoding."""

    decoding: str = Field(description="Named decoding of the paper that owns the system")


Scores = Mapping[str, NamedScore]
"""Those of a paper's claims.yaml, by name."""


class Claim(Closed):
    """What every claim has."""

    statement: str = Field(description="What the paper says, in one sentence")
    printed: str = Field(description="The evidence that it prints, or where it says so")
    scales: list[str] | None = Field(default=None, description="Scales at which it can be tested; null = all")

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
    def judge(self, measured: "Measurements") -> Findings:
        """Raises NotRun, naming what is missing."""

    def findings(self, measured: "Measurements") -> Findings:
        """`judge` at the scales at which it can be tested. Raises NotRun at others, and as `judge` does."""
        if self.scales is not None and not self.is_tested(measured.view.layout.scale):
            raise NotRun(f"can be tested at scale {', '.join(self.scales)} only")
        return self.judge(measured)
