"""A GRU inside a loop whose gradient is written by hand (gru_sequence.py, and the loops of models/recurrent).

A step backward needs few operations, because whatever of its gradient does not depend on that of the next step is
computed for all steps at once (`slopes`), and the gradients of the weights are one product each after the loop.

Dimensions: B sentences, T steps, H units. Sequences are time first, so that a step is one block of memory.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class GRURecord(NamedTuple):
    """What is computed on the way and needed on the way back, of all steps (T, B, …) or of one (B, …)."""

    gates: Tensor
    """r and z, (…, 2H)"""
    candidate: Tensor
    """h~, (…, H)"""
    recurrent: Tensor
    """U h of the candidate, (…, H)"""

    @classmethod
    def empty(cls, steps: int, batch: int, width: int, like: Tensor) -> "GRURecord":
        return cls(*(like.new_empty(steps, batch, size) for size in (2 * width, width, width)))

    def steps(self) -> list["GRURecord"]:
        return [GRURecord(*tensors) for tensors in zip(*self, strict=True)]

    @property
    def z(self) -> Tensor:
        return self.gates[..., self.candidate.shape[-1] :]

    def advance(self, projected: Tensor, recurrent: Tensor, state: Tensor, out: Tensor) -> None:
        """Write the state after `state` (B, H) to `out`, and this record; projected = W x + b, recurrent = U h."""
        width = state.shape[-1]
        torch.add(projected[:, : 2 * width], recurrent[:, : 2 * width], out=self.gates).sigmoid_()
        self.recurrent.copy_(recurrent[:, 2 * width :])
        torch.addcmul(projected[:, 2 * width :], self.gates[:, :width], self.recurrent, out=self.candidate).tanh_()
        torch.lerp(self.candidate, state, self.gates[:, width:], out=out)

    def slopes(self, states: Tensor) -> Tensor:
        """(T, B, 4, H): a step's gradient by its state times these is its gradient by U h of the candidate, by what is
        under r, by what is under z, and by W x of the candidate. states (T, B, H): those before each step.

        The first three are the gradient by U h, candidate first; the last three that by W x, candidate last.
        """
        r, z = self.gates.chunk(2, dim=-1)
        slopes = r.new_empty(*r.shape[:-1], 4, r.shape[-1])
        by_recurrent, by_r, by_z, by_input = slopes.unbind(-2)
        torch.mul(1 - z, 1 - self.candidate.square(), out=by_input)
        torch.mul(by_input, r, out=by_recurrent)
        torch.mul(by_recurrent, self.recurrent * (1 - r), out=by_r)
        torch.mul((states - self.candidate).mul_(z), 1 - z, out=by_z)
        return slopes


def candidate_first(rows: Tensor) -> Tensor:
    """Rows r, z, candidate in the order candidate, r, z."""
    return rows.roll(len(rows) // 3, 0)


def candidate_last(rows: Tensor) -> Tensor:
    """Undo `candidate_first`."""
    return rows.roll(-(len(rows) // 3), 0)


def matrix_type(like: Tensor) -> torch.dtype:
    """The type of matrix products: autocast's, or that of `like`."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x weight, computed in the type of `weight`, in the type of x."""
    return x @ weight if x.dtype == weight.dtype else (x.to(weight.dtype) @ weight).to(x.dtype)


def accumulate(total: Tensor, x: Tensor, weight: Tensor) -> None:
    """total += x weight, computed in the type of `weight`."""
    if x.dtype == weight.dtype == total.dtype:
        total.addmm_(x, weight)
    else:
        total += x.to(weight.dtype) @ weight


def weight_gradient(by_output: Tensor, inputs: Tensor, kind: torch.dtype) -> Tensor:
    """Of a weight (rows, columns), from by_output (T, B, rows) and inputs (T, B, columns), computed in `kind`."""
    return (by_output.flatten(0, 1).t().to(kind) @ inputs.flatten(0, 1).to(kind)).to(inputs.dtype)
