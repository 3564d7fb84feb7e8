"""Frames to annotations: two strided convolutions, then residual BLSTMs, each behind a layer normalisation.

Dimensions: B utterances, S frames, S' positions of two or four frames, F features, C channels, D d_model.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.joint_recogniser.settings import JointRecogniserConfig
from pipeline.models.layers.frames_read import frames_read
from pipeline.models.layers.modules import Modules
from pipeline.models.layers.reading import within, zero_behind
from pipeline.models.speech_attention.encoder import BidirectionalLSTM


class ConvolutionalEncoder(nn.Module):
    def __init__(self, config: JointRecogniserConfig):
        super().__init__()
        self.config, width, bands = config, config.d_model, config.features
        inputs, convolutions = 1, []
        for stride in config.strides:
            convolutions.append(nn.Conv2d(inputs, config.channels, 3, stride=(stride, 2), padding=1))
            inputs, bands = config.channels, -(-bands // 2)
        self.convolutions = Modules[nn.Conv2d](convolutions)
        self.project = nn.Linear(inputs * bands, width)
        self.norms = Modules[nn.LayerNorm](nn.LayerNorm(width) for _ in range(config.encoder_layers))
        self.layers = Modules[BidirectionalLSTM](BidirectionalLSTM(width, width // 2) for _ in self.norms)
        self.norm = nn.LayerNorm(width)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """frames (B, S, F), lengths (B,) -> annotations (B, S', D), zero behind the end, and positions (B,)."""
        x = frames_read(self.config, frames, lengths, self.training).unsqueeze(1)
        for stride, convolution in zip(self.config.strides, self.convolutions, strict=True):
            lengths = -(-lengths // stride)
            x = convolution(x).relu()
            x = x * within(lengths, x.shape[2])[:, None, :, None]
        x = self.project(x.transpose(1, 2).flatten(2))
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + F.dropout(layer(norm(x), lengths), self.config.encoder_dropout, self.training)
        return zero_behind(self.norm(x), lengths), lengths
