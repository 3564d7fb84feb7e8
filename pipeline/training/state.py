"""State of a training besides weights and moments; every resume file holds all of it."""

import math
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from pipeline.config import TrainingConfig
from pipeline.core.records.training import BestLoss, Loss, RollBack, TrainingLoss

FIT_STEPS = 8
"""Training steps whose data are measured again: 3 % of the time if every hundredth step is followed by a validation."""
EXPLODED = 10
"""A dev loss this many times that of a uniform guess (or the best so far) means divergence, not overfitting."""


@dataclass
class Sums:
    """Sums over target tokens in nats: `loss` with label smoothing, `nll` without."""

    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0

    def add(self, other: "Sums") -> None:
        """Add the sums of further tokens."""
        self.loss += other.loss
        self.nll += other.nll
        self.tokens += other.tokens

    def per_token(self) -> TrainingLoss:
        """Return the means per token, of which there must be some."""
        nll = self.nll / self.tokens
        return TrainingLoss(loss_per_token=self.loss / self.tokens, nll_per_token=nll, perplexity=perplexity(nll))


def perplexity(nll: float) -> float:
    """Return exp(nll), or infinity if that overflows."""
    return math.exp(nll) if nll < 700 else math.inf


@dataclass
class TrainingState:
    """Steps done so far, annealings of the learning rate, and measurements that survive a restart."""

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
    """Step of the newest kept weights that a later validation found sane."""
    returned: RollBack | None = None
    micro_batch: int | None = None
    """Positions of a micro-batch after memory ran out, so that a resumed training splits its steps alike."""

    def is_sane(self, dev: Loss, vocab_size: int) -> bool:
        """Return whether the dev loss is finite and far from that of an exploded model.

        An overfitted model or one that has hardly begun is sane.
        """
        worst = max(math.log(vocab_size), self.best_dev.nll_per_token if self.best_dev else 0.0)
        return dev.nll_per_token <= EXPLODED * worst  # false for NaN

    def kept_step(self, every: int) -> int | None:
        """Return the step of the newest kept weights that were not given up, None before any."""
        step = self.step // every * every
        if self.returned and self.returned.gave_up(step):
            return self.returned.to
        return step or None

    def record_validation(self, fit: Loss, dev: Loss) -> bool:
        """Record a validation, start new sums of the training loss, and return whether `dev` is the best so far."""
        self.train = self.since_validation.per_token() if self.since_validation.tokens else None
        self.since_validation = Sums()
        self.fit, self.dev = fit, dev
        is_best = self.best_dev is None or dev.nll_per_token < self.best_dev.nll_per_token
        if is_best:
            self.best_dev = BestLoss(step=self.step, **dict(dev))
        return is_best

    def out_of_patience(self, training: TrainingConfig) -> bool:
        """Return whether `patience` validations have passed since the best one (early stopping)."""
        if training.patience is None or self.best_dev is None:
            return False
        return self.step - self.best_dev.step >= training.patience * training.validate_every

    def as_dict(self) -> dict[str, Any]:
        """Return the state as JSON data."""
        return TypeAdapter(TrainingState).dump_python(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "TrainingState":
        """Restore the state from JSON data."""
        return TypeAdapter(cls).validate_python(content)
