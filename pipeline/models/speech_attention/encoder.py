"""The encoder of the attention recogniser: a pyramid of bidirectional LSTMs (Cold Fusion, section 4.2).

Dimensions: B utterances, S frames, S' encoder positions, F features of a frame, H units of a direction.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.layers.frames_read import frames_read
from pipeline.models.layers.modules import Modules
from pipeline.models.layers.reading import reordered, reversal, visible, within, zero_behind
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig


class BidirectionalLSTM(nn.Module):
    """One layer each way; what lies behind an utterance's end is not read.

    The way back reads every utterance reversed within its own length, so that neither way needs packed sequences,
    which torch runs three times slower on a CPU.
    """

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.ahead = nn.LSTM(inputs, width, batch_first=True)
        self.back = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, S, inputs), lengths (B,) -> (B, S, 2 H)"""
        places = reversal(within(lengths, x.shape[1]))
        ahead, _ = self.ahead(x)
        back, _ = self.back(reordered(x, places))
        return torch.cat((ahead, reordered(back, places)), dim=-1)


class SpeechEncoder(nn.Module):
    """Frames to annotations h_j: BLSTM layers, each with a residual connection where widths allow one (all but the
    first), the first `pooled_layers` of them followed by max-pooling of width and stride 2 in time."""

    def __init__(self, config: AttentionRecogniserConfig):
        super().__init__()
        self.config, self.output_width = config, config.annotation_width
        widths = [config.features * config.frame_stacking] + [self.output_width] * (config.encoder_layers - 1)
        self.layers = Modules[BidirectionalLSTM](BidirectionalLSTM(width, config.encoder_width) for width in widths)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """frames (B, S, F), lengths (B,) -> annotations (B, S', 2 H), zero behind the end, and mask (B, S')."""
        frames = frames_read(self.config, frames, lengths, self.training)
        x, lengths = stacked(frames, lengths, self.config.frame_stacking)
        for number, layer in enumerate(self.layers):
            update = layer(x, lengths)
            x = x + update if x.shape == update.shape else update
            if number < self.config.pooled_layers:
                x, lengths = pooled(x, lengths)
        return zero_behind(x, lengths), visible(lengths, x.shape[1])


def stacked(x: Tensor, lengths: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`count` neighbouring frames as one: (B, S, F) -> (B, ceil(S / count), count F)."""
    if count == 1:
        return x, lengths
    x = F.pad(x, (0, 0, 0, -x.shape[1] % count))
    return x.reshape(len(x), -1, count * x.shape[-1]), -(-lengths // count)


def pooled(x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The larger of every two neighbours in time; of an odd last one, itself."""
    x = x.masked_fill(~within(lengths, x.shape[1]).unsqueeze(-1), -torch.inf)
    x = F.max_pool1d(x.transpose(1, 2), kernel_size=2, ceil_mode=True).transpose(1, 2)
    lengths = -(-lengths // 2)
    return zero_behind(x, lengths), lengths
