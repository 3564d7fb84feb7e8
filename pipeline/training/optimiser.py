"""Updates of all parameters: the weights, and the branch weights kappa and alpha of the Weighted Transformer."""

import torch
from torch import Tensor, nn

from pipeline.config import TrainingConfig
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.schedule import Schedule
from pipeline.training.update_rule import State, update_rule


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

    @torch.no_grad()
    def update(self, update: int, annealings: int = 0, skip: Tensor | None = None) -> None:
        """Apply the gradients as update number `update` (from 0), the rate lowered `annealings` times; forget them.

        skip: 1.0 on the device where they shall be forgotten only.
        """
        frozen = self.schedule.frozen(update)
        self.rate = self.schedule.weights(update, annealings)
        self.move(0, self.weights, self.rate, skip)
        if self.branch_weights and not frozen:
            self.move(len(self.weights), self.branch_weights, self.schedule.branch_weights(update), skip)
        self.model.after_step(frozen=frozen)
        self.forget_gradients()

    def move(self, first: int, parameters: list[nn.Parameter], rate: float, skip: Tensor | None = None) -> None:
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
