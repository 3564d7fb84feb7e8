"""The conditional GRU of recurrent/cells.py with a hand-derived backward pass.

Only W y of the first unit and the keys of the attention can be computed before the loop. A step runs a third of
the operators of automatic differentiation, and no weight gradient is computed step by step (see gru.py).

Dimensions: B sentences, T steps, S source positions, E embedding, H units, D annotation, A hidden units of attention.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.models.kernels import loops
from pipeline.models.kernels.gru import GRUCache, candidate_first, candidate_last

if TYPE_CHECKING:
    from pipeline.models.recurrent.cells import ConditionalGRU


def conditional_gru(
    decoder: "ConditionalGRU", y: Tensor, state: Tensor, annotations: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute all steps of a `ConditionalGRU`, as `ConditionalGRU.loop`."""
    weights = LoopWeights(
        annotations=annotations,
        recur_first=decoder.first.weight_state,
        query=decoder.attention.query,
        score=decoder.attention.score,
        context_second=decoder.second.weight_input,
        recur_second=decoder.second.weight_state,
    )
    keys, projected = decoder.attention.keys(annotations), decoder.first.project(y.transpose(0, 1))
    inputs = (projected, state, keys, mask, *decoder.second.biases())
    states, contexts = _ConditionalGRUFunction.apply(loops.loop_dtype(state), *inputs, *weights)
    return states.transpose(0, 1), contexts.transpose(0, 1)


class LoopWeights(NamedTuple):
    """Inputs that the backward loop needs again; in `backward`, their gradients."""

    annotations: Tensor
    """(B, S, D)"""
    recur_first: Tensor
    """U of the first unit, (3H, H)"""
    query: Tensor
    """W of the attention, (A, H)"""
    score: Tensor
    """v of the attention, (A,)"""
    context_second: Tensor
    """W of the second unit, (3H, D)"""
    recur_second: Tensor
    """U of the second unit, (3H, H)"""


class ForwardCache(NamedTuple):
    """Forward values that the backward loop needs."""

    attention: loops.AttentionCache
    first: GRUCache
    second: GRUCache
    states: Tensor
    """(T + 1, B, H), the initial state included"""
    middles: Tensor
    """s', (T, B, H)"""
    contexts: Tensor
    """(T, B, D)"""


class _ConditionalGRUFunction(torch.autograd.Function):
    """Autograd function of all steps of the decoder."""

    @staticmethod
    def forward(ctx, dtype: torch.dtype, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (T, B, H) and contexts (T, B, D).

        The inputs are W y and bias of the first unit (T, B, 3H), the initial state (B, H), keys (B, S, A) and mask (B,
        S). The two biases of the second unit (3H,) and the fields of `LoopWeights` follow.
        """
        projected, start, keys, mask, context_bias, recur_bias, *tensors = inputs
        steps, (batch, width), weights = len(projected), start.shape, LoopWeights(*tensors)
        cache = ForwardCache(
            loops.AttentionCache.empty(steps, mask, len(weights.score), start, dtype),
            GRUCache.empty(steps, batch, width, start),
            GRUCache.empty(steps, batch, width, start),
            torch.cat((start.unsqueeze(0), start.new_empty(steps, batch, width))),
            start.new_empty(steps, batch, width),
            start.new_empty(steps, batch, weights.annotations.shape[2]),
        )
        with torch.autocast(start.device.type, enabled=False):
            padding = loops.additive_mask(mask, dtype)
            forward_loop(cache, projected.to(start.dtype), keys.to(dtype), padding, (context_bias, recur_bias), weights)
        ctx.save_for_backward(*weights, *cache.attention, *cache.first, *cache.second, *cache[3:])
        ctx.dtype = dtype
        return cache.states[1:], cache.contexts

    @staticmethod
    def backward(ctx, grad_states: Tensor, grad_contexts: Tensor):
        saved, dtype = ctx.saved_tensors, ctx.dtype
        weights, attention = LoopWeights(*saved[:6]), loops.AttentionCache(*saved[6:8])
        cache = ForwardCache(attention, GRUCache(saved[8]), GRUCache(saved[9]), *saved[10:])
        states, middles, width, hidden = cache.states[:-1], cache.middles, cache.states.shape[2], len(weights.score)
        grad_contexts = grad_contexts.clone()
        grads = backward_loop(weights, cache, grad_states, grad_contexts, dtype)
        grad_start, grad_keys, grad_first, grad_middle, grad_scores = grads
        grad_recur, grad_gates = grad_middle[..., hidden : hidden + 3 * width], grad_middle[..., hidden + width :]
        gradients = LoopWeights(
            annotations=torch.bmm(attention.weights.permute(1, 2, 0), grad_contexts.transpose(0, 1)),
            recur_first=candidate_last(loops.weight_gradient(grad_first[..., : 3 * width], states, dtype)),
            query=loops.weight_gradient(grad_middle[..., :hidden], middles, dtype) * (4 * weights.score.unsqueeze(1)),
            score=attention.score_gradient(grad_scores),
            context_second=loops.weight_gradient(grad_gates, cache.contexts, dtype),
            recur_second=candidate_last(loops.weight_gradient(grad_recur, middles, dtype)),
        )
        grad_biases = grad_gates.sum((0, 1)), candidate_last(grad_recur.sum((0, 1)))
        grad_projected, grad_keys = grad_first[..., width:], 2 * grad_keys * weights.score
        return None, grad_projected, grad_start, grad_keys, None, *grad_biases, *gradients


def forward_loop(
    cache: ForwardCache,
    projected: Tensor,
    keys: Tensor,
    padding: Tensor,
    biases: tuple[Tensor, Tensor],
    weights: LoopWeights,
) -> None:
    """Compute all steps and fill `cache`.

    Args:
        cache: Output; its first state is set.
        projected: W y and bias of the first unit, shape (T, B, 3H).
        keys: 2 (U a + b), shape (B, S, A).
        padding: `additive_mask` of the source, shape (B * S,).
        biases: Added to W c and to U s' of the second unit, shape (3H,) each.
        weights: Weights and annotations.
    """
    dtype, hidden = keys.dtype, len(weights.score)
    recur, context_weight = weights.recur_first.t().to(dtype), weights.context_second.t().to(dtype)
    # W s' of the attention and U s' of the second unit are one matrix multiplication.
    query = torch.cat((2 * weights.query, weights.recur_second)).t().to(dtype)
    query_bias = F.pad(biases[1], (hidden, 0))
    annotations, score = weights.annotations.to(dtype), (2 * weights.score).to(dtype)
    units = zip(cache.attention.steps(), cache.first.steps(), cache.second.steps(), strict=True)
    for t, (attention, first, second) in enumerate(units):
        state, middle, context = cache.states[t], cache.middles[t], cache.contexts[t]
        first.advance(projected[t], loops.matmul(state, recur), state, middle)
        middle_projection = loops.matmul(middle, query, query_bias)
        torch.add(keys, middle_projection[:, None, :hidden].to(dtype), out=attention.activations)
        attention.attend(score, padding)
        loops.sum_rows(attention.weights, annotations, out=context)
        second.advance(
            loops.matmul(context, context_weight, biases[0]), middle_projection[:, hidden:], middle, cache.states[t + 1]
        )


def backward_loop(
    weights: LoopWeights, cache: ForwardCache, grad_states: Tensor, grad_contexts: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Differentiate all steps, last step first.

    Args:
        weights: Weights and annotations.
        cache: Forward values.
        grad_states: Shape (T, B, H).
        grad_contexts: Shape (T, B, D); the gradient through the second unit is added in place.
        dtype: Dtype of matrix multiplications.

    Returns:
        Gradients with respect to the initial state (B, H); the keys (B, S, A), divided by 2 v; the slots of the first
        unit (T, B, 4H); 2 W s', divided by 2 v, and the slots of the second unit (T, B, A + 4H); the scores (T, B, S).
    """
    (_, _, query, score, _, recur_second), (steps, batch, width) = weights, cache.middles.shape
    hidden, like = len(score), cache.states
    first_slopes, second_slopes = cache.first.slopes(cache.states[:-1]), cache.second.slopes(cache.middles)
    to_middle = torch.cat((4 * score.unsqueeze(1) * query, candidate_first(recur_second))).to(dtype)
    recur, context_weight = candidate_first(weights.recur_first).to(dtype), weights.context_second.to(dtype)
    annotations, attention = weights.annotations.to(dtype), cache.attention.steps()
    grad_first, grad_middle = torch.empty_like(first_slopes), like.new_empty(steps, batch, hidden + 4 * width)
    grad_second = grad_middle[..., hidden:].unflatten(2, (4, width))
    grad_scores = torch.empty_like(cache.attention.weights, dtype=dtype)
    grad_keys, grad_state = like.new_zeros(cache.attention.activations.shape[1:]), grad_states[-1]
    for t in range(steps - 1, -1, -1):
        torch.mul(grad_state.unsqueeze(1), second_slopes[t], out=grad_second[t])
        loops.add_matmul_(grad_contexts[t], grad_middle[t][:, hidden + width :], context_weight)
        grad_weights = loops.dot_rows(grad_contexts[t].to(dtype), annotations).to(like.dtype)
        grad_keys += attention[t].attend_backward(grad_weights, grad_scores[t], grad_middle[t][:, :hidden])
        grad_s_prime = grad_state * cache.second.z[t]
        loops.add_matmul_(grad_s_prime, grad_middle[t][:, : hidden + 3 * width], to_middle)
        torch.mul(grad_s_prime.unsqueeze(1), first_slopes[t], out=grad_first[t])
        z = cache.first.z[t]
        grad_state = torch.addcmul(grad_states[t - 1], grad_s_prime, z) if t else grad_s_prime * z
        loops.add_matmul_(grad_state, grad_first[t].flatten(1)[:, : 3 * width], recur)
    return grad_state, grad_keys, grad_first.flatten(2), grad_middle, grad_scores
