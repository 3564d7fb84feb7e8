"""What a metric is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np


class Described(Protocol):
    """A dataset's record."""

    form: ClassVar[Any]
    collector: ClassVar[str | None]


class Inputs:
    """What a stage has of one split, and metrics read."""

    folder: ClassVar[str]
    """In a run's folder: where that stage writes its score files."""
    forms: ClassVar[tuple[str, ...]]
    """Of the datasets that it can be had of."""
    collector: ClassVar[str | None] = None
    """Their collector, where only one writes down what is needed."""

    @classmethod
    def can_be_had_of(cls, dataset: "Described") -> bool:
        return dataset.form in cls.forms and cls.collector in (None, dataset.collector)


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
    applies: Callable[[Read], bool] = lambda inputs: True
    """Whether it is defined for a test set."""
    judged_as: Callable[[np.ndarray], np.ndarray] = np.asarray
    """Differences between systems are judged of this of their scores: noise is alike there, however good they are."""

    @property
    def sign(self) -> Literal[1, -1]:
        """What to multiply a difference by that is to be above zero where a system is better."""
        return 1 if self.better == "higher" else -1
