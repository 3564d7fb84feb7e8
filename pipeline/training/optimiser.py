"""Updates of all parameters: the weights, and the branch weights kappa and alpha of the Weighted Transformer."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pipeline.config import TrainingConfig
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.schedule import Schedule
from pipeline.training.update_rule import Rate, State, update_rule


class Optimiser:
    """One update of all parameters from their gradients, without weight decay.

    Frozen branch weights get neither an update nor a projection (Weighted Transformer Network, section 4.1).
    """

    def __init__(self, model: Seq2Seq, schedule: Schedule, config: TrainingConfig):
        groups = model.parameter_groups()
        self.model, self.schedule, self.rule = model, schedule, update_rule(config)
        self.weights, self.branch_weights = list(groups["weights"]), list(groups["branch_weights"])
        self.parameters = [*self.weights, *self.branch_weights]
        self.states: dict[int, State] = {}
        """By number of the parameter, from its first gradient on."""
        self.rate = 0.0
        """Learning rate of the weights in the last update."""
        self.rates: Sequence[Rate] = (0.0, 0.0)
        """Of the weights and of the branch weights."""
        self.held_rates: list[Tensor] = []
        """The same on the device, if they are held there."""
        if self.parameters[0].is_cuda:
            self.hold_rates()

    def hold_rates(self) -> None:
        """Keep the learning rates on the parameters' device from now on, where a recorded step reads them."""
        device = self.parameters[0].device
        self.held_rates = [torch.zeros((), device=device) for _ in self.rates]

    @torch.no_grad()
    def update(self, update: int, annealings: int = 0, skip: Tensor | None = None) -> None:
        """Apply the gradients as update number `update` (from 0), the rate lowered `annealings` times; forget them.

        skip: 1.0 on the device where they shall be forgotten only.
        """
        self.set_rates(update, annealings)
        self.apply(self.schedule.frozen(update), skip)
        self.forget_gradients()

    def set_rates(self, update: int, annealings: int = 0) -> None:
        """Take the learning rates of update number `update`, lowered `annealings` times."""
        self.rate = self.schedule.weights(update, annealings)
        rates = self.rate, self.schedule.branch_weights(update) if self.branch_weights else 0.0
        if self.held_rates:
            for held, rate in zip(self.held_rates, rates, strict=True):
                held.fill_(rate)
        self.rates = self.held_rates or rates

    @torch.no_grad()
    def apply(self, frozen: bool, skip: Tensor | None = None) -> None:
        """Move all parameters by the rates that were set; `frozen`: all but the branch weights."""
        self.move(0, self.weights, self.rates[0], skip)
        if self.branch_weights and not frozen:
            self.move(len(self.weights), self.branch_weights, self.rates[1], skip)
        self.model.after_step(frozen=frozen)

    def move(self, first: int, parameters: list[nn.Parameter], rate: Rate, skip: Tensor | None = None) -> None:
        """Move those of `parameters` that have a gradient; `first` is the number of the first one."""
        moved = {number: one for number, one in enumerate(parameters, first) if one.grad is not None}
        for number in moved.keys() - self.states.keys():
            self.states[number] = self.rule.state(moved[number])
        gradients = [one.grad for one in moved.values() if one.grad is not None]
        if moved:
            self.rule.move([*moved.values()], gradients, [self.states[number] for number in moved], rate, skip)

    def forget_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def gradients(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def tensors(self) -> dict[str, Tensor]:
        """The moments and step counts, named `<number of the parameter>.<what>`."""
        states = sorted(self.states.items())
        return {f"{number}.{what}": value for number, state in states for what, value in state.items()}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Undo `tensors`."""
        self.states = {}
        for name, value in tensors.items():
            number, what = name.split(".")
            device = self.parameters[int(number)].device
            self.states.setdefault(int(number), {})[what] = value.to(device, copy=True)  # a view of the file's bytes
