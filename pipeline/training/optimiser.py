"""Adam in two parameter groups: the weights, and the branch weights kappa and alpha of the Weighted Transformer."""

import torch
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.training.schedule import Schedule


class Optimiser:
    """One update of all parameters from their gradients.

    Attention Is All You Need, section 5.3: Adam without weight decay. Frozen branch weights get neither an update nor
    a projection (Weighted Transformer Network, section 3.2).
    """

    def __init__(self, model: torch.nn.Module, schedule: Schedule, config: TrainingConfig):
        groups = model.parameter_groups()
        self.model, self.schedule = model, schedule
        self.branch_weights = list(groups["branch_weights"])
        self.parameters = [*groups["weights"], *self.branch_weights]
        self.adam = torch.optim.Adam(
            [
                {"name": "weights", "params": groups["weights"]},
                {"name": "branch_weights", "params": self.branch_weights},
            ],
            lr=0.0,
            betas=(config.adam_beta1, config.adam_beta2),
            eps=config.adam_eps,
            fused=True,
        )

    def update(self, update: int) -> None:
        """Apply the gradients as update number `update` (from 0), and forget them."""
        frozen = self.schedule.frozen(update)
        rates = self.schedule.weights(update), self.schedule.branch_weights(update)
        for group, rate in zip(self.adam.param_groups, rates, strict=True):
            group["lr"] = rate
        if frozen:
            for parameter in self.branch_weights:
                parameter.grad = None
        self.adam.step()
        self.model.after_step(frozen=frozen)
        self.forget_gradients()

    def forget_gradients(self) -> None:
        self.adam.zero_grad(set_to_none=True)

    @property
    def rate(self) -> float:
        """Learning rate of the weights in the last update."""
        return self.adam.param_groups[0]["lr"]

    def gradients(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def tensors(self) -> dict[str, Tensor]:
        """The moments and step counts, named `<number of the parameter>.<what>`."""
        state = self.adam.state_dict()["state"]
        return {f"{number}.{what}": value for number, entry in state.items() for what, value in entry.items()}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Undo `tensors`."""
        content = self.adam.state_dict()
        content["state"] = {}
        for name, value in tensors.items():
            number, what = name.split(".")
            content["state"].setdefault(int(number), {})[what] = value.clone()  # a view of the file's bytes
        self.adam.load_state_dict(content)
