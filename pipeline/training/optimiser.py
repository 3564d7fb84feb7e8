"""Learning rates, and the optimiser of all parameters of a model by an update rule.

A learning rate is a function of the training step and of how often the rate was lowered (annealed):
inverse_sqrt: Attention Is All You Need, eq. 3; for kappa and alpha, Weighted Transformer Network, section 4.1.
cosine: a linear warm-up, then half a cosine that falls to zero after the last step.
plateau: lowered when the dev loss stops falling (Convolutional Sequence to Sequence Learning, section 4.2).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pipeline.config import ModelConfig, TrainingConfig
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.update_rules import Rate, State, update_rule


def inverse_sqrt(width: float, iteration: int, warmup_steps: int) -> float:
    """Return `width`^-0.5 min(it^-0.5, it `warmup_steps`^-1.5), eq. 3; `iteration` it counts from 1."""
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
        """Return the number of annealings after a validation, given those `before` it and whether it `is_best`."""
        if self.training.schedule != "plateau":
            return 0
        fast = self.training.plateau_annealing == "fast" and before > 0
        return before + (fast or not is_best)

    def finished(self, annealings: int) -> bool:
        """Return whether the rate has fallen below `min_lr`."""
        lowest = self.training.min_lr
        return self.training.schedule == "plateau" and lowest is not None and self.weights(0, annealings) < lowest


class Optimiser:
    """Optimiser of the weights, and of the branch weights kappa and alpha of the Weighted Transformer.

    There is no weight decay. Frozen branch weights get neither a step nor a projection (Weighted Transformer Network,
    section 4.1).

    Args:
        model: Its parameter groups `weights` and `branch_weights` are optimised.
        schedule: Learning rates of both.
        config: Names the update rule, its settings, and the norm to clip to.
    """

    def __init__(self, model: Seq2Seq, schedule: Schedule, config: TrainingConfig):
        groups = model.parameter_groups()
        self.model, self.schedule, self.rule = model, schedule, update_rule(config)
        self.clip_norm = config.clip_norm
        self.weights, self.branch_weights = list(groups["weights"]), list(groups["branch_weights"])
        self.parameters = [*self.weights, *self.branch_weights]
        self.states: dict[int, State] = {}
        """Optimiser state by number of the parameter, from its first gradient on."""
        self.rate = 0.0
        """Learning rate of the weights in the last step."""
        self.rates: Sequence[Rate] = (0.0, 0.0)
        """Learning rates of the weights and of the branch weights."""
        self.held_rates: list[Tensor] = []
        """The same on the device, if they are held there."""
        if self.parameters[0].is_cuda:
            self.hold_rates()

    def hold_rates(self) -> None:
        """Keep the learning rates on the parameters' device from now on, where a CUDA graph reads them."""
        device = self.parameters[0].device
        self.held_rates = [torch.zeros((), device=device) for _ in self.rates]

    @torch.no_grad()
    def step(self, step: int, annealings: int = 0, skip: Tensor | None = None) -> None:
        """Apply the gradients, then clear them.

        Args:
            step: Number of the training step, from 0.
            annealings: How often the learning rate was lowered.
            skip: On the device, shape (): 1.0 if the gradients shall only be cleared; None to apply them.
        """
        self.set_rates(step, annealings)
        self.apply(self.schedule.frozen(step), skip)
        self.zero_grad()

    def set_rates(self, step: int, annealings: int = 0) -> None:
        """Set the learning rates of training `step`, from 0, lowered `annealings` times."""
        self.rate = self.schedule.weights(step, annealings)
        rates = self.rate, self.schedule.branch_weights(step) if self.branch_weights else 0.0
        if self.held_rates:
            for held, rate in zip(self.held_rates, rates, strict=True):
                held.fill_(rate)
        self.rates = self.held_rates or rates

    @torch.no_grad()
    def apply(self, frozen: bool, skip: Tensor | None = None) -> None:
        """Apply the gradients with the rates that were set.

        Args:
            frozen: Leave the branch weights alone.
            skip: On the device, shape (): 1.0 if nothing shall change; None to apply the gradients.
        """
        self.move(0, self.weights, self.rates[0], skip)
        if self.branch_weights and not frozen:
            self.move(len(self.weights), self.branch_weights, self.rates[1], skip)
        self.model.after_step(frozen, skip)

    def move(self, first: int, parameters: list[nn.Parameter], rate: Rate, skip: Tensor | None = None) -> None:
        """Apply the gradients of those `parameters` (…) of a group that have one, by the group's `rate`; as `apply`.

        `first` is the number of the first parameter; the others follow it.
        """
        moved = {number: parameter for number, parameter in enumerate(parameters, first) if parameter.grad is not None}
        for number in moved.keys() - self.states.keys():
            self.states[number] = self.rule.state(moved[number])
        gradients = [parameter.grad for parameter in moved.values() if parameter.grad is not None]
        if moved:
            self.rule.move([*moved.values()], gradients, [self.states[number] for number in moved], rate, skip)

    def missing_states(self) -> list[State]:
        """Return initial states of the parameters that have none, to see whether they fit into memory."""
        return [self.rule.state(own) for number, own in enumerate(self.parameters) if number not in self.states]

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    def gradients(self) -> list[Tensor]:
        """Return the gradients (…) of the parameters that have one."""
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def clip(self) -> Tensor:
        """Clip the gradients to `clip_norm`, if it is set, and return their norm before clipping, a scalar."""
        norm = get_total_norm(self.gradients())
        if self.clip_norm is not None:
            clip_grads_with_norm_(self.parameters, self.clip_norm, norm)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Return moments (…) and scalar step counts, named `<number of the parameter>.<name>`."""
        states = sorted(self.states.items())
        return {f"{number}.{name}": value for number, state in states for name, value in state.items()}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Load the result of `tensors`; an empty one resets the optimiser.

        Args:
            tensors: Moments of the shape of their parameter, and step counts of shape (); copied.
        """
        self.states = {}
        for full_name, value in tensors.items():
            number, name = full_name.split(".")
            device = self.parameters[int(number)].device
            self.states.setdefault(int(number), {})[name] = value.to(device, copy=True)  # a view of the file's bytes
