"""Learning rates, a function of the training step and of how often the rate was lowered (annealed).

inverse_sqrt: Attention Is All You Need, eq. 3; for kappa and alpha, Weighted Transformer Network, section 4.1.
cosine: a linear warm-up, then half a cosine that falls to zero at the last step.
plateau: lowered when the dev loss stops falling (Convolutional Sequence to Sequence Learning, section 4.2).
"""

import math

from pipeline.config import ModelConfig, TrainingConfig


def inverse_sqrt(width: float, iteration: int, warmup_steps: int) -> float:
    """Return width^-0.5 * min(it^-0.5, it * warmup^-1.5), eq. 3 of Attention Is All You Need.

    Args:
        width: Size of the model, d_model.
        iteration: Number of the step, from 1.
        warmup_steps: Steps until the peak.
    """
    return width**-0.5 * min(iteration**-0.5, iteration * warmup_steps**-1.5)


def cosine(iteration: int, training: TrainingConfig) -> float:
    """Return the fraction of the peak rate: linear warm-up, then half a cosine (Loshchilov and Hutter 2017, eq. 5).

    Args:
        iteration: Number of the step, from 1.
        training: Names the steps of warm-up and of the whole training.
    """
    warmup_steps = training.warmup_steps or 0
    if iteration <= warmup_steps:
        return iteration / warmup_steps
    return (1 + math.cos(math.pi * (iteration - warmup_steps) / (training.max_steps - warmup_steps + 1))) / 2


class Schedule:
    """Learning rates of the two parameter groups. Steps count from 0."""

    def __init__(self, model: ModelConfig, training: TrainingConfig):
        self.model, self.training = model, training
        self.first_frozen = training.max_steps - (training.branch_freeze_steps or 0)

    def weights(self, step: int, annealings: int = 0) -> float:
        """Return the rate of all weights but kappa and alpha.

        Args:
            step: Number of the step, from 0.
            annealings: How often the rate was lowered.

        Raises:
            ValueError: The schedule is unknown.
        """
        training = self.training
        if training.schedule == "inverse_sqrt":
            assert training.warmup_steps, "checked when the settings were read"
            return training.lr_factor * inverse_sqrt(self.model.schedule_width, step + 1, training.warmup_steps)
        assert training.lr, "checked when the settings were read"
        match training.schedule:
            case "constant":
                return training.lr
            case "cosine":
                return training.lr * cosine(step + 1, training)
            case "plateau":
                return training.lr * training.plateau_factor**annealings
        raise ValueError(f"schedule must be inverse_sqrt, constant, cosine or plateau, got {training.schedule!r}")

    def branch_weights(self, step: int) -> float:
        """Return the rate of kappa and alpha: eq. 3 with d_model / N in place of d_model, and its own warm-up."""
        warmup_steps = self.training.branch_warmup_steps or self.training.warmup_steps
        assert warmup_steps, "checked when the settings were read"
        rate = inverse_sqrt(self.model.branch_schedule_width, step + 1, warmup_steps)
        return self.training.branch_lr_factor * rate

    def frozen(self, step: int) -> bool:
        """Return whether kappa and alpha are frozen in this step (the last `branch_freeze_steps`)."""
        return step >= self.first_frozen

    def annealings(self, before: int, is_best: bool) -> int:
        """Return the number of annealings after a validation.

        Args:
            before: Annealings before it.
            is_best: Whether its dev loss is the best so far.
        """
        if self.training.schedule != "plateau":
            return 0
        fast = self.training.plateau_annealing == "fast" and before > 0
        return before + (fast or not is_best)

    def finished(self, annealings: int) -> bool:
        """Return whether the rate has fallen below `min_lr`."""
        lowest = self.training.min_lr
        return self.training.schedule == "plateau" and lowest is not None and self.weights(0, annealings) < lowest
