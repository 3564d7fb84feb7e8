"""Settings of the models of Cold Fusion (Sriram et al. 2017): speech to characters, and characters alone."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.records import Closed, Count, Probability


class LanguageModelConfig(Closed):
    """Cold Fusion, Table 2: a recurrent model of characters."""

    architecture: Literal["language_model"] = Field(description="GRU language model (Cold Fusion, Table 2)")
    num_layers: Count = Field(default=3, description="GRU layers")
    embedding_width: Count = Field(default=256, description="Width of a character's vector; not printed")
    hidden_width: Count = Field(description="Units of a GRU layer")
    dropout: Probability = Field(default=0.0, description="Between layers and before the softmax")


class AttentionConfig(Closed):
    """Cold Fusion, section 4.3: the plain Seq2Seq recogniser."""

    architecture: Literal["speech_attention"] = Field(description="BLSTM encoder, GRU decoder with hybrid attention")
    features: Count = Field(default=40, description="Log-mel filter banks of a frame")
    frame_stacking: Count = Field(default=1, description="Neighbouring frames joined into one input of the encoder")
    encoder_layers: Count = Field(default=6, description="BLSTM layers")
    encoder_width: Count = Field(description="Units of a BLSTM layer, each direction")
    pooled_layers: Annotated[int, Field(ge=0)] = Field(
        default=2, description="Max-pooling of stride 2 in time follows each of so many first layers"
    )
    decoder_width: Count = Field(description="Units of the GRU decoder (Table 4: 64 to 960)")
    embedding_width: Count = Field(default=256, description="Width of a character's vector; not printed")
    attention_width: Count = Field(default=256, description="Width in which states are compared; not printed")
    location_filters: Count = Field(default=10, description="k: filters over the previous alignment; not printed")
    location_width: Count = Field(default=51, description="r: encoder positions that a filter spans; not printed")
    task_state: Literal["state and context", "state"] = Field(
        default="state and context", description="s_t that the output layer, or a fusion, reads: [d_t; c_t] or d_t"
    )


class CTCConfig(Closed):
    """Cold Fusion, Table 3, first row: Deep Speech 2's shape, trained with CTC."""

    architecture: Literal["ctc"] = Field(description="Convolutions, bidirectional GRUs, CTC (Amodei et al. 2015)")
    features: Count = Field(default=40, description="Log-mel filter banks of a frame")
    channels: Count = Field(default=32, description="Channels of both convolutions over time and frequency")
    num_layers: Count = Field(default=5, description="Bidirectional GRU layers")
    hidden_width: Count = Field(default=800, description="Units of a GRU layer, each direction; not printed")


class FusionConfig(Closed):
    """Cold Fusion, sections 3 and 5.3, equations 3 and 4: how a language model enters the output of a decoder."""

    kind: Literal["deep", "cold"] = Field(
        description="deep: only this layer is trained, on a finished model; cold: the model is trained with it"
    )
    gate_reads: Literal["lm", "task and lm"] = Field(
        default="task and lm", description="What the gate sees: the language model alone (eq. 3a) or s_t as well"
    )
    gate: Literal["scalar", "fine-grained"] = Field(
        default="fine-grained", description="One gate, or one for each unit of what it lets through"
    )
    lm_feature: Literal["state", "logits"] = Field(
        default="logits", description="What passes the gate: the hidden state, or projected logits (eq. 4a)"
    )
    output: Literal["affine", "hidden", "relu logits"] = Field(
        default="hidden",
        description="Before the softmax: one affine layer; a ReLU layer and an affine one (eq. 4d); or, the literal "
        "reading, an affine layer whose logits go through ReLU, with ReLU in eq. 4a too",
    )
    width: Count = Field(default=256, description="Units of eq. 4a and of the ReLU layer")
    gate_bias: float = Field(default=0.0, strict=False, description="Initial bias of the gate; -1 starts it closed")
