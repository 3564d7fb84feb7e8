"""Update rules of the optimisers: torch's functional forms of Adam and Nesterov's momentum, and Adadelta.

torch's optimiser classes import its compiler when the first one is made, which takes a second and a half at every
start. The functional forms do not.
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
"""Optimiser state of one parameter, by name."""
Rate = float | Tensor
"""A learning rate; a CUDA graph reads one that lies on the device, so that each replay can use another value."""
Move = Callable[[Tensors, Tensors, list[State], Rate, Tensor | None], None]


@dataclass(frozen=True)
class UpdateRule:
    """An optimisation algorithm that changes parameters in place.

    Attributes:
        moments: Names of the running sums, each of a parameter's shape.
        move: Takes parameters, gradients, states, learning rate, and a scalar that is 1.0 on the device if nothing
            shall change, or None.
        counts: Whether it counts a parameter's steps, as `step`.
    """

    moments: tuple[str, ...]
    move: Move
    counts: bool = True

    def state(self, parameter: Tensor) -> State:
        """Return the initial state of a `parameter` (…): a scalar `step`, and moments of its shape, all zero."""
        counted = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return ({"step": counted} if self.counts else {}) | {name: torch.zeros_like(parameter) for name in self.moments}


def update_rule(config: TrainingConfig) -> UpdateRule:
    """Return the update rule that `config.optimiser` names, without weight decay.

    adam: Attention Is All You Need, section 5.3. adadelta: Zeiler 2012. nag: gradient descent with Nesterov's momentum
    in the form of Sutskever et al. 2013.
    """
    match config.optimiser:
        case "adam":
            return UpdateRule(("exp_avg", "exp_avg_sq"), partial(adam_step, config))
        case "adadelta":
            return UpdateRule(("square_avg", "acc_delta"), compiled_on_gpu(partial(adadelta_step, config)))
        case "nag":
            return UpdateRule(("momentum_buffer",), partial(nesterov_step, config), counts=False)


def compiled_on_gpu(move: Move) -> Move:
    """Compile `move` when it first gets weights on a GPU, which fuses a dozen kernels into one.

    If torch cannot compile there, a warning says why, and `move` runs eagerly.

    Returns:
        The same rule, compiled where possible.
    """
    compiled: Move | None = None

    def chosen(weights: Tensors, gradients: Tensors, states: list[State], rate: Rate, skip: Tensor | None) -> None:
        nonlocal compiled
        if weights[0].is_cuda and compiled is not move:
            from torch._dynamo.exc import TorchDynamoException  # the compiler takes a second to import

            compiled = compiled or torch.compile(move, dynamic=False)
            try:
                return compiled(weights, gradients, states, rate, skip)
            except TorchDynamoException as error:  # before it changed anything
                log.warning("cannot compile the optimiser, which is slower now: %s", str(error).strip().split("\n")[0])
                compiled = move
        return move(weights, gradients, states, rate, skip)

    return chosen


def column(states: list[State], name: str) -> Tensors:
    """Return the tensor `name` of each of the `states`: a moment of its parameter's shape, or the scalar `step`."""
    return [state[name] for state in states]


def adam_step(
    config: TrainingConfig, weights: Tensors, gradients: Tensors, states: list[State], rate: Rate, skip: Tensor | None
) -> None:
    """Take a step of Adam by torch's fused kernel (Kingma and Ba 2015, algorithm 1).

    Args:
        config: Names beta1, beta2 and epsilon.
        weights: Parameters of any shape, changed in place.
        gradients: Their gradients, of the same shapes.
        states: Their states; moments are changed in place.
        rate: Learning rate.
        skip: On the device, shape (): 1.0 if nothing shall change; None to take the step.
    """
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
    """Take a step of Adadelta (Zeiler 2012, algorithm 1), as `adam_step`.

    The settings name rho and epsilon. torch's own form computes the same, but cannot skip a step on the device; skipped
    gradients are zeroed.
    """
    counts, squares, steps = (column(states, name) for name in ("step", "square_avg", "acc_delta"))
    kept: float | Tensor = config.adadelta_rho
    torch._foreach_add_(counts, 1)
    if skip is not None:
        kept = kept + (1 - kept) * skip
        torch._foreach_sub_(counts, [skip] * len(counts))
        # On the bits, as zero times NaN is NaN.
        torch._foreach_mul_([gradient.view(torch.int32) for gradient in gradients], (1 - skip).int())
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
    """Take a step of gradient descent with Nesterov's momentum by torch's fused kernel, as `adam_step`."""
    sgd(
        weights,
        gradients,
        [*column(states, "momentum_buffer")],  # changed in place
        fused=True,
        found_inf=skip,
        weight_decay=0.0,
        momentum=config.momentum,
        lr=cast(float, rate),  # the fused kernels accept a tensor too
        dampening=0.0,
        nesterov=True,
        maximize=False,
    )
