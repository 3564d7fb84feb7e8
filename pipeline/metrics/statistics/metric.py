"""What a metric is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

import numpy as np


class Inputs:
    """What a stage has of one split, and metrics read."""

    folder: ClassVar[str]
    """In a run's folder: where that stage writes its score files."""


Read = TypeVar("Read", bound=Inputs)


@dataclass(frozen=True)
class Metric(Generic[Read]):
    """A score of a test set, made of statistics that are summed over its sentences."""

    name: str
    """Its module's; its key in score files."""
    reads: type[Read]
    statistics: Callable[[Read], np.ndarray]
    """(N, F) of N sentences (or batches)."""
    total: Callable[[np.ndarray], np.ndarray]
    """Scores (…,) of summed statistics (…, F), of many corpora (resamples) at once."""
    signature: Callable[[Read], str]
    """How it was counted: what has to be equal for two scores to be comparable."""
    better: Literal["higher", "lower"] = "higher"
    nothing_learned_at: float | None = 0.0
    """A score that is no better says that nothing was learned; None = there is no such score."""
    applies: Callable[[Read], bool] = lambda inputs: True
    """Whether it is defined for a test set."""

    def nothing_learned(self, scores: np.ndarray) -> bool:
        """Whether none of `scores` says that anything was learned."""
        if self.nothing_learned_at is None:
            return False
        useless = scores <= self.nothing_learned_at if self.better == "higher" else scores >= self.nothing_learned_at
        return bool(useless.all())
