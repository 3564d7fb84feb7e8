"""The external memory of recurrent/encoder.py with a hand-derived backward pass.

Almost all FLOPs are those of U M_{t-1} in the addressing, a matrix multiplication that no order of computation saves.
The read gate is the same for all cells, so it is applied to their weighted sum.

Dimensions: B sentences, S source positions, which is the number of cells and of steps T, H units, A hidden units of the
addressing.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.models.kernels import loops
from pipeline.models.kernels.gru import GRUCache, candidate_first, candidate_last

if TYPE_CHECKING:
    from pipeline.models.recurrent.encoder import MemoryGRU

Write = Literal["forget_update", "tanh_content"]


def memory_gru(layer: "MemoryGRU", x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Run a `MemoryGRU` over a sequence, as `MemoryGRU.loop`."""
    weights = LoopWeights(
        recur=layer.gru.weight_state,
        query=layer.addressing.query,
        key=layer.addressing.key,
        score=layer.addressing.score,
        read_gate=layer.read_gate,
        write_gates=layer.write_gates,
    )
    inputs = (layer.gru.project(x.transpose(0, 1)), cells, mask, layer.addressing.bias)
    states, cells = _MemoryGRUFunction.apply(layer.write, loops.loop_dtype(cells), *inputs, *weights)
    return states.transpose(0, 1), cells


class LoopWeights(NamedTuple):
    """Weights that the backward loop needs again; in `backward`, their gradients."""

    recur: Tensor
    """U of the GRU, (3H, H)"""
    query: Tensor
    """W of the addressing, (A, H)"""
    key: Tensor
    """U of the addressing, (A, H)"""
    score: Tensor
    """v of the addressing, (A,)"""
    read_gate: Tensor
    """W_R, (H, H)"""
    write_gates: Tensor
    """W_F over W_U, (2H, H)"""


class ForwardCache(NamedTuple):
    """Forward values that the backward loop needs."""

    attention: loops.AttentionCache
    gru: GRUCache
    states: Tensor
    """(T + 1, B, H), the initial state 0 included"""
    memories: Tensor
    """Cells before each step and after the last, (T + 1, B, S, H)"""
    written: Tensor
    """Activations of the write gates (see `activate_gates`), (T, B, 2H)"""
    reads: Tensor
    """Weighted sum of the cells, (T, B, H)"""
    contexts: Tensor
    """Weighted sum times read gate, (T, B, H)"""
    read_gates: Tensor
    """(T, B, H)"""


class _MemoryGRUFunction(torch.autograd.Function):
    """Autograd function of all steps of the layer."""

    @staticmethod
    def forward(ctx, write: Write, dtype: torch.dtype, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (T, B, H) of all steps, and the cells (B, S, H) after them.

        The inputs are W x and bias of the GRU (T, B, 3H), the cells before the first step (B, S, H) and mask (B, S).
        The bias of the addressing (A,) and the fields of `LoopWeights` follow.
        """
        projected, cells, mask, bias, *tensors = inputs
        (batch, steps, width), weights = cells.shape, LoopWeights(*tensors)
        cache = ForwardCache(
            loops.AttentionCache.empty(steps, mask, len(bias), cells, dtype),
            GRUCache.empty(steps, batch, width, cells),
            cells.new_zeros(steps + 1, batch, width),
            torch.cat((cells.unsqueeze(0), cells.new_empty(steps, *cells.shape))),
            cells.new_empty(steps, batch, 2 * width),
            *(cells.new_empty(steps, batch, width) for _ in range(3)),
        )
        with torch.autocast(cells.device.type, enabled=False):
            forward_loop(cache, projected.to(cells.dtype), mask, bias, weights, write)
        ctx.save_for_backward(mask, *weights, *cache.attention, *cache.gru, *cache[2:])
        ctx.write = write
        return cache.states[1:], cache.memories[-1].clone()

    @staticmethod
    def backward(ctx, grad_states: Tensor, grad_cells: Tensor):
        mask, *saved = ctx.saved_tensors
        weights, attention = LoopWeights(*saved[:6]), loops.AttentionCache(*saved[6:8])
        cache, dtype = ForwardCache(attention, GRUCache(saved[8]), *saved[9:]), attention.activations.dtype
        (hidden, width), scale = weights.query.shape, 4 * weights.score.unsqueeze(1)
        grad_memory = grad_cells.clone()
        grads = backward_loop(weights, cache, mask, grad_states, grad_memory, ctx.write)
        grad_key, grad_slots, grad_previous, grad_scores, grad_written = grads
        grad_query = loops.weight_gradient(grad_previous, cache.states[:-1], dtype)
        grad_bias = grad_previous[..., :hidden].sum((0, 1)) * scale.squeeze(1)
        gradients = LoopWeights(
            recur=candidate_last(loops.weight_gradient(grad_slots[..., : 3 * width], cache.contexts, dtype)),
            query=grad_query[:hidden] * scale,
            key=grad_key * scale,
            score=attention.score_gradient(grad_scores),
            read_gate=grad_query[hidden:],
            write_gates=loops.weight_gradient(grad_written, cache.states[1:], dtype),
        )
        return None, None, grad_slots[..., width:], grad_memory, None, grad_bias, *gradients


def forward_loop(
    cache: ForwardCache, projected: Tensor, mask: Tensor, bias: Tensor, weights: LoopWeights, write: Write
) -> None:
    """Compute all steps and fill `cache`.

    Args:
        cache: Output; its first state and first cells are set.
        projected: W x and bias of the GRU, shape (T, B, 3H).
        mask: Shape (B, S).
        bias: b of the addressing, shape (A,).
        weights: Weights of the layer.
        write: Form of the write gates.
    """
    (hidden, width), dtype = weights.query.shape, cache.attention.activations.dtype
    active, padding = active_steps(mask, projected), loops.additive_mask(mask, dtype)
    recur, key, score = weights.recur.t().to(dtype), (2 * weights.key).t().to(dtype), (2 * weights.score).to(dtype)
    # W s of the addressing and of the read gate are one matrix multiplication, as are those of the two write gates.
    query, query_bias = torch.cat((2 * weights.query, weights.read_gate)).t().to(dtype), F.pad(2 * bias, (0, width))
    gates = weights.write_gates.t().to(dtype)
    for t, (attention, gru) in enumerate(zip(cache.attention.steps(), cache.gru.steps(), strict=True)):
        memory, context, state = cache.memories[t], cache.contexts[t], cache.states[t + 1]
        previous_projection = loops.matmul(cache.states[t], query, query_bias)
        torch.mm(memory.flatten(0, 1).to(dtype), key, out=attention.activations.flatten(0, 1))
        attention.activations.add_(previous_projection[:, None, :hidden])
        attention.attend(score, padding)
        torch.sigmoid(previous_projection[:, hidden:], out=cache.read_gates[t])
        loops.sum_rows(attention.weights, memory, out=cache.reads[t])
        torch.mul(cache.read_gates[t], cache.reads[t], out=context)
        gru.advance(projected[t], loops.matmul(context, recur), context, state)
        forget, update = activate_gates(loops.matmul(state, gates), write, out=cache.written[t])
        # A finished sentence writes nothing, and padding has no weight.
        change = torch.mul(memory, forget.unsqueeze(1)).sub_(update.unsqueeze(1))
        share = (attention.weights * active[t]).unsqueeze(2)
        torch.addcmul(memory, share, change, value=-1, out=cache.memories[t + 1])


def backward_loop(
    weights: LoopWeights, cache: ForwardCache, mask: Tensor, grad_states: Tensor, grad_memory: Tensor, write: Write
) -> tuple[Tensor, ...]:
    """Differentiate all steps, last step first.

    Args:
        weights: Weights of the layer.
        cache: Forward values.
        mask: Shape (B, S).
        grad_states: Shape (T, B, H).
        grad_memory: Gradient with respect to the cells after the last step, shape (B, S, H). It becomes the gradient
            with respect to the cells before the first step.
        write: Form of the write gates.

    Returns:
        Gradients with respect to:

        - the key (A, H), divided by 4 v;
        - the slots of the GRU (T, B, 4H);
        - 2 W s, divided by 2 v, and the input of the read gate (T, B, A + H);
        - the scores (T, B, S);
        - the input of the write gates (T, B, 2H).
    """
    (hidden, width), dtype = weights.query.shape, cache.attention.activations.dtype
    scale = 4 * weights.score.unsqueeze(1)
    slopes, active, gate = cache.gru.slopes(cache.contexts), active_steps(mask, grad_states), cache.read_gates
    read_slopes, shares = cache.reads * gate * (1 - gate), cache.attention.weights * active
    (forget, update), write_slopes = split_gates(cache.written, write), gate_slopes(cache.written, write)
    to_previous, key = torch.cat((scale * weights.query, weights.read_gate)).to(dtype), (scale * weights.key).to(dtype)
    recur, gates = candidate_first(weights.recur).to(dtype), weights.write_gates.to(dtype)
    attention = cache.attention.steps()
    grad_previous = grad_states.new_empty(*grad_states.shape[:2], hidden + width)
    grad_slots, grad_written = torch.empty_like(slopes), torch.empty_like(cache.written)
    grad_scores, grad_key = torch.empty_like(cache.attention.weights, dtype=dtype), torch.zeros_like(weights.key)
    grad_state = grad_states[-1].clone()
    for t in range(len(attention) - 1, -1, -1):
        memory, attention_weights = cache.memories[t], attention[t].weights
        grad_share, grad_gates = write_backward(grad_memory, memory, shares[t], forget[t], update[t])
        if write == "tanh_content":
            grad_gates[:, :width].addcmul_(grad_gates[:, width:], cache.written[t][:, width:], value=-1)
        torch.mul(grad_gates, write_slopes[t], out=grad_written[t])
        loops.add_matmul_(grad_state, grad_written[t], gates)
        torch.mul(grad_state.unsqueeze(1), slopes[t], out=grad_slots[t])
        grad_context = grad_state * cache.gru.z[t]
        loops.add_matmul_(grad_context, grad_slots[t].flatten(1)[:, : 3 * width], recur)
        torch.mul(grad_context, read_slopes[t], out=grad_previous[t][:, hidden:])
        grad_read = grad_context * gate[t]
        grad_weights = loops.dot_rows(grad_read, memory).addcmul_(grad_share, active[t])
        grad_memory.addcmul_(attention_weights.unsqueeze(2), grad_read.unsqueeze(1))
        grad_hidden = attention[t].attend_backward(grad_weights, grad_scores[t], grad_previous[t][:, :hidden])
        grad_hidden = grad_hidden.flatten(0, 1)
        loops.add_matmul_(grad_memory.flatten(0, 1), grad_hidden, key)
        loops.add_matmul_(grad_key, grad_hidden.t(), memory.flatten(0, 1).to(dtype))
        if t:
            grad_state = loops.matmul(grad_previous[t], to_previous, grad_states[t - 1])
    return grad_key, grad_slots.flatten(2), grad_previous, grad_scores, grad_written


def active_steps(mask: Tensor, like: Tensor) -> Tensor:
    """Return factors (T, B, 1) of what a step writes: 1 where `mask` (B, S) is True, else 0, in the dtype of `like`."""
    return mask.t().to(like.dtype).unsqueeze(2)


def write_backward(
    grad_memory: Tensor, memory: Tensor, share: Tensor, forget: Tensor, update: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of one step's writing: of the share (B, S), and of -F_t and U_t (B, 2H).

    Args:
        grad_memory: Gradient with respect to the cells after the step, shape (B, S, H). It becomes the gradient with
            respect to the cells before it.
        memory: Cells before the step, shape (B, S, H).
        share: Weight of each cell, shape (B, S).
        forget: F_t, shape (B, H).
        update: U_t, shape (B, H).
    """
    changed, grad_gates = grad_memory * memory, forget.new_empty(len(forget), 2 * forget.shape[1])
    loops.sum_rows(share, changed, out=grad_gates[:, : forget.shape[1]])
    loops.sum_rows(share, grad_memory, out=grad_gates[:, forget.shape[1] :])
    grad_share = loops.dot_rows(update, grad_memory).sub_(loops.dot_rows(forget, changed))
    grad_memory.addcmul_(share.unsqueeze(2), grad_memory * forget.unsqueeze(1), value=-1)
    return grad_share, grad_gates


def activate_gates(inputs: Tensor, write: Write, out: Tensor) -> tuple[Tensor, Tensor]:
    """Return the write gates F_t and U_t of a step, (B, H) each, and keep their activations.

    Args:
        inputs: W_F s and W_U s, shape (B, 2H).
        write: Form of the write gates.
        out: Output, the activations of both, shape (B, 2H).
    """
    if write == "forget_update":
        torch.sigmoid(inputs, out=out)
    else:
        (first, second), (gate, content) = inputs.chunk(2, dim=1), out.chunk(2, dim=1)
        torch.sigmoid(first, out=gate)
        torch.tanh(second, out=content)
    return split_gates(out, write)


def split_gates(written: Tensor, write: Write) -> tuple[Tensor, Tensor]:
    """Return the write gates F and U (…, H) from the activations `written` (…, 2H) of a form `write`."""
    first, second = written.chunk(2, dim=-1)
    return (first, second) if write == "forget_update" else (first, first * second)


def gate_slopes(written: Tensor, write: Write) -> Tensor:
    """Compute the derivatives of the write gates' activations, with the sign of their effect.

    Args:
        written: Activations from `activate_gates`, shape (…, 2H).
        write: Form of the write gates.

    Returns:
        Derivatives of -F, and of U or its tanh, with respect to their inputs, shape (…, 2H).
    """
    first, second = written.chunk(2, dim=-1)
    of_second = second * (1 - second) if write == "forget_update" else first * (1 - second.square())
    return torch.cat((first * (first - 1), of_second), dim=-1)
