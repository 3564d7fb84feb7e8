"""GRUs over whole sequences, side by side in one loop, with a gradient written by hand (gru_record.py): on a CPU, a
fraction of the time of torch's own, which computes the gradient of the weights step by step.

Dimensions: N units side by side, B sequences, T steps, H width of a state.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from pipeline.models.layers.gru_record import GRURecord, matrix_type


def side_by_side(units: Sequence[nn.GRU], inputs: Sequence[Tensor]) -> list[Tensor]:
    """States (B, T, H) of each unit, of one layer and one width, over its own input (B, T, …), from the state 0."""
    if inputs[0].device.type != "cpu":
        return [unit(x)[0] for unit, x in zip(units, inputs, strict=True)]
    reads, recurs, biases_in, biases = zip(*(unit.all_weights[0] for unit in units), strict=True)
    projected = [F.linear(x.transpose(0, 1), *read) for x, *read in zip(inputs, reads, biases_in, strict=True)]
    recur, bias = torch.stack(recurs), torch.stack(biases).unsqueeze(1)
    states = Unrolled.apply(matrix_type(inputs[0]), torch.stack(projected, 1).to(inputs[0].dtype), recur, bias)
    return list(states.permute(1, 2, 0, 3))


class Unrolled(Function):
    """projected (T, N, B, 3H), what the inputs add to the gates -> states (T, N, B, H); products in the type `kind`.

    recur (N, 3H, H) and bias (N, 1, 3H) add what the state before does.
    """

    @staticmethod
    def forward(ctx, kind: torch.dtype, projected: Tensor, recur: Tensor, bias: Tensor) -> Tensor:
        steps, units, batch, width = *projected.shape[:3], recur.shape[2]
        record = GRURecord.empty(steps, units * batch, width, projected)
        states = projected.new_zeros(steps + 1, units, batch, width)
        with torch.autocast("cpu", enabled=False):
            weight, bias = recur.transpose(1, 2).to(kind), bias.to(kind)
            for state, after, read, step in zip(states[:-1], states[1:], projected, record.steps(), strict=True):
                recurrent = torch.baddbmm(bias, state.to(kind), weight)
                step.advance(read.flatten(0, 1), recurrent.flatten(0, 1), state.flatten(0, 1), after.flatten(0, 1))
        ctx.save_for_backward(recur, states, *record)
        ctx.kind = kind
        return states[1:]

    @staticmethod
    def backward(ctx, by_states: Tensor):
        recur, states, *recorded = ctx.saved_tensors
        record, kind, (steps, units, batch, width) = GRURecord(*recorded), ctx.kind, by_states.shape
        weight, before = recur.roll(width, 1).to(kind), states[:-1]  # the candidate's rows first, as those of slopes
        by_units = record.slopes(before.flatten(1, 2)).view(steps, units, batch, 4, width)
        z, by_state = record.z.view_as(before), by_states[-1]
        for step in range(steps - 1, -1, -1):
            by_units[step].mul_(by_state.unsqueeze(-2))
            if step:
                carried = torch.bmm(by_units[step].flatten(-2)[..., : 3 * width].to(kind), weight)
                by_state = torch.addcmul(by_states[step - 1], by_state, z[step]).add_(carried)
        by_units = by_units.flatten(-2)
        by_recurrent, read = (x.transpose(0, 1).flatten(1, 2) for x in (by_units[..., : 3 * width], before))
        by_weight = torch.bmm(by_recurrent.transpose(1, 2).to(kind), read.to(kind)).to(recur.dtype)
        by_bias = by_recurrent.sum(1, keepdim=True)
        return None, by_units[..., width:], by_weight.roll(-width, 1), by_bias.roll(-width, 2)
