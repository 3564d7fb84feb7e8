"""What a training run knows of itself besides weights and moments: all of it is in every checkpoint."""

import math
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from pipeline.config import TrainingConfig
from pipeline.core.records.training import BestLoss, Loss, RollBack, TrainingLoss

INSANE = 10
"""Times the loss of a uniform guess, or the best so far: an exploded model is beyond, an overfitted one is not."""


@dataclass
class Sums:
    """Loss added up over target tokens, in nats: `loss` with smoothing, `nll` without."""

    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0

    def add(self, other: "Sums") -> None:
        self.loss += other.loss
        self.nll += other.nll
        self.tokens += other.tokens

    def per_token(self) -> TrainingLoss:
        tokens = max(self.tokens, 1)
        nll = self.nll / tokens
        return TrainingLoss(loss_per_token=self.loss / tokens, nll_per_token=nll, perplexity=perplexity(nll))


def perplexity(nll: float) -> float:
    """exp(nll), infinite when it can't be told from that."""
    return math.exp(nll) if nll < 700 else math.inf


@dataclass
class TrainingState:
    """Updates done so far, how often the learning rate was lowered, and measurements that go on across a restart."""

    step: int = 0
    skipped_updates: int = 0
    skipped_in_a_row: int = 0
    since_validation: Sums = field(default_factory=Sums)
    train: TrainingLoss | None = None
    fit: Loss | None = None
    dev: Loss | None = None
    best_dev: BestLoss | None = None
    annealings: int = 0
    continued_from: str | None = None
    good_step: int | None = None
    """Of the newest kept weights that a later validation found sane."""
    returned: RollBack | None = None

    def is_sane(self, dev: Loss, vocab_size: int) -> bool:
        """Whether a model of that development loss is worth going on from: one that overfits or has hardly begun is."""
        worst = max(math.log(vocab_size), self.best_dev.nll_per_token if self.best_dev else 0.0)
        return dev.nll_per_token <= INSANE * worst  # of no number nothing is true

    def kept_step(self, every: int) -> int | None:
        """Of the newest weights that are kept after every so many updates, and were not given up; None before any."""
        step = self.step // every * every
        if self.returned and self.returned.gave_up(step):
            return self.returned.to
        return step or None

    def record_validation(self, fit: Loss, dev: Loss) -> bool:
        """Close the stretch since the last validation, and keep the best of all; whether this one is the best.

        fit, dev: as measured on training data and on the development set, without dropout.
        """
        self.train, self.since_validation = self.since_validation.per_token(), Sums()
        self.fit, self.dev = fit, dev
        is_best = self.best_dev is None or dev.nll_per_token < self.best_dev.nll_per_token
        if is_best:
            self.best_dev = BestLoss(step=self.step, **dict(dev))
        return is_best

    def out_of_patience(self, training: TrainingConfig) -> bool:
        """Early stopping: whether `patience` validations have passed since the best, at every so many updates."""
        if training.patience is None or self.best_dev is None:
            return False
        return self.step - self.best_dev.step >= training.patience * training.validate_every

    def as_dict(self) -> dict[str, Any]:
        return TypeAdapter(TrainingState).dump_python(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "TrainingState":
        return TypeAdapter(cls).validate_python(content)
