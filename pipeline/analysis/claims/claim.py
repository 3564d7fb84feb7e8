"""What every claim has and does, and what is found for it."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.names import ScaleName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product
from pipeline.core.schema import Closed
from pipeline.core.schema import Number as Number


@dataclass(frozen=True)
class Findings:
    """`ours` as a reader sees it, the quantities that are positive if the claim is true, and how they were tested."""

    ours: str
    evidence: list[Evidence]
    test: str
    not_trained: str = ""
    """Which system has not learnt enough for the quantities to say anything; empty if all have."""

    @property
    def tested(self) -> str:
        """How, in words: the unit that was resampled, and the noise between trainings."""
        noise = dict.fromkeys(f"noise between trainings {one.noise}" for one in self.evidence if one.noise)
        return "; ".join(filter(None, (self.test, *noise)))

    @property
    def p_values(self) -> list[float]:
        return [one.p_value for one in self.evidence if one.p_value is not None]

    @property
    def p_upheld(self) -> float:
        """One-sided: all quantities have to be positive."""
        return max(self.p_values)

    @property
    def p_contradicted(self) -> float:
        """One-sided: one negative quantity is enough, of which there are several to choose from."""
        return min(1.0, len(self.evidence) * min(1 - p for p in self.p_values))

    @property
    def is_for(self) -> bool:
        """Whether it speaks for the claim rather than against it."""
        return self.p_upheld <= self.p_contradicted

    @property
    def p_value(self) -> float | None:
        """Two-sided: how often chance alone would speak so clearly for the claim or against it; None if unknown."""
        if not self.evidence or len(self.p_values) < len(self.evidence):
            return None
        return min(1.0, 2 * min(self.p_upheld, self.p_contradicted))


class Claim(Closed):
    """What every claim has."""

    about: ClassVar[Literal["trainings", "layers", "identity"]] = "trainings"

    statement: str = Field(description="What the paper says, in one sentence")
    printed: str = Field(description="The evidence that it prints, or where it says so")
    extra: bool = Field(default=False, description="Whether it is ours: the paper does not say so")
    scales: list[ScaleName] | None = Field(default=None, description="Scales at which it can be tested; null = all")

    @property
    def said(self) -> str:
        """The statement, and whose it is if not the paper's."""
        return f"{self.statement} (Ours: the paper does not say so.)" if self.extra else self.statement

    @property
    def datasets(self) -> list[str]:
        """Datasets that it names itself, beside those of its scores, as the papers name them."""
        return []

    def check(self, scores: Scores) -> None:
        """Raises ValueError when it names a score that is not there or does not fit."""

    def links(self) -> dict[str, Self]:
        """The claims that it consists of, each judged alone, by what ends their names; one has an empty one."""
        return {"": self}

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        """(system, dataset) of those that have to be trained to their plateau for the claim to be fair to them."""
        return []

    def favoured(self, scores: Scores) -> list[tuple[str, str]]:
        """As `baselines`, of those that have to be there before the claim is contradicted: it would be unfair to it."""
        return []

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        """The quantity whose noise decides it, the dataset, and the systems whose difference it is; None: not so."""
        return None

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


class Chain(Claim):
    """About what stands in an order: every step from one to the next is judged alone."""

    ascending: list[Any]

    def links(self) -> dict[str, Self]:
        if len(self.ascending) == 2:
            return super().links()
        steps = pairwise(self.ascending)
        return {f"-{n}": self.model_copy(update={"ascending": [*step]}) for n, step in enumerate(steps, start=1)}
