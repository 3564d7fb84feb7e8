"""The recogniser's decoder over all characters, with a gradient written by hand (gru_record.py): what it asks of a step
and what differs between its two forms is said in model.py, and there in plain words (`AttentionRecogniser.advance`).

Dimensions: B utterances, S encoder positions, T characters, E annotation, D decoder width, A attention width,
r width of a filter, V vocabulary.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from pipeline.models.layers.attention_record import AttentionRecord, additive_mask, dots, weighted_sum
from pipeline.models.layers.gru_record import (
    GRURecord,
    accumulate,
    candidate_first,
    candidate_last,
    product,
    weight_gradient,
)

Choose = Callable[[int, Tensor, Tensor], Tensor]
"""(position, d before it (B, D), c before it (B, E)) -> the symbols that are read there, (B,)"""


class Given(NamedTuple):
    """What the loop is given, and in the same places the gradients by it."""

    values: Tensor
    """Annotations (B, S, E)"""
    keys: Tensor
    """2 (V h + b) of them (B, S, A)"""
    location: Tensor
    """2 U F, (r, A)"""
    query: Tensor
    """W (A, D), and w (A,), of the attention"""
    score: Tensor
    table: Tensor
    """What the GRU's gates add up for each symbol, (V, 3D)"""
    read: Tensor
    """Of the GRU, the weight of the context (3D, E)"""
    recur: Tensor
    """(3D, D), and the bias that goes with it"""
    bias: Tensor


class Record(NamedTuple):
    """What is computed on the way and needed on the way back."""

    looks: AttentionRecord
    unit: GRURecord
    states: Tensor
    """(T + 1, B, D), zeros the first"""
    contexts: Tensor
    """(T, B, E)"""
    seen: Tensor
    """What each filter sees of the alignment before, (T, B, S, r)"""
    symbols: Tensor
    """(T, B)"""


class Unrolled(Function):
    """States (T, B, D) and contexts (T, B, E) of `steps` characters; products in the type `kind`.

    late: whether the GRU reads the context of the step before, and what it makes of it asks for this step's.
    """

    @staticmethod
    def forward(ctx, kind: torch.dtype, late: bool, steps: int, choose: Choose, mask: Tensor, *tensors: Tensor):
        given, like = Given(*tensors), tensors[0]
        (batch, width), (reach, hidden) = (len(like), given.recur.shape[1]), given.location.shape
        record = Record(
            AttentionRecord.empty(steps, mask, hidden, like, kind),
            GRURecord.empty(steps, batch, width, like),
            like.new_zeros(steps + 1, batch, width),
            like.new_empty(steps, batch, like.shape[2]),
            like.new_empty(steps, *mask.shape, reach, dtype=kind),
            mask.new_empty(steps, batch, dtype=torch.long),
        )
        with torch.autocast(like.device.type, enabled=False):
            go_on(record, given, additive_mask(mask, kind), choose, late)
        ctx.save_for_backward(*tensors, *record.looks, *record.unit, *record[2:])
        ctx.late = int(late)
        return record.states[1:], record.contexts

    @staticmethod
    def backward(ctx, by_states: Tensor, by_contexts: Tensor):
        given, saved = Given(*ctx.saved_tensors[:9]), ctx.saved_tensors[9:]
        record, late = Record(AttentionRecord(*saved[:2]), GRURecord(saved[2]), *saved[3:]), ctx.late
        (hidden, width), kind, scale = given.query.shape, record.seen.dtype, 2 * given.score
        by_contexts = by_contexts.clone()
        by_keys, by_location, by_asked, by_scores = go_back(given, record, by_states, by_contexts, late)
        by_recur, by_read = by_asked[..., hidden : hidden + 3 * width], by_asked[:-1, :, hidden + width :]
        rows = torch.ops.aten.embedding_dense_backward(by_read, record.symbols, len(given.table), -1, False)
        return (
            *[None] * 5,
            *Given(
                values=torch.bmm(record.looks.weights.permute(1, 2, 0), by_contexts.transpose(0, 1)),
                keys=by_keys * scale,
                location=by_location * scale,
                query=weight_gradient(by_asked[..., :hidden], record.states, kind) * (2 * scale.unsqueeze(1)),
                score=record.looks.score_gradient(by_scores),
                table=rows,
                read=weight_gradient(by_read[late:], record.contexts[: len(by_read) - late], kind),
                recur=candidate_last(weight_gradient(by_recur, record.states, kind)),
                bias=candidate_last(by_recur.sum((0, 1))),
            ),
        )


def go_on(record: Record, given: Given, padding: Tensor, choose: Choose, late: bool) -> None:
    """Write all steps into `record`."""
    kind, (hidden, _) = record.seen.dtype, given.query.shape
    # W d of the attention and U d of the GRU are one product.
    ask, ask_bias = torch.cat((2 * given.query, given.recur)).t().to(kind), F.pad(given.bias, (hidden, 0))
    read, score, values = given.read.t().to(kind), (2 * given.score).to(kind), given.values.to(kind)
    keys, location, reach = given.keys.to(kind).flatten(0, 1), given.location.to(kind), len(given.location) // 2
    alignment, context = torch.zeros_like(record.looks.weights[0]), torch.zeros_like(record.contexts[0])
    alignment[:, 0] = 1.0
    asked = product(record.states[0], ask, ask_bias)

    def look(asked: Tensor, seen: Tensor, now: AttentionRecord, out: Tensor) -> None:
        seen.copy_(F.pad(alignment, (reach, reach)).unfold(1, 2 * reach + 1, 1))
        torch.addmm(keys, seen.flatten(0, 1), location, out=now.activations.flatten(0, 1))
        now.activations.add_(asked[:, None, :hidden])
        now.look(score, padding)
        weighted_sum(now.weights, values, out=out)

    for t, (now, to_state) in enumerate(zip(record.looks.steps(), record.unit.steps(), strict=True)):
        state, after = record.states[t], record.states[t + 1]
        record.symbols[t] = choose(t, state, context)
        if not late:
            look(asked, record.seen[t], now, record.contexts[t])
            context = record.contexts[t]
        projected = product(context, read, given.table.index_select(0, record.symbols[t]))
        to_state.advance(projected, asked[:, hidden:], state, after)
        asked = product(after, ask, ask_bias)
        if late:
            look(asked, record.seen[t], now, record.contexts[t])
            context = record.contexts[t]
        alignment = now.weights


def go_back(
    given: Given, record: Record, by_states: Tensor, by_contexts: Tensor, late: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients by the keys (B, S, A) and the location (r, A) over 2w, by what the states (T + 1) are asked for,
    2 W d over 2w and what the GRU computes (T + 1, B, A + 4D), and by the scores (T, B, S).

    What the GRU adds is added to by_contexts (T, B, E).
    """
    kind, (hidden, width), scale = record.seen.dtype, given.query.shape, 2 * given.score
    steps, slopes, looks = len(by_states), record.unit.slopes(record.states[:-1]), record.looks.steps()
    ask = torch.cat((2 * scale.unsqueeze(1) * given.query, candidate_first(given.recur))).to(kind)
    read, values, location = given.read.to(kind), given.values.to(kind), (given.location * scale).t().to(kind)
    by_asked = by_states.new_zeros(steps + 1, len(values), hidden + 4 * width)
    by_units = by_asked[..., hidden:].unflatten(2, (4, width))
    by_scores, by_keys = torch.empty_like(record.looks.weights, dtype=kind), torch.zeros_like(given.keys)
    by_location, by_alignment = torch.zeros_like(given.location), None
    padded = [len(values), values.shape[1] + len(given.location) - 1]
    reach, by_state = len(given.location) // 2, by_states[-1]

    def join(t: int, by_state: Tensor) -> Tensor:
        """By the state before step t, of that by the state after it, if there is one."""
        carried = torch.addcmul(by_states[t - 1], by_state, record.unit.z[t]) if t < steps else by_state.clone()
        accumulate(carried, by_asked[t][:, : hidden + 3 * width], ask)
        return carried

    def unit_back(t: int) -> None:
        torch.mul(by_state.unsqueeze(1), slopes[t], out=by_units[t])
        if t >= late:
            accumulate(by_contexts[t - late], by_asked[t][:, hidden + width :], read)

    for t in range(steps - 1, -1, -1):
        if not late:
            unit_back(t)
        by_weights = dots(by_contexts[t].to(kind), values).to(by_states.dtype)
        if by_alignment is not None:
            by_weights += by_alignment
        by_hidden = looks[t].look_back(by_weights, by_scores[t], by_asked[t + late][:, :hidden])
        by_keys += by_hidden
        accumulate(by_location, record.seen[t].flatten(0, 1).t(), by_hidden.flatten(0, 1))
        if t:
            by_seen = (by_hidden @ location).to(by_states.dtype)
            by_alignment = torch.ops.aten.unfold_backward(by_seen, padded, 1, len(given.location), 1)[:, reach:-reach]
        if t + late:
            by_state = join(t + late, by_state)
        if late:
            unit_back(t)
    return by_keys, by_location, by_asked, by_scores
