"""The encoder of *Multi-channel Encoder*: two recurrent layers, an external memory for each, and blended channels.

The plain encoder has no memory.

Dimensions: B sentences, S source positions, E embedding, H units of a layer, D annotation, A hidden units of the
memory's addressing.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels.memory_gru import Write, memory_gru
from pipeline.models.layers.positions import gather_positions, reversal_indices
from pipeline.models.recurrent.cells import GRU, AdditiveAttention
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.seq2seq import Modules


class MemoryGRU(nn.Module):
    """A recurrent layer with an external memory, a neural Turing machine (section 3.1; Meng et al. 2016).

    There is one cell per source position, initially the position's embedding. A step reads and writes with the same
    weights:

        w_t = attention of s_{t-1} over the cells M_{t-1}          r_t = sigmoid(W_R s_{t-1})
        c_t = sum_i w_t(i) (r_t * M_{t-1}(i))                      s_t = GRU(x_t, c_t), with c_t in place of the state
        F_t = sigmoid(W_F s_t), U_t = sigmoid(W_U s_t)             M_t(i) = M_{t-1}(i) * (1 - w_t(i) F_t) + w_t(i) U_t

    With `write` tanh_content, u_t = sigmoid(W_F s_t) is both gates: F_t = u_t and U_t = u_t * tanh(W_U s_t).

    Dimensions: S cells, which are as many as steps; H units of the state and of a cell.

    Args:
        width: H.
        d_attention: A.
        write: Form of the write gates.
    """

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
        """Return the write gates F_t and U_t (B, H) from `state` s_t (B, H)."""
        forget_weight, update_weight = self.write_gates.chunk(2)
        forget = torch.sigmoid(state @ forget_weight.T)
        if self.write == "forget_update":
            return forget, torch.sigmoid(state @ update_weight.T)
        return forget, forget * torch.tanh(state @ update_weight.T)


class Blend(nn.Module):
    """Gate that blends two channels of a source position (Multi-channel Encoder, section 3.2).

        z = sigmoid(W a + U b + b_z)
        gate:  z * (P a) + (1 - z) * (Q b)
        gru:   (1 - z) * a + z * tanh(P a + Q b)

    The paper's formulas are lost. Its parameter counts require two matrices per channel and one bias. The first form
    treats both channels alike; the second is closer to the gated recurrent unit that the paper names as its motive.
    `of_first` is W over P, `of_second` U over Q.

    Args:
        first: Width of the first channel; D in the form gru.
        second: Width of the second channel.
        width: D.
        form: One of the two forms.
    """

    def __init__(self, first: int, second: int, width: int, form: Literal["gate", "gru"]):
        super().__init__()
        self.form = form
        self.of_first = nn.Parameter(torch.empty(2 * width, first))
        self.of_second = nn.Parameter(torch.empty(2 * width, second))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Return the blended channel and z, both (B, S, D), of `first` and `second`, each (B, S, its width)."""
        first_gate, first_projected = F.linear(first, self.of_first).chunk(2, dim=-1)
        second_gate, second_projected = F.linear(second, self.of_second).chunk(2, dim=-1)
        z = torch.sigmoid(first_gate + second_gate + self.bias)
        if self.form == "gate":
            return torch.lerp(second_projected.to(z.dtype), first_projected.to(z.dtype), z), z
        return torch.lerp(first.to(z.dtype), torch.tanh(first_projected + second_projected).to(z.dtype), z), z


class RecurrentEncoder(nn.Module):
    """The channels of every source position, blended into annotations (sections 3.1 and 3.2).

    The backward layer reads the states of the forward layer (section 4.4) or the embeddings (`backward_reads`).
    """

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.config = config
        widths = {"ntm": 2 * config.d_state, "rnn": 2 * config.d_state, "emb": config.d_embedding}
        stacked = config.backward_reads == "forward"
        self.forward_layer = recurrent_layer(config, config.d_embedding)
        self.backward_layer = recurrent_layer(config, config.d_state if stacked else config.d_embedding)
        first, *others = config.channel_names
        self.blends = Modules[Blend](
            Blend(
                widths[first] if index == 0 else config.d_annotation, widths[name], config.d_annotation, config.blending
            )
            for index, name in enumerate(others)
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return annotations (B, S, D) and states (B, S, 2H) of embeddings `x` (B, S, E) under `mask` (B, S)."""
        channels = self.channels(x, mask)
        return self.blended(channels)[0], channels["rnn"]

    def blended(self, channels: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Blend the channels named by the settings, one after the other.

        Args:
            channels: Result of `channels`.

        Returns:
            Annotations (B, S, D), and the gate z (B, S, D) of each blend, by the channel that it adds.
        """
        first, *others = self.config.channel_names
        annotations, gates = channels[first], {}
        for blend, name in zip(self.blends, others, strict=True):
            annotations, gates[name] = blend(annotations, channels[name])
        return annotations, gates

    def channels(self, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return rnn (B, S, 2H), emb (B, S, E) and, with a memory, ntm (B, S, 2H) of embeddings; as `forward`."""
        indices = reversal_indices(mask)
        ahead, memory_ahead = self.run(self.forward_layer, x, x, mask)
        inputs = ahead if self.config.backward_reads == "forward" else x
        back, memory_back = self.run(self.backward_layer, gather_positions(inputs, indices), x, mask)
        found = {"rnn": torch.cat((ahead, gather_positions(back, indices)), dim=2), "emb": x}
        if memory_ahead is not None and memory_back is not None:
            found["ntm"] = torch.cat((memory_ahead, memory_back), dim=2)
        return found

    def run(self, layer: nn.Module, x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Run one layer over the sentences.

        Args:
            layer: A layer from `recurrent_layer`.
            x: Inputs in reading order, shape (B, S, E) or (B, S, H).
            cells: Embeddings in the order of the source, shape (B, S, E): the memory before the first step.
            mask: Shape (B, S), True at source symbols.

        Returns:
            States (B, S, H) in the order of `x`; the memory (B, S, H) in the order of the source, or None without one.
        """
        return layer(x, cells, mask) if self.config.has_memory else (layer(x), None)


def recurrent_layer(config: RecurrentConfig, width_in: int) -> nn.Module:
    """Build the layer of one direction: a `MemoryGRU` if the encoder has a memory, else a `GRU`."""
    if config.has_memory:
        return MemoryGRU(config.d_state, config.d_attention, config.memory_write)
    return GRU(width_in, config.d_state)
