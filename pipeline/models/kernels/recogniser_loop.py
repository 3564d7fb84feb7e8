"""The decoder loop of speech_attention/model.py over all characters with a hand-derived backward pass (see gru.py).

Dimensions: B utterances, S encoder positions, T characters, E annotation, D decoder width, A attention width,
r width of a location filter, V vocabulary.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.models.kernels import loops
from pipeline.models.kernels.gru import GRUCache, candidate_first, candidate_last

if TYPE_CHECKING:
    from pipeline.models.speech_attention.model import AttentionRecogniser

Choose = Callable[[int, Tensor], Tensor]
"""(position, task state before it (B, state_width)) -> symbols (B,) that the decoder reads there."""
ChooseFromParts = Callable[[int, Tensor, Tensor], Tensor]
"""The same, given state (B, D) and context (B, E) in place of the task state."""


def recogniser_states(model: "AttentionRecogniser", batch, choose: Choose) -> Tensor:
    """Compute the task states (B, T, state_width) of all target positions, as `AttentionRecogniser.loop`."""
    values, mask = model.encoder(batch.frames, batch.frame_counts)
    source, gru = model.attention.prepare(values, mask), model.gru
    symbol_weight, context_weight = gru.weight_ih.split([model.config.embedding_width, values.shape[2]], dim=1)
    inputs = LoopInputs(
        values=values,
        keys=source["keys"],
        location=2 * (model.attention.of_location.weight @ model.attention.filters).t(),
        query=model.attention.of_state.weight,
        score=model.attention.score.weight.squeeze(0),
        table=F.linear(model.embedding.weight, symbol_weight, gru.bias_ih),
        context_weight=context_weight,
        recur=gru.weight_hh,
        bias=gru.bias_hh,
    )
    states, contexts = _RecogniserLoopFunction.apply(
        loops.loop_dtype(gru.weight_hh),
        model.config.gru_reads == "last context",
        batch.tgt_in.shape[1],
        lambda position, state, context: choose(position, model.task_state(state, context)),
        mask,
        *(tensor.to(gru.weight_hh.dtype) for tensor in inputs),
    )
    return model.task_state(states, contexts).transpose(0, 1)


class LoopInputs(NamedTuple):
    """Inputs of the loop; in `backward`, their gradients."""

    values: Tensor
    """Annotations, (B, S, E)"""
    keys: Tensor
    """2 (V h + b), (B, S, A)"""
    location: Tensor
    """2 U F, (r, A)"""
    query: Tensor
    """W of the attention, (A, D)"""
    score: Tensor
    """w of the attention, (A,)"""
    table: Tensor
    """Contribution of each symbol to the gates of the GRU, (V, 3D)"""
    context_weight: Tensor
    """Weight of the context in the GRU, (3D, E)"""
    recur: Tensor
    """Weight of the state in the GRU, (3D, D)"""
    bias: Tensor
    """Bias that goes with `recur`, (3D,)"""


class ForwardCache(NamedTuple):
    """Forward values that the backward loop needs."""

    attention: loops.AttentionCache
    gru: GRUCache
    states: Tensor
    """(T + 1, B, D), the initial state 0 included"""
    contexts: Tensor
    """(T, B, E)"""
    windows: Tensor
    """Previous alignment around each position, as the filters see it, (T, B, S, r)"""
    symbols: Tensor
    """Symbols that were read, (T, B)"""


class _RecogniserLoopFunction(torch.autograd.Function):
    """Autograd function of all steps of the decoder."""

    @staticmethod
    def forward(
        ctx, dtype: torch.dtype, late: bool, steps: int, choose: ChooseFromParts, mask: Tensor, *tensors: Tensor
    ):
        """Return states (T, B, D) and contexts (T, B, E) from the fields of `LoopInputs`.

        If `late`, the GRU reads the previous context, and its new state attends to this step's.
        """
        inputs, like = LoopInputs(*tensors), tensors[0]
        (batch, width), (reach, hidden) = (len(like), inputs.recur.shape[1]), inputs.location.shape
        cache = ForwardCache(
            loops.AttentionCache.empty(steps, mask, hidden, like, dtype),
            GRUCache.empty(steps, batch, width, like),
            like.new_zeros(steps + 1, batch, width),
            like.new_empty(steps, batch, like.shape[2]),
            like.new_empty(steps, *mask.shape, reach, dtype=dtype),
            mask.new_empty(steps, batch, dtype=torch.long),
        )
        with torch.autocast(like.device.type, enabled=False):
            forward_loop(cache, inputs, loops.additive_mask(mask, dtype), choose, late)
        ctx.save_for_backward(*tensors, *cache.attention, *cache.gru, *cache[2:])
        ctx.late = int(late)
        return cache.states[1:], cache.contexts

    @staticmethod
    def backward(ctx, grad_states: Tensor, grad_contexts: Tensor):
        inputs, saved = LoopInputs(*ctx.saved_tensors[:9]), ctx.saved_tensors[9:]
        cache, late = ForwardCache(loops.AttentionCache(*saved[:2]), GRUCache(saved[2]), *saved[3:]), ctx.late
        (hidden, width), dtype, scale = inputs.query.shape, cache.windows.dtype, 2 * inputs.score
        grad_contexts = grad_contexts.clone()
        grads = backward_loop(inputs, cache, grad_states, grad_contexts, late)
        grad_keys, grad_location, grad_query, grad_scores = grads
        grad_recur, grad_gates = grad_query[..., hidden : hidden + 3 * width], grad_query[:-1, :, hidden + width :]
        grad_table = torch.ops.aten.embedding_dense_backward(grad_gates, cache.symbols, len(inputs.table), -1, False)
        return (
            *[None] * 5,
            *LoopInputs(
                values=torch.bmm(cache.attention.weights.permute(1, 2, 0), grad_contexts.transpose(0, 1)),
                keys=grad_keys * scale,
                location=grad_location * scale,
                query=loops.weight_gradient(grad_query[..., :hidden], cache.states, dtype) * (2 * scale.unsqueeze(1)),
                score=cache.attention.score_gradient(grad_scores),
                table=grad_table,
                context_weight=loops.weight_gradient(
                    grad_gates[late:], cache.contexts[: len(grad_gates) - late], dtype
                ),
                recur=candidate_last(loops.weight_gradient(grad_recur, cache.states, dtype)),
                bias=candidate_last(grad_recur.sum((0, 1))),
            ),
        )


def forward_loop(cache: ForwardCache, inputs: LoopInputs, padding: Tensor, choose: ChooseFromParts, late: bool) -> None:
    """Compute all steps and fill `cache`.

    Args:
        cache: Output; its first state is 0.
        inputs: Inputs of the loop.
        padding: `additive_mask` of the encoder positions, shape (B * S,).
        choose: Selects the symbols that the decoder reads.
        late: Let the GRU read the previous context, and its new state attend to this step's.
    """
    dtype, (hidden, _) = cache.windows.dtype, inputs.query.shape
    # W d of the attention and U d of the GRU are one matrix multiplication.
    query, query_bias = torch.cat((2 * inputs.query, inputs.recur)).t().to(dtype), F.pad(inputs.bias, (hidden, 0))
    context_weight, values = inputs.context_weight.t().to(dtype), inputs.values.to(dtype)
    score = (2 * inputs.score).to(dtype)
    keys, location, reach = inputs.keys.to(dtype).flatten(0, 1), inputs.location.to(dtype), len(inputs.location) // 2
    alignment, context = torch.zeros_like(cache.attention.weights[0]), torch.zeros_like(cache.contexts[0])
    alignment[:, 0] = 1.0
    state_projection = loops.matmul(cache.states[0], query, query_bias)

    def attend(state_projection: Tensor, window: Tensor, attention: loops.AttentionCache, out: Tensor) -> None:
        window.copy_(F.pad(alignment, (reach, reach)).unfold(1, 2 * reach + 1, 1))
        torch.addmm(keys, window.flatten(0, 1), location, out=attention.activations.flatten(0, 1))
        attention.activations.add_(state_projection[:, None, :hidden])
        attention.attend(score, padding)
        loops.sum_rows(attention.weights, values, out=out)

    for t, (attention, gru) in enumerate(zip(cache.attention.steps(), cache.gru.steps(), strict=True)):
        state, after = cache.states[t], cache.states[t + 1]
        cache.symbols[t] = choose(t, state, context)
        if not late:
            attend(state_projection, cache.windows[t], attention, cache.contexts[t])
            context = cache.contexts[t]
        projected = loops.matmul(context, context_weight, inputs.table.index_select(0, cache.symbols[t]))
        gru.advance(projected, state_projection[:, hidden:], state, after)
        state_projection = loops.matmul(after, query, query_bias)
        if late:
            attend(state_projection, cache.windows[t], attention, cache.contexts[t])
            context = cache.contexts[t]
        alignment = attention.weights


def backward_loop(
    inputs: LoopInputs, cache: ForwardCache, grad_states: Tensor, grad_contexts: Tensor, late: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Differentiate all steps, last step first.

    Args:
        inputs: Inputs of the loop.
        cache: Forward values.
        grad_states: Shape (T, B, D).
        grad_contexts: Shape (T, B, E); the gradient through the GRU is added in place.
        late: 1 if the GRU reads the previous context, else 0.

    Returns:
        Gradients with respect to the keys (B, S, A) and the location (r, A), divided by 2 w; 2 W d, divided by 2 w, and
        the slots of the GRU, for every state (T + 1, B, A + 4D); the scores (T, B, S).
    """
    dtype, (hidden, width), scale = cache.windows.dtype, inputs.query.shape, 2 * inputs.score
    steps, slopes, attention = len(grad_states), cache.gru.slopes(cache.states[:-1]), cache.attention.steps()
    to_state = torch.cat((2 * scale.unsqueeze(1) * inputs.query, candidate_first(inputs.recur))).to(dtype)
    context_weight, values = inputs.context_weight.to(dtype), inputs.values.to(dtype)
    location = (inputs.location * scale).t().to(dtype)
    grad_query = grad_states.new_zeros(steps + 1, len(values), hidden + 4 * width)
    grad_units = grad_query[..., hidden:].unflatten(2, (4, width))
    grad_scores, grad_keys = torch.empty_like(cache.attention.weights, dtype=dtype), torch.zeros_like(inputs.keys)
    grad_location, grad_alignment = torch.zeros_like(inputs.location), None
    padded = [len(values), values.shape[1] + len(inputs.location) - 1]
    reach, grad_state = len(inputs.location) // 2, grad_states[-1]

    def state_backward(t: int, grad_state: Tensor) -> Tensor:
        """Return the gradient with respect to the state before step t, given that after it."""
        carried = torch.addcmul(grad_states[t - 1], grad_state, cache.gru.z[t]) if t < steps else grad_state.clone()
        loops.add_matmul_(carried, grad_query[t][:, : hidden + 3 * width], to_state)
        return carried

    def unit_backward(t: int) -> None:
        torch.mul(grad_state.unsqueeze(1), slopes[t], out=grad_units[t])
        if t >= late:
            loops.add_matmul_(grad_contexts[t - late], grad_query[t][:, hidden + width :], context_weight)

    for t in range(steps - 1, -1, -1):
        if not late:
            unit_backward(t)
        grad_weights = loops.dot_rows(grad_contexts[t].to(dtype), values).to(grad_states.dtype)
        if grad_alignment is not None:
            grad_weights += grad_alignment
        grad_hidden = attention[t].attend_backward(grad_weights, grad_scores[t], grad_query[t + late][:, :hidden])
        grad_keys += grad_hidden
        loops.add_matmul_(grad_location, cache.windows[t].flatten(0, 1).t(), grad_hidden.flatten(0, 1))
        if t:
            grad_window = (grad_hidden @ location).to(grad_states.dtype)
            unfolded = torch.ops.aten.unfold_backward(grad_window, padded, 1, len(inputs.location), 1)
            grad_alignment = unfolded[:, reach : reach + values.shape[1]]
        if t + late:
            grad_state = state_backward(t + late, grad_state)
        if late:
            unit_backward(t)
    return grad_keys, grad_location, grad_query, grad_scores
