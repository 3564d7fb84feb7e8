"""The encoder of *Multi-channel Encoder*: two recurrent layers, optionally with an external memory each, and channels.

Dimensions: B sentences, S source positions, E embedding, H units of a layer, D annotation.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.layers.padding import gather_positions, reversal_indices
from pipeline.models.recurrent.cells import GRU
from pipeline.models.recurrent.external_memory import MemoryGRU
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.seq2seq import Modules


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
        """Blend two channels.

        Args:
            first: Shape (B, S, first).
            second: Shape (B, S, second).

        Returns:
            The blended channel and z, both (B, S, D).
        """
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
        """Encode embeddings x (B, S, E) with mask (B, S).

        Returns:
            Annotations (B, S, D) and states of both directions (B, S, 2H).
        """
        channels = self.channels(x, mask)
        return self.blended(channels)[0], channels["rnn"]

    def blended(self, channels: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Blend the channels of the encoder's name, one after the other.

        Returns:
            Annotations (B, S, D), and the gate z (B, S, D) of each blend, by the channel that it adds.
        """
        first, *others = self.config.channel_names
        annotations, gates = channels[first], {}
        for blend, name in zip(self.blends, others, strict=True):
            annotations, gates[name] = blend(annotations, channels[name])
        return annotations, gates

    def channels(self, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Compute rnn (B, S, 2H), emb (B, S, E) and, if the encoder has a memory, ntm (B, S, 2H)."""
        indices = reversal_indices(mask)
        ahead, memory_ahead = self.run(self.forward_layer, x, x, mask)
        inputs = ahead if self.config.backward_reads == "forward" else x
        back, memory_back = self.run(self.backward_layer, gather_positions(inputs, indices), x, mask)
        found = {"rnn": torch.cat((ahead, gather_positions(back, indices)), dim=2), "emb": x}
        if memory_ahead is not None and memory_back is not None:
            found["ntm"] = torch.cat((memory_ahead, memory_back), dim=2)
        return found

    def run(self, layer: nn.Module, x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Run one layer over x (B, S, …).

        Returns:
            States in the order of x, and the memory that started as `cells`, in the order of the source, or None.
        """
        return layer(x, cells, mask) if self.config.has_memory else (layer(x), None)


def recurrent_layer(config: RecurrentConfig, width_in: int) -> nn.Module:
    """Build a layer of one direction."""
    if config.has_memory:
        return MemoryGRU(config.d_state, config.d_attention, config.memory_write)
    return GRU(width_in, config.d_state)
