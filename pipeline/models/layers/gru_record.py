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

    made: Tensor
    """(…, 4H): r, z, the candidate h~, and U h of the candidate; on a GPU (…, 5H), the state before them the fourth."""

    @classmethod
    def empty(cls, steps: int, batch: int, width: int, like: Tensor) -> "GRURecord":
        return cls(like.new_empty(steps, batch, (5 if like.is_cuda else 4) * width))

    def steps(self) -> list["GRURecord"]:
        return [GRURecord(made) for made in self.made]

    @property
    def width(self) -> int:
        return self.made.shape[-1] // (5 if self.made.is_cuda else 4)

    @property
    def z(self) -> Tensor:
        return self.made[..., self.width : 2 * self.width]

    def advance(self, projected: Tensor, recurrent: Tensor, state: Tensor, out: Tensor) -> None:
        """Write the state after `state` (B, H) to `out`, and this record; projected = W x + b, recurrent = U h."""
        if state.is_cuda:
            found = torch.ops.aten._thnn_fused_gru_cell(projected, recurrent, state)
            return torch._foreach_copy_((out, self.made), found)
        width = self.width
        gates, candidate, asked = self.made.split([2 * width, width, width], dim=1)
        torch.add(projected[:, : 2 * width], recurrent[:, : 2 * width], out=gates).sigmoid_()
        asked.copy_(recurrent[:, 2 * width :])
        torch.addcmul(projected[:, 2 * width :], gates[:, :width], asked, out=candidate).tanh_()
        torch.lerp(candidate, state, gates[:, width:], out=out)

    def slopes(self, states: Tensor) -> Tensor:
        """(T, B, 4, H): a step's gradient by its state times these is its gradient by U h of the candidate, by what is
        under r, by what is under z, and by W x of the candidate. states (T, B, H): those before each step.

        The first three are the gradient by U h, candidate first; the last three that by W x, candidate last.
        """
        r, z, candidate = self.made[..., : 3 * self.width].chunk(3, dim=-1)
        slopes = r.new_empty(*r.shape[:-1], 4, self.width)
        by_recurrent, by_r, by_z, by_input = slopes.unbind(-2)
        torch.mul(1 - z, 1 - candidate.square(), out=by_input)
        torch.mul(by_input, r, out=by_recurrent)
        torch.mul(by_recurrent, self.made[..., -self.width :] * (1 - r), out=by_r)
        torch.mul((states - candidate).mul_(z), 1 - z, out=by_z)
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


def loop_type(like: Tensor) -> torch.dtype:
    """The type of matrix products in a loop. On a GPU that of `like`, which such products compute in TF32: a loop waits
    for launches there, and each cast is one."""
    return like.dtype if like.is_cuda else matrix_type(like)


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight + bias, the product in the type of `weight`, in the type of x."""
    if x.dtype != weight.dtype:
        found = (x.to(weight.dtype) @ weight).to(x.dtype)
        return found if bias is None else found.add_(bias)
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def accumulate(total: Tensor, x: Tensor, weight: Tensor) -> None:
    """total += x weight, computed in the type of `weight`."""
    if x.dtype == weight.dtype == total.dtype:
        total.addmm_(x, weight)
    else:
        total += x.to(weight.dtype) @ weight


def weight_gradient(by_output: Tensor, inputs: Tensor, kind: torch.dtype) -> Tensor:
    """Of a weight (rows, columns), from by_output (T, B, rows) and inputs (T, B, columns), computed in `kind`."""
    return (by_output.flatten(0, 1).t().to(kind) @ inputs.flatten(0, 1).to(kind)).to(inputs.dtype)
