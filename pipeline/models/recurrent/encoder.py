"""The encoder of *Multi-channel Encoder*: two recurrent layers, with an external memory each or without, and channels.

Dimensions: B sentences, S source positions, E embedding, H units of a layer, D annotation.
"""

import torch
from torch import Tensor, nn

from pipeline.models.layers.modules import Modules
from pipeline.models.layers.reading import reordered, reversal
from pipeline.models.recurrent.channel_blending import Blend
from pipeline.models.recurrent.external_memory import MemoryGRU
from pipeline.models.recurrent.gru import GRU
from pipeline.models.recurrent.settings import RecurrentConfig


class RecurrentEncoder(nn.Module):
    """The channels of every source position, blended into annotations (sections 3.1 and 3.2).

    That the backward layer reads the forward one's states is in section 4.4.
    """

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.config = config
        widths = {"ntm": 2 * config.d_state, "rnn": 2 * config.d_state, "emb": config.d_embedding}
        stacked = config.backward_reads == "forward"
        self.forward_layer = layer(config, config.d_embedding)
        self.backward_layer = layer(config, config.d_state if stacked else config.d_embedding)
        first, *others = config.channel_names
        self.blends = Modules[Blend](
            Blend(
                widths[first] if index == 0 else config.d_annotation, widths[name], config.d_annotation, config.blending
            )
            for index, name in enumerate(others)
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings x (B, S, E), mask (B, S) -> annotations (B, S, D), states (B, S, 2H)"""
        channels = self.channels(x, mask)
        return self.blended(channels)[0], channels["rnn"]

    def blended(self, channels: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Annotations, and z (B, S, D) of each blend, by the channel that it adds to those before."""
        first, *others = self.config.channel_names
        annotations, gates = channels[first], {}
        for blend, name in zip(self.blends, others, strict=True):
            annotations, gates[name] = blend(annotations, channels[name])
        return annotations, gates

    def channels(self, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """ntm (B, S, 2H) where there is a memory, rnn (B, S, 2H) and emb (B, S, E)"""
        backwards = reversal(mask)
        ahead, memory_ahead = self.run(self.forward_layer, x, x, mask)
        read = ahead if self.config.backward_reads == "forward" else x
        back, memory_back = self.run(self.backward_layer, reordered(read, backwards), x, mask)
        found = {"rnn": torch.cat((ahead, reordered(back, backwards)), dim=2), "emb": x}
        if memory_ahead is not None and memory_back is not None:
            found["ntm"] = torch.cat((memory_ahead, memory_back), dim=2)
        return found

    def run(self, layer: nn.Module, x: Tensor, cells: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """States, and the memory that was `cells` at first; the cells stay in the order of the source."""
        return layer(x, cells, mask) if self.config.has_memory else (layer(x), None)


def layer(config: RecurrentConfig, width_in: int) -> nn.Module:
    if config.has_memory:
        return MemoryGRU(config.d_state, config.d_attention, config.memory_write)
    return GRU(width_in, config.d_state)
