"""Updates of all parameters: the weights, and the branch weights kappa and alpha of the Weighted Transformer."""

import torch
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.training.schedule import Schedule


class Optimiser:
    """One update of all parameters from their gradients, without weight decay.

    Frozen branch weights get neither an update nor a projection (Weighted Transformer Network, section 3.2).
    """

    def __init__(self, model: torch.nn.Module, schedule: Schedule, config: TrainingConfig):
        groups = model.parameter_groups()
        self.model, self.schedule = model, schedule
        self.branch_weights = list(groups["branch_weights"])
        self.parameters = [*groups["weights"], *self.branch_weights]
        self.method = method(
            [
                {"name": "weights", "params": groups["weights"]},
                {"name": "branch_weights", "params": self.branch_weights},
            ],
            config,
        )

    def update(self, update: int, annealings: int = 0) -> None:
        """Apply the gradients as update number `update` (from 0), the rate lowered `annealings` times; forget them."""
        frozen = self.schedule.frozen(update)
        weights, branch_weights = self.method.param_groups
        weights["lr"] = self.schedule.weights(update, annealings)
        if self.branch_weights:
            branch_weights["lr"] = self.schedule.branch_weights(update)
        if frozen:
            for parameter in self.branch_weights:
                parameter.grad = None
        self.method.step()
        self.model.after_step(frozen=frozen)
        self.forget_gradients()

    def forget_gradients(self) -> None:
        self.method.zero_grad(set_to_none=True)

    @property
    def rate(self) -> float:
        """Learning rate of the weights in the last update."""
        return self.method.param_groups[0]["lr"]

    def gradients(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def tensors(self) -> dict[str, Tensor]:
        """The moments and step counts, named `<number of the parameter>.<what>`."""
        state = self.method.state_dict()["state"]
        named = ((f"{number}.{what}", value) for number, entry in state.items() for what, value in entry.items())
        return {name: value for name, value in named if value is not None}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Undo `tensors`."""
        content = self.method.state_dict()
        content["state"] = {}
        for name, value in tensors.items():
            number, what = name.split(".")
            content["state"].setdefault(int(number), {})[what] = value.clone()  # a view of the file's bytes
        self.method.load_state_dict(content)


def method(groups: list[dict], config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam (Attention Is All You Need, section 5.3), Adadelta (Zeiler 2012), or gradient descent with Nesterov's
    momentum in the form of Sutskever et al. 2013. The rates are set at every update."""
    match config.optimiser:
        case "adam":
            betas = config.adam_beta1, config.adam_beta2
            return torch.optim.Adam(groups, lr=0.0, betas=betas, eps=config.adam_eps, fused=True)
        case "adadelta":
            return torch.optim.Adadelta(groups, lr=0.0, rho=config.adadelta_rho, eps=config.adadelta_eps)
        case "nag":
            return torch.optim.SGD(groups, lr=0.0, momentum=config.momentum, nesterov=True, fused=True)
    raise ValueError(f"optimiser must be adam, adadelta or nag, got {config.optimiser!r}")
