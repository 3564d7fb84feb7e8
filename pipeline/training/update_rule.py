"""How a parameter moves along its gradients, by torch's functional forms.

torch's optimiser classes import its compiler when the first one is made, a second and a half of every start. These
don't.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from pipeline.config import TrainingConfig

log = logging.getLogger(__name__)
Tensors = list[Tensor]
State = dict[str, Tensor]
"""What a rule remembers of one parameter, by name."""
Rate = float | Tensor
"""A learning rate; one that lies on a device is read there, so that a recorded step can be given another."""
Move = Callable[[Tensors, Tensors, list[State], Rate, Tensor | None], None]


@dataclass(frozen=True)
class UpdateRule:
    """Moves parameters in place.

    Attributes:
        moments: names of the running sums, of a parameter's shape.
        move: (parameters, gradients, states, learning rate, 1.0 on the device where nothing shall be moved or None).
        counts: whether it counts a parameter's updates, as `step`.
    """

    moments: tuple[str, ...]
    move: Move
    counts: bool = True

    def state(self, parameter: Tensor) -> State:
        """That of a parameter which was never moved."""
        counted = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return ({"step": counted} if self.counts else {}) | {name: torch.zeros_like(parameter) for name in self.moments}


def update_rule(config: TrainingConfig) -> UpdateRule:
    """Adam (Attention Is All You Need, section 5.3), Adadelta (Zeiler 2012), or gradient descent with Nesterov's
    momentum in the form of Sutskever et al. 2013; none with weight decay."""
    match config.optimiser:
        case "adam":
            return UpdateRule(("exp_avg", "exp_avg_sq"), partial(adam_step, config))
        case "adadelta":
            return UpdateRule(("square_avg", "acc_delta"), compiled_on_gpu(partial(adadelta_step, config)))
        case "nag":
            return UpdateRule(("momentum_buffer",), partial(nesterov_step, config), counts=False)
    raise ValueError(f"optimiser must be adam, adadelta or nag, got {config.optimiser!r}")


def compiled_on_gpu(move: Move) -> Move:
    """Compile `move` when it is given weights on a GPU, where one kernel then takes the place of a dozen.

    If torch can't compile there, a warning says why, and `move` runs as it is.
    """
    compiled: Move | None = None

    def chosen(weights: Tensors, gradients: Tensors, states: list[State], rate: Rate, skip: Tensor | None) -> None:
        nonlocal compiled
        if weights[0].is_cuda and compiled is not move:
            from torch._dynamo.exc import TorchDynamoException  # the compiler takes a second to import

            compiled = compiled or torch.compile(move, dynamic=False)
            try:
                return compiled(weights, gradients, states, rate, skip)
            except TorchDynamoException as error:  # before it moved anything
                log.warning("the optimiser can't be compiled and is slower: %s", str(error).strip().split("\n")[0])
                compiled = move
        return move(weights, gradients, states, rate, skip)

    return chosen


def column(states: list[State], name: str) -> Tensors:
    return [state[name] for state in states]


def adam_step(
    config: TrainingConfig, weights: Tensors, gradients: Tensors, states: list[State], rate: Rate, skip: Tensor | None
) -> None:
    adam(
        weights,
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


def adadelta_step(
    config: TrainingConfig, weights: Tensors, gradients: Tensors, states: list[State], rate: Rate, skip: Tensor | None
) -> None:
    """Zeiler 2012, algorithm 1. torch's own form, else the same, can't leave an update out on the device."""
    counts, squares, steps = (column(states, name) for name in ("step", "square_avg", "acc_delta"))
    kept: float | Tensor = config.adadelta_rho
    torch._foreach_add_(counts, 1)
    if skip is not None:
        kept = kept + (1 - kept) * skip
        torch._foreach_sub_(counts, [skip] * len(counts))
        # In their bits, as zero times NaN is NaN.
        torch._foreach_mul_([one.view(torch.int32) for one in gradients], (1 - skip).int())
    torch._foreach_mul_(squares, kept)
    torch._foreach_addcmul_(squares, gradients, gradients, value=1 - config.adadelta_rho)
    step, root = (torch._foreach_add(sums, config.adadelta_eps) for sums in (steps, squares))
    for sums in (step, root):
        torch._foreach_sqrt_(sums)
    torch._foreach_div_(step, root)
    torch._foreach_mul_(step, gradients)
    torch._foreach_mul_(steps, kept)
    torch._foreach_addcmul_(steps, step, step, value=1 - config.adadelta_rho)
    if isinstance(rate, Tensor):
        torch._foreach_mul_(step, rate)
        torch._foreach_sub_(weights, step)
    else:
        torch._foreach_add_(weights, step, alpha=-rate)


def nesterov_step(
    config: TrainingConfig, weights: Tensors, gradients: Tensors, states: list[State], rate: Rate, skip: Tensor | None
) -> None:
    sgd(
        weights,
        gradients,
        [*column(states, "momentum_buffer")],  # changed in place
        fused=True,
        found_inf=skip,
        weight_decay=0.0,
        momentum=config.momentum,
        lr=cast(float, rate),  # the fused kernels take a tensor, too
        dampening=0.0,
        nesterov=True,
        maximize=False,
    )
