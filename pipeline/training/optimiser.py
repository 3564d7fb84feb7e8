"""Optimiser of all parameters, by torch's functional forms of Adam, Adadelta and Nesterov's momentum.

torch's optimiser classes import its compiler when the first one is made, which takes a second and a half at every
start. The functional forms do not.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from pipeline.config import TrainingConfig
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.schedule import Schedule

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
        """Return the initial optimiser state of a parameter.

        Args:
            parameter: Of any shape.

        Returns:
            Zeros: `step` is a scalar, each moment has the parameter's shape.
        """
        counted = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return ({"step": counted} if self.counts else {}) | {name: torch.zeros_like(parameter) for name in self.moments}


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


def update_rule(config: TrainingConfig) -> UpdateRule:
    """Return the update rule that `config.optimiser` names, without weight decay.

    adam: Attention Is All You Need, section 5.3. adadelta: Zeiler 2012. nag: gradient descent with Nesterov's momentum
    in the form of Sutskever et al. 2013.

    Returns:
        The rule with the settings of `config`.

    Raises:
        ValueError: The optimiser is unknown.
    """
    match config.optimiser:
        case "adam":
            return UpdateRule(("exp_avg", "exp_avg_sq"), partial(adam_step, config))
        case "adadelta":
            return UpdateRule(("square_avg", "acc_delta"), compiled_on_gpu(partial(adadelta_step, config)))
        case "nag":
            return UpdateRule(("momentum_buffer",), partial(nesterov_step, config), counts=False)
    raise ValueError(f"optimiser must be adam, adadelta or nag, got {config.optimiser!r}")


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
    """Return the tensor `name` of each parameter's state.

    Args:
        states: State of each parameter.
        name: Name of a moment, or `step`.

    Returns:
        One tensor a parameter, of its shape; scalars for `step`.
    """
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
    """Take a step of Adadelta (Zeiler 2012, algorithm 1).

    torch's own form computes the same, but cannot skip a step on the device.

    Args:
        config: Names rho and epsilon.
        weights: Parameters of any shape, changed in place.
        gradients: Their gradients, of the same shapes; zeroed if skipped.
        states: Their states; moments are changed in place.
        rate: Learning rate.
        skip: On the device, shape (): 1.0 if nothing shall change; None to take the step.
    """
    counts, squares, steps = (column(states, name) for name in ("step", "square_avg", "acc_delta"))
    kept: float | Tensor = config.adadelta_rho
    torch._foreach_add_(counts, 1)
    if skip is not None:
        kept = kept + (1 - kept) * skip
        torch._foreach_sub_(counts, [skip] * len(counts))
        # On the bits, as zero times NaN is NaN.
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
    """Take a step of gradient descent with Nesterov's momentum by torch's fused kernel.

    Args:
        config: Names the momentum.
        weights: Parameters of any shape, changed in place.
        gradients: Their gradients, of the same shapes.
        states: Their states; the momentum is changed in place.
        rate: Learning rate.
        skip: On the device, shape (): 1.0 if nothing shall change; None to take the step.
    """
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
