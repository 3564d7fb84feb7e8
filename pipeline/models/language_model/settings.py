"""Settings and FLOPs of the character language model, and of its fusion with a decoder."""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline.core.schema import Closed, Number, Positive, Probability, Width
from pipeline.models.settings import BACKWARD, BatchShape, ModelSettings, Reads, gru_macs


class LanguageModelConfig(ModelSettings):
    """Cold Fusion, Table 2: a recurrent model of characters."""

    reads: ClassVar[Reads] = "text"

    architecture: Literal["language_model"] = Field(description="GRU language model (Cold Fusion, Table 2)")
    num_layers: Width = Field(default=3, description="GRU layers")
    embedding_width: Width = Field(default=256, description="Width of a character's vector; not printed")
    hidden_width: Width = Field(description="Units of a GRU layer")
    dropout: Probability = Field(default=0.0, description="Dropout between layers and before the output layer")

    @property
    def schedule_width(self) -> int:
        """Width of a GRU layer."""
        return self.hidden_width

    def forward_macs(self, shape: BatchShape) -> float:
        widths = [self.embedding_width] + [self.hidden_width] * (self.num_layers - 1)
        character = sum(gru_macs(width, self.hidden_width) for width in widths) + self.hidden_width * shape.vocab
        return shape.tgt_positions * character


class FusionConfig(Closed):
    """Fusion with a language model (Cold Fusion, sections 2.2, 3 and 4.4, eq. 3 and 4)."""

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {"lm_feature": {"logits": ["logit_scale"], "state": []}}

    kind: Literal["deep", "cold"] = Field(
        description="deep: train only this layer, on a finished model; cold: train the model with it"
    )
    gate_reads: Literal["lm", "task and lm"] = Field(
        default="task and lm", description="Input of the gate: the language model alone (eq. 3a), or s_t as well"
    )
    gate: Literal["scalar", "fine-grained"] = Field(
        default="fine-grained", description="One gate, or one per unit that it gates"
    )
    lm_feature: Literal["state", "logits"] = Field(
        default="logits", description="Gated feature: the hidden state, or projected logits (eq. 4a)"
    )
    output: Literal["affine", "hidden", "relu logits"] = Field(
        default="hidden",
        description="Before the softmax: one affine layer; a ReLU layer and an affine one (eq. 4d); or, the literal "
        "reading, an affine layer whose logits go through ReLU, with ReLU in eq. 4a too",
    )
    logit_scale: Positive = Field(
        default=1.0,
        description="Factor on the logits, less their maximum, before eq. 4a; 1 = raw, as printed; 0.05 makes the "
        "result about twice as large as the task state at initialisation",
    )
    output_start: Literal["random", "initial"] = Field(
        default="random",
        description="Start of an affine output layer: random, or that of the `initial` run, without language model",
    )
    width: Width = Field(default=256, description="Units of eq. 4a and of the ReLU layer")
    gate_bias: Number = Field(
        default=0.0, description="Initial bias of the gate; -1 starts with a gate that is mostly closed"
    )

    @property
    def initialises_output(self) -> bool:
        """True if the output layer starts as that of the `initial` run."""
        return self.output == "affine" and self.output_start == "initial"

    def macs_per_symbol(self, state_width: int, lm_width: int, vocab: int) -> int:
        """Return the multiply-adds of a forward pass of the fusion layer per target symbol.

        Args:
            state_width: Width of the task state.
            lm_width: Width of the language model's hidden state.
            vocab: Size of the target vocabulary.
        """
        feature = lm_width if self.lm_feature == "state" else self.width
        project = 0 if self.lm_feature == "state" else vocab * feature
        gate_width = feature + (state_width if self.gate_reads == "task and lm" else 0)
        gate = gate_width * (1 if self.gate == "scalar" else feature)
        fused = state_width + feature
        output = fused * self.width + self.width * vocab if self.output == "hidden" else fused * vocab
        return project + gate + output


def fused_training_flops(
    config: FusionConfig,
    task: ModelSettings,
    language_model: LanguageModelConfig,
    shape: BatchShape,
    frozen: bool,
) -> float:
    """Return the FLOPs of one training step of a fused decoder; the task model may be `frozen`.

    Raises:
        ValueError: The task model has no task state.
    """
    if task.state_width is None:
        raise ValueError(f"a model of architecture {task.architecture} can't be fused")
    decoder = task.forward_macs(shape) - shape.tgt_positions * task.state_width * shape.vocab
    fusion = shape.tgt_positions * config.macs_per_symbol(task.state_width, language_model.hidden_width, shape.vocab)
    passes = 1 if frozen else 1 + BACKWARD
    return 2.0 * (language_model.forward_macs(shape) + decoder * passes + fusion * (1 + BACKWARD))
