"""The encoder's external memory, a neural Turing machine's (Multi-channel Encoder, section 3.1; Meng et al. 2016).

One cell a source position, at first the position's embedding. A step reads and writes with the same weights:

    w_t = attention of s_{t-1} over the cells M_{t-1}          r_t = sigmoid(W_R s_{t-1})
    c_t = sum_i w_t(i) (r_t * M_{t-1}(i))                      s_t = GRU(x_t, c_t), c_t in the place of the state
    F_t = sigmoid(W_F s_t), U_t = sigmoid(W_U s_t)             M_t(i) = M_{t-1}(i) * (1 - w_t(i) F_t) + w_t(i) U_t

With memory_write tanh_content, u_t = sigmoid(W_F s_t) is both gates and U_t = u_t * tanh(W_U s_t). The read gate is the
same for all cells, so it is applied to their sum. Almost all operations are those of U_m M_{t-1}, a product that no
other order of computing spares; the gradient of the loop is written by hand (see gru_record.py). The same loop in plain
words is `memory_gru` of reference.py.

Dimensions: B sentences, S source positions, cells and steps alike, H units, A hidden units of the addressing.
"""

from typing import Literal, NamedTuple

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

Write = Literal["forget_update", "tanh_content"]


class MemoryGRU(nn.Module):
    """A recurrent layer that reads and writes a memory of its own."""

    def __init__(self, width: int, d_attention: int, write: Write):
        super().__init__()
        self.write = write
        self.gru = GRU(width, width)
        self.addressing = AdditiveAttention(width, width, d_attention)
        self.read_gate = nn.Parameter(torch.empty(width, width))
        self.write_gates = nn.Parameter(torch.empty(2 * width, width))

    def forward(self, x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, S, H) in the order of reading, padding last; cells (B, S, H) before the first step; mask (B, S)
        -> states (B, S, H) in the order of x, and the cells after each sentence's last step"""
        given = Given(
            projected=self.gru.project(x.transpose(0, 1)),
            cells=cells,
            mask=mask,
            recur=self.gru.weight_state,
            query=self.addressing.query,
            key=self.addressing.key,
            bias=self.addressing.bias,
            score=self.addressing.score,
            read_gate=self.read_gate,
            write_gates=self.write_gates,
        )
        states, cells = Unrolled.apply(self.write, matrix_type(cells), *given)
        return states.transpose(0, 1), cells


class Given(NamedTuple):
    """What the loop is given, and in the same places the gradients by it."""

    projected: Tensor
    """W x and bias of the GRU, (T, B, 3H)"""
    cells: Tensor
    """(B, S, H)"""
    mask: Tensor | None
    """(B, S), which has no gradient"""
    recur: Tensor
    """U of the GRU"""
    query: Tensor
    """Of the addressing, as in `AdditiveAttention`"""
    key: Tensor
    bias: Tensor
    score: Tensor
    read_gate: Tensor
    write_gates: Tensor


class Unrolled(Function):
    """States (T, B, H) of all steps and the cells (B, S, H) after them; large products in the type `kind`."""

    @staticmethod
    def forward(ctx, write: Write, kind: torch.dtype, *given: Tensor) -> tuple[Tensor, Tensor]:
        projected, cells, mask, recur, query, key, bias, score, read_gate, write_gates = given
        batch, steps, width = cells.shape
        hidden = len(score)
        record = GRURecord.empty(steps, batch, width, cells)
        states = cells.new_zeros(steps + 1, batch, width)
        memories = torch.cat((cells.unsqueeze(0), cells.new_empty(steps, *cells.shape)))
        activations = cells.new_empty(steps, batch, steps, hidden, dtype=kind)
        weights = cells.new_empty(steps, batch, steps)
        reads, read_gates, contexts = (cells.new_empty(steps, batch, width) for _ in range(3))
        written = cells.new_empty(steps, batch, 2 * width)
        with torch.autocast(cells.device.type, enabled=False):
            narrow_recur, narrow_key, narrow_score = recur.t().to(kind), (2 * key).t().to(kind), (2 * score).to(kind)
            # W s of the addressing and of the read gate are one product, as are those of the two write gates.
            ask, ask_bias = torch.cat((2 * query, read_gate)).t().to(kind), F.pad(2 * bias, (0, width))
            narrow_gates = write_gates.t().to(kind)
            hide, going_on = additive_mask(mask, kind), mask.t().to(cells.dtype).unsqueeze(2)
            projected = projected.to(cells.dtype)
            for t, to_state in enumerate(record.steps()):
                memory = memories[t]
                asked = product(states[t], ask).add_(ask_bias)
                torch.mm(memory.flatten(0, 1).to(kind), narrow_key, out=activations[t].flatten(0, 1))
                activations[t].add_(asked[:, None, :hidden]).sigmoid_()
                scores = torch.addmv(hide, activations[t].flatten(0, 1), narrow_score).view(mask.shape)
                torch.softmax(scores.to(cells.dtype), 1, out=weights[t])
                torch.sigmoid(asked[:, hidden:], out=read_gates[t])
                reads[t] = weighted_sum(weights[t], memory)
                torch.mul(read_gates[t], reads[t], out=contexts[t])
                to_state.advance(projected[t], product(contexts[t], narrow_recur), contexts[t], states[t + 1])
                written[t] = product(states[t + 1], narrow_gates)
                forget, update = activate(written[t], write)
                # What a finished sentence writes is nothing, and padding has no weight.
                change = torch.mul(memory, forget.unsqueeze(1)).sub_(update.unsqueeze(1))
                share = (weights[t] * going_on[t]).unsqueeze(2)
                torch.addcmul(memory, share, change, value=-1, out=memories[t + 1])
        ctx.save_for_backward(
            *(mask, recur, query, key, score, read_gate, write_gates),
            *(states, memories, activations, weights, reads, read_gates, contexts, written, *record),
        )
        ctx.write, ctx.kind = write, kind
        return states[1:], memories[-1].clone()

    @staticmethod
    def backward(ctx, by_states: Tensor, by_cells: Tensor):
        mask, recur, query, key, score, read_gate, write_gates, *rest = ctx.saved_tensors
        states, memories, activations, weights, reads, read_gates, contexts, written, *record = rest
        record, kind = GRURecord(*record), ctx.kind
        steps, batch, width = contexts.shape
        hidden = len(score)
        slopes, read_slopes = record.slopes(contexts), reads * read_gates * (1 - read_gates)
        # 2v is put into the weights, so that the gradient by what is under sigmoid needs no product with it.
        scale = 4 * score.unsqueeze(1)
        ask, scored_key = torch.cat((scale * query, read_gate)).to(kind), (scale * key).to(kind)
        narrow_recur, narrow_gates = candidate_first(recur).to(kind), write_gates.to(kind)
        going_on = mask.t().to(states.dtype).unsqueeze(2)
        by_asked = states.new_empty(steps, batch, hidden + width)
        by_slots = torch.empty_like(slopes)
        by_written = torch.empty_like(written)
        by_scores = torch.empty_like(weights, dtype=kind)
        by_key = torch.zeros_like(key)
        by_memory = by_cells.clone()
        by_state = by_states[-1].clone()
        for t in range(steps - 1, -1, -1):
            memory, share = memories[t], weights[t] * going_on[t]
            forget, update = activate(written[t], ctx.write)
            changed = by_memory * memory
            by_forget, by_update = weighted_sum(share, changed).neg_(), weighted_sum(share, by_memory)
            by_share = dots(update, by_memory).sub_(dots(forget, changed))
            by_memory.addcmul_(share.unsqueeze(2), by_memory * forget.unsqueeze(1), value=-1)
            by_written[t] = activate_backward(by_forget, by_update, written[t], ctx.write)
            accumulate(by_state, by_written[t], narrow_gates)
            torch.mul(by_state.unsqueeze(1), slopes[t], out=by_slots[t])
            by_context = by_state * record.z[t]
            accumulate(by_context, by_slots[t].flatten(1)[:, : 3 * width], narrow_recur)
            torch.mul(by_context, read_slopes[t], out=by_asked[t][:, hidden:])
            by_read = by_context * read_gates[t]
            by_weights = dots(by_read, memory).addcmul_(by_share, going_on[t])
            by_memory.addcmul_(weights[t].unsqueeze(2), by_read.unsqueeze(1))
            by_scores[t] = softmax_backward(by_weights, weights[t])
            by_hidden = torch.ops.aten.sigmoid_backward(by_scores[t].unsqueeze(2), activations[t])
            torch.sum(by_hidden, 1, dtype=states.dtype, out=by_asked[t][:, :hidden])
            by_hidden = by_hidden.flatten(0, 1)
            accumulate(by_memory.flatten(0, 1), by_hidden, scored_key)
            accumulate(by_key, by_hidden.t(), memory.flatten(0, 1).to(kind))
            if t:
                by_state = by_states[t - 1].clone()
                accumulate(by_state, by_asked[t], ask)
        slots = by_slots.flatten(2)
        by_query = weight_gradient(by_asked, states[:-1], kind)
        gradients = Given(
            projected=slots[..., width:],
            cells=by_memory,
            mask=None,
            recur=candidate_last(weight_gradient(slots[..., : 3 * width], contexts, kind)),
            query=by_query[:hidden] * scale,
            key=by_key * scale,
            bias=by_asked[..., :hidden].sum((0, 1)) * scale.squeeze(1),
            score=2 * torch.mv(activations.flatten(0, 2).t(), by_scores.flatten()).to(score.dtype),
            read_gate=by_query[hidden:],
            write_gates=weight_gradient(by_written, states[1:], kind),
        )
        return None, None, *gradients


def activate(written: Tensor, write: Write) -> tuple[Tensor, Tensor]:
    """What is forgotten and what is written, F_t and U_t (B, H), from W_F s and W_U s (B, 2H)."""
    first, second = written.chunk(2, dim=1)
    gate = first.sigmoid()
    return (gate, second.sigmoid()) if write == "forget_update" else (gate, gate * second.tanh())


def activate_backward(by_forget: Tensor, by_update: Tensor, written: Tensor, write: Write) -> Tensor:
    """The gradient by `written` (B, 2H)."""
    first, second = written.chunk(2, dim=1)
    gate = first.sigmoid()
    if write == "forget_update":
        update = second.sigmoid()
        by_second = by_update * update * (1 - update)
    else:
        content = second.tanh()
        by_forget = torch.addcmul(by_forget, by_update, content)
        by_second = by_update * gate * (1 - content.square())
    return torch.cat((by_forget * gate * (1 - gate), by_second), dim=1)
