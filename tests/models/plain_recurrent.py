"""The recurrent loops as the papers write them, plain and slow: read these before those with gradients by hand.

conditional_gru.py and external_memory.py give the same values and gradients (tests/models/test_reference.py).

Dimensions: B sentences, T steps, S source positions, D inputs or annotation, H units.
"""

import torch
from torch import Tensor

from pipeline.models.recurrent.additive_attention import AdditiveAttention
from pipeline.models.recurrent.conditional_gru import ConditionalGRU
from pipeline.models.recurrent.external_memory import MemoryGRU
from pipeline.models.recurrent.gru import GRU


def gru(unit: GRU, x: Tensor, h: Tensor) -> Tensor:
    """Multi-channel Encoder, eq. 7 and 8: x (B, D), state h (B, H) -> the next state."""
    (w_r, w_z, w), (u_r, u_z, u) = unit.weight_input.chunk(3), unit.weight_state.chunk(3)
    b_r, b_z, b = unit.bias.chunk(3)
    r = torch.sigmoid(x @ w_r.T + h @ u_r.T + b_r)
    z = torch.sigmoid(x @ w_z.T + h @ u_z.T + b_z)
    recurrent = r * (h @ u.T + b) if unit.reset_bias else r * (h @ u.T) + b
    return z * h + (1 - z) * torch.tanh(x @ w.T + recurrent)


def additive_attention(unit: AdditiveAttention, s: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
    """Multi-channel Encoder, eq. 4 and 5: state s (B, H) looks at rows (B, S, D) -> weights (B, S, 1) of sum 1."""
    scores = torch.tanh((s @ unit.query.T).unsqueeze(1) + rows @ unit.key.T + unit.bias) @ unit.score + unit.offset
    return scores.masked_fill(~mask, -torch.inf).softmax(1).unsqueeze(2)


def conditional_gru(
    decoder: ConditionalGRU, y: Tensor, s: Tensor, annotations: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """y (B, T, D), s (B, H) before the first step, annotations (B, S, D) -> states (B, T, H), contexts (B, T, D)."""
    states, contexts = [], []
    for t in range(y.shape[1]):
        middle = gru(decoder.first, y[:, t], s)
        weights = additive_attention(decoder.attention, middle, annotations, mask)
        c = (weights * annotations).sum(1)
        s = gru(decoder.second, c, middle)
        states.append(s)
        contexts.append(c)
    return torch.stack(states, dim=1), torch.stack(contexts, dim=1)


def memory_gru(layer: MemoryGRU, x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Multi-channel Encoder, section 3.1: x, cells (B, S, H) -> states (B, S, H), and the cells when all is read."""
    w_f, w_u = layer.write_gates.chunk(2)
    s, states = torch.zeros_like(cells[:, 0]), []
    for t in range(x.shape[1]):
        weights = additive_attention(layer.addressing, s, cells, mask)
        read_gate = torch.sigmoid(s @ layer.read_gate.T).unsqueeze(1)
        s = gru(layer.gru, x[:, t], (weights * read_gate * cells).sum(1))
        states.append(s)
        f = torch.sigmoid(s @ w_f.T)
        u = torch.sigmoid(s @ w_u.T) if layer.write == "forget_update" else f * torch.tanh(s @ w_u.T)
        write = weights * mask[:, t, None, None]  # nothing behind a sentence's end
        cells = cells * (1 - write * f.unsqueeze(1)) + write * u.unsqueeze(1)
    return torch.stack(states, dim=1), cells
