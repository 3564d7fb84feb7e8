"""The encoder's external memory, a neural Turing machine (Multi-channel Encoder, section 3.1; Meng et al. 2016).

There is one cell per source position, initially the position's embedding. A step reads and writes with the same
weights:

    w_t = attention of s_{t-1} over the cells M_{t-1}          r_t = sigmoid(W_R s_{t-1})
    c_t = sum_i w_t(i) (r_t * M_{t-1}(i))                      s_t = GRU(x_t, c_t), with c_t in place of the state
    F_t = sigmoid(W_F s_t), U_t = sigmoid(W_U s_t)             M_t(i) = M_{t-1}(i) * (1 - w_t(i) F_t) + w_t(i) U_t

With `write` tanh_content, u_t = sigmoid(W_F s_t) is both gates and U_t = u_t * tanh(W_U s_t).

Dimensions: B sentences, S source positions (as many cells as steps), H units, A hidden units of the addressing.
"""

import torch
from torch import Tensor, nn

from pipeline.models import kernels
from pipeline.models.kernels.memory_gru import Write, memory_gru
from pipeline.models.recurrent.cells import GRU, AdditiveAttention


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
        """Run the layer over a sequence, by the kernel if kernels are enabled.

        Args:
            x: Inputs in reading order, padding last, shape (B, S, H).
            cells: Cells before the first step, shape (B, S, H).
            mask: Shape (B, S), True at source symbols.

        Returns:
            States (B, S, H) in the order of `x`, and the cells (B, S, H) after the last step of each sentence.
        """
        return memory_gru(self, x, cells, mask) if kernels.enabled() else self.loop(x, cells, mask)

    def loop(self, x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Run the layer step by step, as `forward`."""
        state, states = torch.zeros_like(cells[:, 0]), []
        for t, projected in enumerate(self.gru.project(x).unbind(1)):
            weights = self.addressing.weights(state.unsqueeze(1), self.addressing.keys(cells), mask).transpose(1, 2)
            read_gate = torch.sigmoid(state @ self.read_gate.T).unsqueeze(1)
            context = (weights * read_gate * cells).sum(1)
            state = self.gru.step(projected, context)
            states.append(state)
            forget, update = (gate.unsqueeze(1) for gate in self.gates(state))
            share = weights * mask[:, t, None, None]  # a finished sentence writes nothing
            cells = cells * (1 - share * forget) + share * update
        return torch.stack(states, dim=1), cells

    def gates(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return F_t and U_t, shape (B, H) each, of the state s_t (B, H)."""
        forget_weight, update_weight = self.write_gates.chunk(2)
        forget = torch.sigmoid(state @ forget_weight.T)
        if self.write == "forget_update":
            return forget, torch.sigmoid(state @ update_weight.T)
        return forget, forget * torch.tanh(state @ update_weight.T)
