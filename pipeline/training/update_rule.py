"""How a parameter moves along its gradients, by torch's functional forms.

torch's optimiser classes import its compiler when the first one is made, a second and a half of every start. These
don't.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adadelta import adadelta
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from pipeline.config import TrainingConfig

State = dict[str, Tensor]
"""What a rule remembers of one parameter, by name."""


Move = Callable[[list[Tensor], list[Tensor], list[State], float, Tensor | None], None]


@dataclass(frozen=True)
class UpdateRule:
    """Moves parameters in place.

    Attributes:
        moments: names of the running sums, of a parameter's shape.
        move: (parameters, gradients, states, learning rate, 1.0 on the device where nothing shall be moved or None).
        counts: whether it counts a parameter's updates, as `step`.
        may_skip: whether the device can decide that nothing is moved.
    """

    moments: tuple[str, ...]
    move: Move
    counts: bool = True
    may_skip: bool = True

    def state(self, parameter: Tensor) -> State:
        """That of a parameter which was never moved."""
        moments = {name: torch.zeros_like(parameter) for name in self.moments}
        return (
            {"step": torch.zeros((), dtype=torch.float32, device=parameter.device), **moments}
            if self.counts
            else moments
        )


def update_rule(config: TrainingConfig) -> UpdateRule:
    """Adam (Attention Is All You Need, section 5.3), Adadelta (Zeiler 2012), or gradient descent with Nesterov's
    momentum in the form of Sutskever et al. 2013; none with weight decay."""
    match config.optimiser:
        case "adam":
            return UpdateRule(("exp_avg", "exp_avg_sq"), adam_by(config))
        case "adadelta":
            return UpdateRule(("square_avg", "acc_delta"), adadelta_by(config), may_skip=False)
        case "nag":
            return UpdateRule(("momentum_buffer",), nesterov_by(config), counts=False)
    raise ValueError(f"optimiser must be adam, adadelta or nag, got {config.optimiser!r}")


def column(states: list[State], name: str) -> list[Tensor]:
    return [state[name] for state in states]


def adam_by(config: TrainingConfig) -> Move:
    def move(
        parameters: list[Tensor], gradients: list[Tensor], states: list[State], rate: float, skip: Tensor | None
    ) -> None:
        adam(
            parameters,
            gradients,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            max_exp_avg_sqs=[],
            state_steps=column(states, "step"),
            fused=True,
            found_inf=skip,
            amsgrad=False,
            beta1=config.adam_beta1,
            beta2=config.adam_beta2,
            lr=rate,
            weight_decay=0.0,
            eps=config.adam_eps,
            maximize=False,
        )

    return move


def adadelta_by(config: TrainingConfig) -> Move:
    def move(
        parameters: list[Tensor], gradients: list[Tensor], states: list[State], rate: float, skip: Tensor | None
    ) -> None:
        adadelta(
            parameters,
            gradients,
            column(states, "square_avg"),
            column(states, "acc_delta"),
            column(states, "step"),
            foreach=parameters[0].is_cuda,
            lr=rate,
            rho=config.adadelta_rho,
            eps=config.adadelta_eps,
            weight_decay=0.0,
            maximize=False,
        )

    return move


def nesterov_by(config: TrainingConfig) -> Move:
    def move(
        parameters: list[Tensor], gradients: list[Tensor], states: list[State], rate: float, skip: Tensor | None
    ) -> None:
        moments: list[Tensor | None] = [*column(states, "momentum_buffer")]  # changed in place
        sgd(
            parameters,
            gradients,
            moments,
            fused=True,
            found_inf=skip,
            weight_decay=0.0,
            momentum=config.momentum,
            lr=rate,
            dampening=0.0,
            nesterov=True,
            maximize=False,
        )

    return move
