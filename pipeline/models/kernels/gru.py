"""GRUs with a hand-derived backward pass, as a step of another loop or over whole sequences.

The backward loop is short. Terms that do not depend on the gradient of the next step are computed for all steps at once
(`GRUCache.slopes`). The gradients of the weights are one matrix multiplication each, after the loop. torch's own GRU
computes them step by step on a CPU.

Dimensions: N units side by side, B sequences, T steps, H units of a state. Sequences are time first, so that a step is
one block of memory.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.kernels.loops import matmul_dtype


class GRUCache(NamedTuple):
    """Forward values for the backward pass, of all steps (T, B, …) or one step (B, …)."""

    values: Tensor
    """(…, 4H): r, z, candidate, U h of the candidate. On a GPU (…, 5H), the state before them is the fourth."""

    @classmethod
    def empty(cls, steps: int, batch: int, width: int, like: Tensor) -> "GRUCache":
        """Allocate the cache of a loop.

        Args:
            steps: T.
            batch: B, or N times B for units side by side.
            width: H.
            like: Tensor of any shape; gives dtype and device.

        Returns:
            Uninitialised values, shape (T, B, 4H), on a GPU (T, B, 5H).
        """
        return cls(like.new_empty(steps, batch, (5 if like.is_cuda else 4) * width))

    def steps(self) -> list["GRUCache"]:
        """Split the cache into views of single steps."""
        return [GRUCache(values) for values in self.values]

    @property
    def width(self) -> int:
        """H."""
        return self.values.shape[-1] // (5 if self.values.is_cuda else 4)

    @property
    def z(self) -> Tensor:
        """The update gate, shape (…, H)."""
        return self.values[..., self.width : 2 * self.width]

    def advance(self, projected: Tensor, recurrent: Tensor, state: Tensor, out: Tensor) -> None:
        """Compute one step and fill this cache.

        Args:
            projected: W x + b, shape (B, 3H).
            recurrent: U h, shape (B, 3H).
            state: h, shape (B, H).
            out: Output, the next state, shape (B, H).
        """
        if state.is_cuda:
            found = torch.ops.aten._thnn_fused_gru_cell(projected, recurrent, state)
            return torch._foreach_copy_((out, self.values), found)
        width = self.width
        gates, candidate, recurrent_candidate = self.values.split([2 * width, width, width], dim=1)
        torch.add(projected[:, : 2 * width], recurrent[:, : 2 * width], out=gates).sigmoid_()
        recurrent_candidate.copy_(recurrent[:, 2 * width :])
        torch.addcmul(projected[:, 2 * width :], gates[:, :width], recurrent_candidate, out=candidate).tanh_()
        torch.lerp(candidate, state, gates[:, width:], out=out)

    def slopes(self, states: Tensor) -> Tensor:
        """Compute the local derivatives of all steps, in four slots.

        The gradient of a step's output, times a slot, is the gradient with respect to:

            slot 0   U h of the candidate
            slot 1   the input of r
            slot 2   the input of z
            slot 3   W x of the candidate

        Slots 0 to 2 are therefore the gradient with respect to U h, candidate first. Slots 1 to 3 are that with respect
        to W x, candidate last.

        Args:
            states: State before each step, shape (T, B, H).

        Returns:
            Shape (T, B, 4, H).
        """
        r, z, candidate = self.values[..., : 3 * self.width].chunk(3, dim=-1)
        slopes = r.new_empty(*r.shape[:-1], 4, self.width)
        recurrent_slope, r_slope, z_slope, input_slope = slopes.unbind(-2)
        torch.mul(1 - z, 1 - candidate.square(), out=input_slope)
        torch.mul(input_slope, r, out=recurrent_slope)
        torch.mul(recurrent_slope, self.values[..., -self.width :] * (1 - r), out=r_slope)
        torch.mul((states - candidate).mul_(z), 1 - z, out=z_slope)
        return slopes


def candidate_first(rows: Tensor) -> Tensor:
    """Reorder `rows` (3H, …) from r, z, candidate to candidate, r, z."""
    return rows.roll(len(rows) // 3, 0)


def candidate_last(rows: Tensor) -> Tensor:
    """Undo `candidate_first` of `rows` (3H, …)."""
    return rows.roll(-(len(rows) // 3), 0)


def gru_sequences(units: Sequence[nn.GRU], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Run single-layer GRUs of equal width side by side in one loop, on a CPU.

    Args:
        units: N GRUs with `batch_first`.
        inputs: Input of each, shape (B, T, inputs).

    Returns:
        States of each, shape (B, T, H); the initial state is 0.
    """
    input_weights, state_weights, input_biases, state_biases = zip(
        *(unit.all_weights[0] for unit in units), strict=True
    )
    projected = [
        F.linear(x.transpose(0, 1), *layer) for x, *layer in zip(inputs, input_weights, input_biases, strict=True)
    ]
    weight, bias = torch.stack(state_weights), torch.stack(state_biases).unsqueeze(1)
    projected_all = torch.stack(projected, 1).to(inputs[0].dtype)
    states = _GRUSequenceFunction.apply(matmul_dtype(inputs[0]), projected_all, weight, bias)
    return list(states.permute(1, 2, 0, 3))


class _GRUSequenceFunction(torch.autograd.Function):
    """Autograd function of N GRUs over T steps; the initial state is 0."""

    @staticmethod
    def forward(ctx, dtype: torch.dtype, projected: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Compute states (T, N, B, H) from `projected` (T, N, B, 3H), `weight` (N, 3H, H) and `bias` (N, 1, 3H)."""
        steps, units, batch, width = *projected.shape[:3], weight.shape[2]
        cache = GRUCache.empty(steps, units * batch, width, projected)
        states = projected.new_zeros(steps + 1, units, batch, width)
        with torch.autocast("cpu", enabled=False):
            recur, bias = weight.transpose(1, 2).to(dtype), bias.to(dtype)
            for state, after, current, step in zip(states[:-1], states[1:], projected, cache.steps(), strict=True):
                recurrent = torch.baddbmm(bias, state.to(dtype), recur)
                step.advance(current.flatten(0, 1), recurrent.flatten(0, 1), state.flatten(0, 1), after.flatten(0, 1))
        ctx.save_for_backward(weight, states, *cache)
        ctx.dtype = dtype
        return states[1:]

    @staticmethod
    def backward(ctx, grad_states: Tensor):
        weight, states, *saved = ctx.saved_tensors
        cache, dtype, (steps, units, batch, width) = GRUCache(*saved), ctx.dtype, grad_states.shape
        recur, before = weight.roll(width, 1).to(dtype), states[:-1]  # candidate first, as the slopes
        grad_units = cache.slopes(before.flatten(1, 2)).view(steps, units, batch, 4, width)
        z, grad_state = cache.z.view_as(before), grad_states[-1]
        for step in range(steps - 1, -1, -1):
            grad_units[step].mul_(grad_state.unsqueeze(-2))
            if step:
                carried = torch.bmm(grad_units[step].flatten(-2)[..., : 3 * width].to(dtype), recur)
                grad_state = torch.addcmul(grad_states[step - 1], grad_state, z[step]).add_(carried)
        grad_units = grad_units.flatten(-2)
        grad_recurrent, previous = (x.transpose(0, 1).flatten(1, 2) for x in (grad_units[..., : 3 * width], before))
        grad_weight = torch.bmm(grad_recurrent.transpose(1, 2).to(dtype), previous.to(dtype)).to(weight.dtype)
        grad_bias = grad_recurrent.sum(1, keepdim=True)
        return None, grad_units[..., width:], grad_weight.roll(-width, 1), grad_bias.roll(-width, 2)
