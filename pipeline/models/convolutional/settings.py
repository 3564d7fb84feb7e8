"""Settings and FLOPs of the convolutional model (ConvS2S)."""

from typing import Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Probability, Width
from pipeline.models.settings import BatchShape, ModelSettings


class ConvolutionalConfig(ModelSettings):
    """Convolutional Sequence to Sequence Learning (Gehring et al. 2017), as in fairseq-lua."""

    architecture: Literal["convolutional"] = Field(description="Gated convolutions and multi-step attention")
    encoder_layers: Width = Field(description="Convolutions of the encoder (nenclayer)")
    decoder_layers: Width = Field(description="Convolutions of the decoder, each with attention (nlayer)")
    d_embedding: Width = Field(description="Width of the embeddings of both sides (nembed)")
    d_hidden: Width = Field(description="Width of a layer's input and output (nhid)")
    d_readout: Width = Field(description="Width of the output layer's input (noutembed)")
    encoder_kernel: Width = Field(default=3, description="Source positions that a convolution reads; odd")
    decoder_kernel: Width = Field(default=3, description="Target positions that a convolution reads, its own last")
    dropout: Probability = Field(
        default=0.2, description="Dropout of embeddings, layer inputs and the output layer's input"
    )
    max_positions: Width = Field(default=256, description="Rows of the learned position tables, in subwords")

    @model_validator(mode="after")
    def source_kernel_has_a_middle(self):
        """Refuse an even encoder kernel."""
        if self.encoder_kernel % 2 == 0:
            raise ValueError(f"encoder_kernel must be odd, got {self.encoder_kernel}")
        return self

    @property
    def schedule_width(self) -> int:
        """Width of a layer."""
        return self.d_hidden

    @property
    def state_width(self) -> int:
        """Width of the readout."""
        return self.d_readout

    def forward_macs(self, shape: BatchShape) -> float:
        embedding, channels = self.d_embedding, self.d_hidden
        bridge, gated = embedding * channels, channels * 2 * channels
        encoder = 2 * bridge + self.encoder_layers * self.encoder_kernel * gated
        attention = 2 * bridge + 2 * shape.src_length * embedding
        layers = self.decoder_layers * (self.decoder_kernel * gated + attention)
        decoder = bridge + layers + self.d_readout * (channels + shape.vocab)
        return encoder * shape.src_positions + decoder * shape.tgt_positions
