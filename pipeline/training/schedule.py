"""Learning rates, a pure function of the update: nothing of it needs to be stored.

Attention Is All You Need, eq. 3; Weighted Transformer Network, section 3.2, for kappa and alpha.
"""

from pipeline.config import ModelConfig, TrainingConfig


def inverse_sqrt(width: float, iteration: int, warmup_steps: int) -> float:
    """width^-0.5 * min(it^-0.5, it * warmup^-1.5), eq. 3; `iteration` counts from 1."""
    return width**-0.5 * min(iteration**-0.5, iteration * warmup_steps**-1.5)


class Schedule:
    """Learning rates of the two parameter groups, each with a factor of its own. Updates count from 0."""

    def __init__(self, model: ModelConfig, training: TrainingConfig):
        self.model, self.training = model, training
        self.first_frozen = training.max_steps - (training.branch_freeze_steps or 0)

    def weights(self, update: int) -> float:
        """Eq. 3 with d_model and `warmup_steps`."""
        return self.training.lr_factor * inverse_sqrt(self.model.d_model, update + 1, self.training.warmup_steps)

    def branch_weights(self, update: int) -> float:
        """The rate of kappa and alpha: eq. 3 with d_model / N in place of d_model, and a warm-up of its own."""
        width = self.model.d_model / self.model.num_layers
        warmup_steps = self.training.branch_warmup_steps or self.training.warmup_steps
        return self.training.branch_lr_factor * inverse_sqrt(width, update + 1, warmup_steps)

    def frozen(self, update: int) -> bool:
        """Whether kappa and alpha keep their values in this update (the last `branch_freeze_steps`)."""
        return update >= self.first_frozen
