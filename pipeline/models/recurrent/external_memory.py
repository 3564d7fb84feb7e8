"""The encoder's external memory, a neural Turing machine's (Multi-channel Encoder, section 3.1; Meng et al. 2016).

One cell a source position, at first the position's embedding. A step reads and writes with the same weights:

    w_t = attention of s_{t-1} over the cells M_{t-1}          r_t = sigmoid(W_R s_{t-1})
    c_t = sum_i w_t(i) (r_t * M_{t-1}(i))                      s_t = GRU(x_t, c_t), c_t in the place of the state
    F_t = sigmoid(W_F s_t), U_t = sigmoid(W_U s_t)             M_t(i) = M_{t-1}(i) * (1 - w_t(i) F_t) + w_t(i) U_t

With memory_write tanh_content, u_t = sigmoid(W_F s_t) is both gates and U_t = u_t * tanh(W_U s_t). The read gate is the
same for all cells, so it is applied to their sum. Almost all operations are those of U_m M_{t-1}, a product that no
other order of computing spares; the gradient of the loop is written by hand (see gru_record.py). The same loop in plain
words is `memory_gru` of tests/models/plain_recurrent.py.

Dimensions: B sentences, S source positions, cells and steps alike, H units, A hidden units of the addressing.
"""

from typing import Literal, NamedTuple

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
        kept = Kept(
            recur=self.gru.weight_state,
            query=self.addressing.query,
            key=self.addressing.key,
            score=self.addressing.score,
            read_gate=self.read_gate,
            write_gates=self.write_gates,
        )
        given = (self.gru.project(x.transpose(0, 1)), cells, mask, self.addressing.bias)
        states, cells = Unrolled.apply(self.write, loop_type(cells), *given, *kept)
        return states.transpose(0, 1), cells


class Kept(NamedTuple):
    """Weights that the loop is given and needs on the way back too, and in the same places the gradients by them."""

    recur: Tensor
    """U of the GRU"""
    query: Tensor
    """Of the addressing, as in `AdditiveAttention`"""
    key: Tensor
    score: Tensor
    read_gate: Tensor
    write_gates: Tensor


class Record(NamedTuple):
    """What is computed on the way and needed on the way back."""

    looks: AttentionRecord
    units: GRURecord
    states: Tensor
    """(T + 1, B, H), zeros the first"""
    memories: Tensor
    """(T + 1, B, S, H), the cells before each step and after the last"""
    written: Tensor
    """What the write gates are made of (`activate`), (T, B, 2H)"""
    reads: Tensor
    """What is read before and after the read gate, and the gate, (T, B, H)"""
    contexts: Tensor
    read_gates: Tensor


class Unrolled(Function):
    """States (T, B, H) of all steps and the cells (B, S, H) after them; large products in the type `kind`."""

    @staticmethod
    def forward(ctx, write: Write, kind: torch.dtype, *given: Tensor) -> tuple[Tensor, Tensor]:
        projected, cells, mask, bias, *weights = given
        (batch, steps, width), kept = cells.shape, Kept(*weights)
        record = Record(
            AttentionRecord.empty(steps, mask, len(bias), cells, kind),
            GRURecord.empty(steps, batch, width, cells),
            cells.new_zeros(steps + 1, batch, width),
            torch.cat((cells.unsqueeze(0), cells.new_empty(steps, *cells.shape))),
            cells.new_empty(steps, batch, 2 * width),
            *(cells.new_empty(steps, batch, width) for _ in range(3)),
        )
        with torch.autocast(cells.device.type, enabled=False):
            go_on(record, projected.to(cells.dtype), mask, bias, kept, write)
        ctx.save_for_backward(mask, *kept, *record.looks, *record.units, *record[2:])
        ctx.write = write
        return record.states[1:], record.memories[-1].clone()

    @staticmethod
    def backward(ctx, by_states: Tensor, by_cells: Tensor):
        mask, *saved = ctx.saved_tensors
        kept, looks = Kept(*saved[:6]), AttentionRecord(*saved[6:8])
        record, kind = Record(looks, GRURecord(saved[8]), *saved[9:]), looks.activations.dtype
        (hidden, width), scale = kept.query.shape, 4 * kept.score.unsqueeze(1)
        by_memory = by_cells.clone()
        by_key, by_slots, by_asked, by_scores, by_written = go_back(kept, record, mask, by_states, by_memory, ctx.write)
        by_query = weight_gradient(by_asked, record.states[:-1], kind)
        by_bias = by_asked[..., :hidden].sum((0, 1)) * scale.squeeze(1)
        gradients = Kept(
            recur=candidate_last(weight_gradient(by_slots[..., : 3 * width], record.contexts, kind)),
            query=by_query[:hidden] * scale,
            key=by_key * scale,
            score=looks.score_gradient(by_scores),
            read_gate=by_query[hidden:],
            write_gates=weight_gradient(by_written, record.states[1:], kind),
        )
        return None, None, by_slots[..., width:], by_memory, None, by_bias, *gradients


def go_on(record: Record, projected: Tensor, mask: Tensor, bias: Tensor, kept: Kept, write: Write) -> None:
    """Write all steps into `record`."""
    (hidden, width), kind = kept.query.shape, record.looks.activations.dtype
    going_on, padding = while_going_on(mask, projected), additive_mask(mask, kind)
    recur, key, score = kept.recur.t().to(kind), (2 * kept.key).t().to(kind), (2 * kept.score).to(kind)
    # W s of the addressing and of the read gate are one product, as are those of the two write gates.
    ask, ask_bias = torch.cat((2 * kept.query, kept.read_gate)).t().to(kind), F.pad(2 * bias, (0, width))
    gates = kept.write_gates.t().to(kind)
    for t, (look, to_state) in enumerate(zip(record.looks.steps(), record.units.steps(), strict=True)):
        memory, context, state = record.memories[t], record.contexts[t], record.states[t + 1]
        asked = product(record.states[t], ask, ask_bias)
        torch.mm(memory.flatten(0, 1).to(kind), key, out=look.activations.flatten(0, 1))
        look.activations.add_(asked[:, None, :hidden])
        look.look(score, padding)
        torch.sigmoid(asked[:, hidden:], out=record.read_gates[t])
        weighted_sum(look.weights, memory, out=record.reads[t])
        torch.mul(record.read_gates[t], record.reads[t], out=context)
        to_state.advance(projected[t], product(context, recur), context, state)
        forget, update = activate(product(state, gates), write, out=record.written[t])
        # What a finished sentence writes is nothing, and padding has no weight.
        change = torch.mul(memory, forget.unsqueeze(1)).sub_(update.unsqueeze(1))
        share = (look.weights * going_on[t]).unsqueeze(2)
        torch.addcmul(memory, share, change, value=-1, out=record.memories[t + 1])


def go_back(
    kept: Kept, record: Record, mask: Tensor, by_states: Tensor, by_memory: Tensor, write: Write
) -> tuple[Tensor, ...]:
    """The gradients by the key over 2v (A, H), and of all steps by what the GRU computes (T, B, 4H), by 2 W s over 2v
    and what is under the read gate (T, B, A + H), by the scores (T, B, S), by what is under the write gates (T, B, 2H).

    by_memory (B, S, H): by the cells after the last step; becomes that by the cells before the first.
    """
    (hidden, width), kind, scale = kept.query.shape, record.looks.activations.dtype, 4 * kept.score.unsqueeze(1)
    slopes, going_on, gate = record.units.slopes(record.contexts), while_going_on(mask, by_states), record.read_gates
    read_slopes, shares = record.reads * gate * (1 - gate), record.looks.weights * going_on
    (forget, update), write_slopes = gates_of(record.written, write), gate_slopes(record.written, write)
    ask, key = torch.cat((scale * kept.query, kept.read_gate)).to(kind), (scale * kept.key).to(kind)
    recur, gates, looks = candidate_first(kept.recur).to(kind), kept.write_gates.to(kind), record.looks.steps()
    by_asked = by_states.new_empty(*by_states.shape[:2], hidden + width)
    by_slots, by_written = torch.empty_like(slopes), torch.empty_like(record.written)
    by_scores, by_key = torch.empty_like(record.looks.weights, dtype=kind), torch.zeros_like(kept.key)
    by_state = by_states[-1].clone()
    for t in range(len(looks) - 1, -1, -1):
        memory, weights = record.memories[t], looks[t].weights
        by_share, by_gates = write_back(by_memory, memory, shares[t], forget[t], update[t])
        if write == "tanh_content":
            by_gates[:, :width].addcmul_(by_gates[:, width:], record.written[t][:, width:], value=-1)
        torch.mul(by_gates, write_slopes[t], out=by_written[t])
        accumulate(by_state, by_written[t], gates)
        torch.mul(by_state.unsqueeze(1), slopes[t], out=by_slots[t])
        by_context = by_state * record.units.z[t]
        accumulate(by_context, by_slots[t].flatten(1)[:, : 3 * width], recur)
        torch.mul(by_context, read_slopes[t], out=by_asked[t][:, hidden:])
        by_read = by_context * gate[t]
        by_weights = dots(by_read, memory).addcmul_(by_share, going_on[t])
        by_memory.addcmul_(weights.unsqueeze(2), by_read.unsqueeze(1))
        by_hidden = looks[t].look_back(by_weights, by_scores[t], by_asked[t][:, :hidden]).flatten(0, 1)
        accumulate(by_memory.flatten(0, 1), by_hidden, key)
        accumulate(by_key, by_hidden.t(), memory.flatten(0, 1).to(kind))
        if t:
            by_state = product(by_asked[t], ask, by_states[t - 1])
    return by_key, by_slots.flatten(2), by_asked, by_scores, by_written


def while_going_on(mask: Tensor, like: Tensor) -> Tensor:
    """(B, S) -> (T, B, 1): 1 as long as a sentence goes on, then 0."""
    return mask.t().to(like.dtype).unsqueeze(2)


def write_back(
    by_memory: Tensor, memory: Tensor, share: Tensor, forget: Tensor, update: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients by the share of each cell (B, S), and by -F_t and U_t (B, 2H), of a step before which the cells
    were `memory` (B, S, H); by_memory becomes that by these."""
    changed, by_gates = by_memory * memory, forget.new_empty(len(forget), 2 * forget.shape[1])
    weighted_sum(share, changed, out=by_gates[:, : forget.shape[1]])
    weighted_sum(share, by_memory, out=by_gates[:, forget.shape[1] :])
    by_share = dots(update, by_memory).sub_(dots(forget, changed))
    by_memory.addcmul_(share.unsqueeze(2), by_memory * forget.unsqueeze(1), value=-1)
    return by_share, by_gates


def activate(under: Tensor, write: Write, out: Tensor) -> tuple[Tensor, Tensor]:
    """F_t and U_t (B, H) from W_F s and W_U s (B, 2H); written to `out` is what each gate is made of."""
    if write == "forget_update":
        torch.sigmoid(under, out=out)
    else:
        (first, second), (gate, content) = under.chunk(2, dim=1), out.chunk(2, dim=1)
        torch.sigmoid(first, out=gate)
        torch.tanh(second, out=content)
    return gates_of(out, write)


def gates_of(written: Tensor, write: Write) -> tuple[Tensor, Tensor]:
    """F and U (…, H) of what was written by `activate`."""
    first, second = written.chunk(2, dim=-1)
    return (first, second) if write == "forget_update" else (first, first * second)


def gate_slopes(written: Tensor, write: Write) -> Tensor:
    """(…, 2H): the gradients by -F, and by U or its tanh, times these are those by what is under them."""
    first, second = written.chunk(2, dim=-1)
    of_second = second * (1 - second) if write == "forget_update" else first * (1 - second.square())
    return torch.cat((first * (first - 1), of_second), dim=-1)
