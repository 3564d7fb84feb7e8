"""Settings and FLOPs of the recurrent attention models of *Multi-channel Encoder*, DL4MT included."""

from typing import Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Positive, Probability, Width
from pipeline.models.settings import BatchShape, ModelSettings, gru_macs


class RecurrentConfig(ModelSettings):
    """Multi-channel Encoder (Xiong et al. 2017): GRUs with attention over blended channels."""

    architecture: Literal["recurrent"] = Field(description="GRU encoder and conditional-GRU decoder with attention")
    channels: Literal["rnn", "ntm", "emb", "ntm-rnn", "ntm-emb", "rnn-emb", "ntm-rnn-emb"] = Field(
        description="Channels of an annotation: GRU states, external memory (NTM), embeddings"
    )
    d_embedding: Width = Field(description="Width of the embeddings, and of a memory cell")
    d_state: Width = Field(description="Width of every GRU; an annotation has twice that, except of embeddings alone")
    d_attention: Width = Field(description="Hidden width of the attention and of the memory's addressing")
    d_readout: Width = Field(description="Width of the output layer's input")
    memory_write: Literal["forget_update", "tanh_content"] = Field(
        default="tanh_content",
        description="M (1 - w F) + w U with F, U = sigmoid(W s); or M (1 - w u) + w u tanh(W_C s). "
        "Without a memory it is reset to the default, so that it does not distinguish runs",
    )
    blending: Literal["gate", "gru"] = Field(
        default="gate", description="z P a + (1 - z) Q b; or (1 - z) a + z tanh(P a + Q b)"
    )
    backward_reads: Literal["forward", "embeddings"] = Field(
        default="forward", description="Input of the backward encoder: states of the forward encoder, or embeddings"
    )
    embedding_bias: bool = Field(default=True, description="One vector per side, added to every embedding")
    output_bias: bool = Field(default=False, description="Bias of each target symbol in the output layer")
    reset_bias: bool = Field(
        default=False,
        description="Apply the reset gate to the candidate's bias too, in the decoder's second GRU",
    )
    output_dropout: Probability = Field(default=0.5, description="Dropout of the output layer's input")
    initialisation: Literal["uniform", "orthogonal"] = Field(
        default="uniform",
        description="Uniform in ±init_scale; or square matrices orthogonal, but not the readout's; other weights "
        "N(0, init_scale²), biases zero",
    )
    init_scale: Positive = Field(
        default=0.04,
        description="Bound or standard deviation; 0.04 is printed for width 512; scales raise it as width^-0.5",
    )

    @model_validator(mode="after")
    def memory_cells_fit_states(self):
        """Refuse memory cells that are not as wide as the states, and reset `memory_write` without a memory."""
        if not self.has_memory:
            object.__setattr__(self, "memory_write", type(self).model_fields["memory_write"].default)
        if self.has_memory and self.d_embedding != self.d_state:
            raise ValueError(
                f"a memory cell is an embedding in place of a state: d_embedding {self.d_embedding} must equal "
                f"d_state {self.d_state}; without a memory, set channels to rnn or rnn-emb"
            )
        return self

    @property
    def channel_names(self) -> list[str]:
        """Names of the channels, in blending order."""
        return self.channels.split("-")

    @property
    def has_memory(self) -> bool:
        """True if the encoder has the external memory; EMB has it too, by its parameter count."""
        return "ntm" in self.channel_names or self.channels == "emb"

    @property
    def d_annotation(self) -> int:
        """Width of an annotation, which the attention reads at a source position."""
        return self.d_embedding if self.channels == "emb" else 2 * self.d_state

    @property
    def schedule_width(self) -> int:
        """Width of a GRU."""
        return self.d_state

    @property
    def state_width(self) -> int:
        """Width of the readout."""
        return self.d_readout

    def forward_macs(self, shape: BatchShape) -> float:
        embedding, state, annotation, src_length = self.d_embedding, self.d_state, self.d_annotation, shape.src_length
        stacked = self.backward_reads == "forward"
        encoder: float = gru_macs(embedding, state) + gru_macs(state if stacked else embedding, state)
        if self.has_memory:
            encoder += 2 * self.memory_macs(src_length)
        first = embedding if self.channel_names[0] == "emb" else 2 * state
        for name in self.channel_names[1:]:
            encoder += 2 * annotation * (first + (embedding if name == "emb" else 2 * state))
            first = annotation
        # The mean of the states and the decoder's first state, once per sentence.
        start = 2 * state + 2 * state * state / src_length
        keys = self.d_attention * annotation
        attention = self.d_attention * state + src_length * (self.d_attention + annotation)
        readout = self.d_readout * (state + embedding + annotation + shape.vocab)
        decoder = gru_macs(embedding, state) + attention + gru_macs(annotation, state) + readout
        return (encoder + start + keys) * shape.src_positions + decoder * shape.tgt_positions

    def memory_macs(self, src_length: float) -> float:
        """Count the multiply-adds of a memory step without the GRU."""
        state, hidden = self.d_state, self.d_attention
        gates = 3 * state * state
        return gates + hidden * state + src_length * (hidden * state + hidden + state)
