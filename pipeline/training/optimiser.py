"""Optimiser of all parameters of a model, by an update rule and a schedule of learning rates."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pipeline.config import TrainingConfig
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.schedule import Schedule
from pipeline.training.update_rules import Rate, State, update_rule


class Optimiser:
    """Optimiser of the weights, and of the branch weights kappa and alpha of the Weighted Transformer.

    There is no weight decay. Frozen branch weights get neither a step nor a projection (Weighted Transformer Network,
    section 4.1).

    Args:
        model: Its parameter groups `weights` and `branch_weights` are optimised.
        schedule: Learning rates of both.
        config: Names the update rule and its settings.
    """

    def __init__(self, model: Seq2Seq, schedule: Schedule, config: TrainingConfig):
        groups = model.parameter_groups()
        self.model, self.schedule, self.rule = model, schedule, update_rule(config)
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
        """Set the learning rates of training step `step`, lowered `annealings` times.

        Args:
            step: Number of the training step, from 0.
            annealings: How often the learning rate was lowered.
        """
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
        self.model.after_step(frozen=frozen)

    def move(self, first: int, parameters: list[nn.Parameter], rate: Rate, skip: Tensor | None = None) -> None:
        """Apply the gradients of those parameters that have one.

        Args:
            first: Number of the first parameter.
            parameters: Consecutive parameters of one group.
            rate: Their learning rate.
            skip: On the device, shape (): 1.0 if nothing shall change; None to apply the gradients.
        """
        moved = {number: one for number, one in enumerate(parameters, first) if one.grad is not None}
        for number in moved.keys() - self.states.keys():
            self.states[number] = self.rule.state(moved[number])
        gradients = [one.grad for one in moved.values() if one.grad is not None]
        if moved:
            self.rule.move([*moved.values()], gradients, [self.states[number] for number in moved], rate, skip)

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    def gradients(self) -> list[Tensor]:
        """Return the gradients of the parameters that have one.

        Returns:
            Each with the shape of its parameter.
        """
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def tensors(self) -> dict[str, Tensor]:
        """Return moments and step counts, named `<number of the parameter>.<name>`.

        Returns:
            Moments of the shape of their parameter, and step counts of shape ().
        """
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
