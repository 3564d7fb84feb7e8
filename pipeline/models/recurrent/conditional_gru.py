"""The decoder's recurrence: DL4MT's conditional GRU (Multi-channel Encoder, section 2, after Bahdanau et al. 2015).

    s'_t = GRU_1(y_{t-1}, s_{t-1})        c_t = sum_j a_tj A_j, a_t = attention of s'_t over the annotations A
    s_t  = GRU_2(c_t, s'_t)

Nothing of a step can be computed before the step that precedes it but W y of the first unit and the keys of the
attention. In training the loop's gradient is therefore written by hand (see gru_record.py): a step is a third of the
operations that automatic differentiation makes of it, and no gradient of a weight is computed step by step. The same
loop in plain words is `conditional_gru` of reference.py.

Dimensions: B sentences, K hypotheses, T steps, S source positions, H units, D annotation, A hidden units of attention.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from pipeline.models.recurrent.additive_attention import (
    AdditiveAttention,
    additive_mask,
    dots,
    softmax_backward,
    weighted_sum,
)
from pipeline.models.recurrent.gru import GRU
from pipeline.models.recurrent.gru_record import (
    GRURecord,
    accumulate,
    candidate_first,
    candidate_last,
    matrix_type,
    product,
    weight_gradient,
)
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
        read_bias, recur_bias = self.second.biases()
        given = Given(
            projected=self.first.project(y.transpose(0, 1)),
            start=state,
            keys=self.attention.keys(annotations),
            annotations=annotations,
            mask=mask,
            recur_first=self.first.weight_state,
            query=self.attention.query,
            score=self.attention.score,
            read_second=self.second.weight_input,
            recur_second=self.second.weight_state,
            read_bias=read_bias,
            recur_bias=recur_bias,
        )
        states, contexts = Unrolled.apply(matrix_type(state), *given)
        return states.transpose(0, 1), contexts.transpose(0, 1)

    def step(self, y: Tensor, state: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One step of each hypothesis. y (B, K, E), state (B, K, H), keys (B, S, A) -> state, context (B, K, D)"""
        middle = self.first.step(self.first.project(y), state)
        context = self.attention.weights(middle, keys, mask) @ annotations
        return self.second.step(self.second.project(context), middle), context


class Given(NamedTuple):
    """What the loop is given, and in the same places the gradients by it."""

    projected: Tensor
    """W y and bias of the first unit, (T, B, 3H)"""
    start: Tensor
    """(B, H)"""
    keys: Tensor
    """(B, S, A)"""
    annotations: Tensor
    """(B, S, D)"""
    mask: Tensor | None
    """(B, S), which has no gradient"""
    recur_first: Tensor
    """U of the first unit"""
    query: Tensor
    """W and v of the attention"""
    score: Tensor
    read_second: Tensor
    """W, U and what is added to each, of the second unit"""
    recur_second: Tensor
    read_bias: Tensor
    recur_bias: Tensor


class Unrolled(Function):
    """States (T, B, H) and contexts (T, B, D) of all steps; matrix products and attention in the type `kind`."""

    @staticmethod
    def forward(ctx, kind: torch.dtype, *given: Tensor) -> tuple[Tensor, Tensor]:
        projected, start, keys, annotations, mask, recur_first, query, score, *second_unit = given
        read_second, recur_second, read_bias, recur_bias = second_unit
        (steps, batch, _), (width, hidden) = projected.shape, (start.shape[1], len(score))
        first, second = (GRURecord.empty(steps, batch, width, start) for _ in range(2))
        states, middles = start.new_empty(steps + 1, batch, width), start.new_empty(steps, batch, width)
        states[0] = start
        contexts = start.new_empty(steps, batch, annotations.shape[2])
        weights = start.new_empty(steps, *mask.shape)
        activations = start.new_empty(steps, *keys.shape, dtype=kind)
        with torch.autocast(start.device.type, enabled=False):
            recur = recur_first.t().to(kind)
            # W s' of the attention and U s' of the second unit are one product.
            ask, ask_bias = torch.cat((2 * query, recur_second)).t().to(kind), F.pad(recur_bias, (hidden, 0))
            read = read_second.t().to(kind)
            narrow_keys, narrow, narrow_score = keys.to(kind), annotations.to(kind), (2 * score).to(kind)
            bias = additive_mask(mask, kind)
            projected = projected.to(start.dtype)
            for t, (to_middle, to_state) in enumerate(zip(first.steps(), second.steps(), strict=True)):
                to_middle.advance(projected[t], product(states[t], recur), states[t], middles[t])
                asked = product(middles[t], ask).add_(ask_bias)
                torch.add(narrow_keys, asked[:, None, :hidden].to(kind), out=activations[t]).sigmoid_()
                scores = torch.addmv(bias, activations[t].flatten(0, 1), narrow_score).view(mask.shape)
                torch.softmax(scores.to(start.dtype), 1, out=weights[t])
                contexts[t] = weighted_sum(weights[t].to(kind), narrow)
                to_state.advance(
                    product(contexts[t], read).add_(read_bias), asked[:, hidden:], middles[t], states[t + 1]
                )
        ctx.save_for_backward(
            *(annotations, recur_first, query, score, read_second, recur_second),
            *(states, middles, contexts, weights, activations, *first, *second),
        )
        ctx.kind = kind
        return states[1:], contexts

    @staticmethod
    def backward(ctx, by_states: Tensor, by_contexts: Tensor):
        annotations, recur_first, query, score, read_second, recur_second, *rest = ctx.saved_tensors
        states, middles, contexts, weights, activations, *records = rest
        first, second, kind = GRURecord(*records[:3]), GRURecord(*records[3:]), ctx.kind
        steps, batch, width = middles.shape
        hidden = len(score)
        first_slopes, second_slopes = first.slopes(states[:-1]), second.slopes(middles)
        narrow = annotations.to(kind)
        # 2v is put into the weights, so that the gradient by what is under sigmoid needs no product with it.
        ask = torch.cat((4 * score.unsqueeze(1) * query, candidate_first(recur_second))).to(kind)
        recur, read = candidate_first(recur_first).to(kind), read_second.to(kind)
        # Of a step: the gradient by 2 W s' over 2v, then the four of the second unit.
        by_asked = states.new_empty(steps, batch, hidden + 4 * width)
        by_second = by_asked[..., hidden:].unflatten(2, (4, width))
        by_first = torch.empty_like(first_slopes)
        by_contexts = by_contexts.clone()
        by_scores = torch.empty_like(weights, dtype=kind)
        by_keys = states.new_zeros(activations.shape[1:])
        by_state = by_states[-1]
        for t in range(steps - 1, -1, -1):
            torch.mul(by_state.unsqueeze(1), second_slopes[t], out=by_second[t])
            accumulate(by_contexts[t], by_asked[t][:, hidden + width :], read)
            by_weights = dots(by_contexts[t].to(kind), narrow).to(states.dtype)
            by_scores[t] = softmax_backward(by_weights, weights[t])
            by_hidden = torch.ops.aten.sigmoid_backward(by_scores[t].unsqueeze(2), activations[t])
            by_keys += by_hidden
            torch.sum(by_hidden, 1, dtype=states.dtype, out=by_asked[t][:, :hidden])
            by_middle = by_state * second.z[t]
            accumulate(by_middle, by_asked[t][:, : hidden + 3 * width], ask)
            torch.mul(by_middle.unsqueeze(1), first_slopes[t], out=by_first[t])
            by_state = by_middle * first.z[t] if t == 0 else torch.addcmul(by_states[t - 1], by_middle, first.z[t])
            accumulate(by_state, by_first[t].flatten(1)[:, : 3 * width], recur)
        by_first = by_first.flatten(2)
        by_recur, by_read = by_asked[..., hidden : hidden + 3 * width], by_asked[..., hidden + width :]
        by_annotations = torch.bmm(weights.permute(1, 2, 0), by_contexts.transpose(0, 1))
        by_score = 2 * torch.mv(activations.flatten(0, 2).t(), by_scores.flatten()).to(score.dtype)
        gradients = Given(
            projected=by_first[..., width:],
            start=by_state,
            keys=2 * by_keys * score,
            annotations=by_annotations,
            mask=None,
            recur_first=candidate_last(weight_gradient(by_first[..., : 3 * width], states[:-1], kind)),
            query=weight_gradient(by_asked[..., :hidden], middles, kind) * (4 * score.unsqueeze(1)),
            score=by_score,
            read_second=weight_gradient(by_read, contexts, kind),
            recur_second=candidate_last(weight_gradient(by_recur, middles, kind)),
            read_bias=by_read.sum((0, 1)),
            recur_bias=candidate_last(by_recur.sum((0, 1))),
        )
        return None, *gradients
