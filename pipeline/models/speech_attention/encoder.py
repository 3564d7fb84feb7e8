"""The encoder of the attention recogniser: a pyramid of bidirectional LSTMs (Cold Fusion, section 4.2).

Dimensions: B utterances, S frames, S' encoder positions, F features of a frame, I inputs, H units of a direction.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.layers.padding import (
    gather_positions,
    length_mask,
    reversal_indices,
    visible_mask,
    zero_padding,
)
from pipeline.models.layers.speech_features import normalise_and_mask
from pipeline.models.seq2seq import Modules
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig


class BidirectionalLSTM(nn.Module):
    """One LSTM layer in each direction; frames behind an utterance's end are not read.

    The backward direction reads every utterance reversed within its own length. Neither direction needs packed
    sequences, which torch runs three times slower on a CPU.

    Args:
        inputs: I.
        width: H.
    """

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.ahead = nn.LSTM(inputs, width, batch_first=True)
        self.back = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Run the layer over the utterances of a batch.

        Args:
            x: Shape (B, S, I).
            lengths: Frames of each utterance, shape (B,).

        Returns:
            States (B, S, 2H), forward direction first.
        """
        indices = reversal_indices(length_mask(lengths, x.shape[1]))
        ahead, _ = self.ahead(x)
        back, _ = self.back(gather_positions(x, indices))
        return torch.cat((ahead, gather_positions(back, indices)), dim=-1)


class SpeechEncoder(nn.Module):
    """Encoder from frames to annotations h_j.

    Every BLSTM layer but the first has a residual connection. Max-pooling of width and stride 2 in time follows each of
    the first `pooled_layers`.
    """

    def __init__(self, config: AttentionRecogniserConfig):
        super().__init__()
        self.config, self.output_width = config, config.annotation_width
        widths = [config.features * config.frame_stacking] + [self.output_width] * (config.encoder_layers - 1)
        self.layers = Modules[BidirectionalLSTM](BidirectionalLSTM(width, config.encoder_width) for width in widths)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode speech.

        Args:
            frames: Log-mel features, shape (B, S, F).
            lengths: Frames of each utterance, shape (B,).

        Returns:
            Annotations (B, S', 2H), zero behind the end, and their mask (B, S'), True within the utterance.
        """
        frames = normalise_and_mask(self.config, frames, lengths, self.training)
        x, lengths = stack_frames(frames, lengths, self.config.frame_stacking)
        for number, layer in enumerate(self.layers):
            output = layer(x, lengths)
            x = x + output if x.shape == output.shape else output
            if number < self.config.pooled_layers:
                x, lengths = max_pool(x, lengths)
        return zero_padding(x, lengths), visible_mask(lengths, x.shape[1])


def stack_frames(x: Tensor, lengths: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Join neighbouring frames into one.

    Args:
        x: Shape (B, S, F).
        lengths: Frames of each utterance, shape (B,).
        count: Frames to join.

    Returns:
        Stacked frames (B, ceil(S / count), count F), and their number in each utterance (B,).
    """
    if count == 1:
        return x, lengths
    x = F.pad(x, (0, 0, 0, -x.shape[1] % count))
    return x.reshape(len(x), -1, count * x.shape[-1]), -(-lengths // count)


def max_pool(x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Take the larger of every two neighbours in time; an odd last frame stays as it is.

    Args:
        x: Shape (B, S, 2H).
        lengths: Frames of each utterance, shape (B,).

    Returns:
        Pooled frames (B, ceil(S / 2), 2H), zero behind the end, and their number in each utterance (B,).
    """
    x = x.masked_fill(~length_mask(lengths, x.shape[1]).unsqueeze(-1), -torch.inf)
    x = F.max_pool1d(x.transpose(1, 2), kernel_size=2, ceil_mode=True).transpose(1, 2)
    lengths = -(-lengths // 2)
    return zero_padding(x, lengths), lengths
