"""The decoder's recurrence: DL4MT's conditional GRU (Multi-channel Encoder, section 2, after Bahdanau et al. 2015).

    s'_t = GRU_1(y_{t-1}, s_{t-1})        c_t = sum_j a_tj A_j, a_t = attention of s'_t over the annotations A
    s_t  = GRU_2(c_t, s'_t)

Nothing of a step can be computed before the step that precedes it but W y of the first unit and the keys of the
attention. In training the loop's gradient is therefore written by hand (see gru_record.py): a step is a third of the
operations that automatic differentiation makes of it, and no gradient of a weight is computed step by step. The same
loop in plain words is `conditional_gru` of tests/models/plain_recurrent.py.

Dimensions: B sentences, K hypotheses, T steps, S source positions, H units, D annotation, A hidden units of attention.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from pipeline.models.layers.attention_record import AttentionRecord, additive_mask, dots, weighted_sum
from pipeline.models.layers.gru_record import (
    GRURecord,
    accumulate,
    candidate_first,
    candidate_last,
    loop_type,
    product,
    weight_gradient,
)
from pipeline.models.recurrent.additive_attention import AdditiveAttention
from pipeline.models.recurrent.gru import GRU
from pipeline.models.recurrent.settings import RecurrentConfig


class ConditionalGRU(nn.Module):
    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.first = GRU(config.d_embedding, config.d_state)
        self.attention = AdditiveAttention(config.d_state, config.d_annotation, config.d_attention)
        self.second = GRU(config.d_annotation, config.d_state, config.reset_bias)

    def forward(self, y: Tensor, state: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All steps. y (B, T, E), state (B, H) before the first, annotations (B, S, D), mask (B, S)
        -> states (B, T, H) and contexts (B, T, D)"""
        kept = Kept(
            annotations=annotations,
            recur_first=self.first.weight_state,
            query=self.attention.query,
            score=self.attention.score,
            read_second=self.second.weight_input,
            recur_second=self.second.weight_state,
        )
        keys, projected = self.attention.keys(annotations), self.first.project(y.transpose(0, 1))
        given = (projected, state, keys, mask, *self.second.biases())
        states, contexts = Unrolled.apply(loop_type(state), *given, *kept)
        return states.transpose(0, 1), contexts.transpose(0, 1)

    def step(self, y: Tensor, state: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One step of each hypothesis. y (B, K, E), state (B, K, H), keys (B, S, A) -> state, context (B, K, D)"""
        middle = self.first.step(self.first.project(y), state)
        context = self.attention.weights(middle, keys, mask) @ annotations
        return self.second.step(self.second.project(context), middle), context


class Kept(NamedTuple):
    """What the loop is given and needs on the way back too, and in the same places the gradients by it."""

    annotations: Tensor
    """(B, S, D)"""
    recur_first: Tensor
    """U of the first unit"""
    query: Tensor
    """W and v of the attention"""
    score: Tensor
    read_second: Tensor
    """W and U of the second unit"""
    recur_second: Tensor


class Record(NamedTuple):
    """What is computed on the way and needed on the way back."""

    looks: AttentionRecord
    first: GRURecord
    second: GRURecord
    states: Tensor
    """(T + 1, B, H), the start among them"""
    middles: Tensor
    """s' (T, B, H)"""
    contexts: Tensor
    """(T, B, D)"""


class Unrolled(Function):
    """States (T, B, H) and contexts (T, B, D) of all steps; matrix products and attention in the type `kind`."""

    @staticmethod
    def forward(ctx, kind: torch.dtype, *given: Tensor) -> tuple[Tensor, Tensor]:
        projected, start, keys, mask, read_bias, recur_bias, *weights = given
        steps, (batch, width), kept = len(projected), start.shape, Kept(*weights)
        record = Record(
            AttentionRecord.empty(steps, mask, len(kept.score), start, kind),
            GRURecord.empty(steps, batch, width, start),
            GRURecord.empty(steps, batch, width, start),
            torch.cat((start.unsqueeze(0), start.new_empty(steps, batch, width))),
            start.new_empty(steps, batch, width),
            start.new_empty(steps, batch, kept.annotations.shape[2]),
        )
        with torch.autocast(start.device.type, enabled=False):
            padding = additive_mask(mask, kind)
            go_on(record, projected.to(start.dtype), keys.to(kind), padding, (read_bias, recur_bias), kept)
        ctx.save_for_backward(*kept, *record.looks, *record.first, *record.second, *record[3:])
        ctx.kind = kind
        return record.states[1:], record.contexts

    @staticmethod
    def backward(ctx, by_states: Tensor, by_contexts: Tensor):
        saved, kind = ctx.saved_tensors, ctx.kind
        kept, looks = Kept(*saved[:6]), AttentionRecord(*saved[6:8])
        record = Record(looks, GRURecord(saved[8]), GRURecord(saved[9]), *saved[10:])
        states, middles, width, hidden = record.states[:-1], record.middles, record.states.shape[2], len(kept.score)
        by_contexts = by_contexts.clone()
        by_start, by_keys, by_first, by_asked, by_scores = go_back(kept, record, by_states, by_contexts, kind)
        by_recur, by_read = by_asked[..., hidden : hidden + 3 * width], by_asked[..., hidden + width :]
        gradients = Kept(
            annotations=torch.bmm(looks.weights.permute(1, 2, 0), by_contexts.transpose(0, 1)),
            recur_first=candidate_last(weight_gradient(by_first[..., : 3 * width], states, kind)),
            query=weight_gradient(by_asked[..., :hidden], middles, kind) * (4 * kept.score.unsqueeze(1)),
            score=looks.score_gradient(by_scores),
            read_second=weight_gradient(by_read, record.contexts, kind),
            recur_second=candidate_last(weight_gradient(by_recur, middles, kind)),
        )
        by_biases = by_read.sum((0, 1)), candidate_last(by_recur.sum((0, 1)))
        return None, by_first[..., width:], by_start, 2 * by_keys * kept.score, None, *by_biases, *gradients


def go_on(
    record: Record, projected: Tensor, keys: Tensor, padding: Tensor, biases: tuple[Tensor, Tensor], kept: Kept
) -> None:
    """Write all steps into `record`. biases: of the second unit, to W c and to U s'."""
    kind, hidden = keys.dtype, len(kept.score)
    recur, read = kept.recur_first.t().to(kind), kept.read_second.t().to(kind)
    # W s' of the attention and U s' of the second unit are one product.
    ask, ask_bias = torch.cat((2 * kept.query, kept.recur_second)).t().to(kind), F.pad(biases[1], (hidden, 0))
    annotations, score = kept.annotations.to(kind), (2 * kept.score).to(kind)
    units = zip(record.looks.steps(), record.first.steps(), record.second.steps(), strict=True)
    for t, (look, to_middle, to_state) in enumerate(units):
        state, middle, context = record.states[t], record.middles[t], record.contexts[t]
        to_middle.advance(projected[t], product(state, recur), state, middle)
        asked = product(middle, ask, ask_bias)
        torch.add(keys, asked[:, None, :hidden].to(kind), out=look.activations)
        look.look(score, padding)
        weighted_sum(look.weights, annotations, out=context)
        to_state.advance(product(context, read, biases[0]), asked[:, hidden:], middle, record.states[t + 1])


def go_back(
    kept: Kept, record: Record, by_states: Tensor, by_contexts: Tensor, kind: torch.dtype
) -> tuple[Tensor, ...]:
    """The gradients by the start (B, H), by the keys over 2v (B, S, A), and of all steps by what the first unit
    computes (T, B, 4H), by 2 W s' over 2v and what the second unit computes (T, B, A + 4H), by the scores (T, B, S).

    What the second unit adds is added to by_contexts (T, B, D).
    """
    (_, _, query, score, _, recur_second), (steps, batch, width) = kept, record.middles.shape
    hidden, like = len(score), record.states
    first_slopes, second_slopes = record.first.slopes(record.states[:-1]), record.second.slopes(record.middles)
    ask = torch.cat((4 * score.unsqueeze(1) * query, candidate_first(recur_second))).to(kind)
    recur, read = candidate_first(kept.recur_first).to(kind), kept.read_second.to(kind)
    annotations, looks = kept.annotations.to(kind), record.looks.steps()
    by_first, by_asked = torch.empty_like(first_slopes), like.new_empty(steps, batch, hidden + 4 * width)
    by_second = by_asked[..., hidden:].unflatten(2, (4, width))
    by_scores = torch.empty_like(record.looks.weights, dtype=kind)
    by_keys, by_state = like.new_zeros(record.looks.activations.shape[1:]), by_states[-1]
    for t in range(steps - 1, -1, -1):
        torch.mul(by_state.unsqueeze(1), second_slopes[t], out=by_second[t])
        accumulate(by_contexts[t], by_asked[t][:, hidden + width :], read)
        by_weights = dots(by_contexts[t].to(kind), annotations).to(like.dtype)
        by_keys += looks[t].look_back(by_weights, by_scores[t], by_asked[t][:, :hidden])
        by_middle = by_state * record.second.z[t]
        accumulate(by_middle, by_asked[t][:, : hidden + 3 * width], ask)
        torch.mul(by_middle.unsqueeze(1), first_slopes[t], out=by_first[t])
        z = record.first.z[t]
        by_state = torch.addcmul(by_states[t - 1], by_middle, z) if t else by_middle * z
        accumulate(by_state, by_first[t].flatten(1)[:, : 3 * width], recur)
    return by_state, by_keys, by_first.flatten(2), by_asked, by_scores
