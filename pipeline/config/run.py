"""One run: a model, its training and its data, resolved."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.config.training import TrainingConfig
from pipeline.models.convolutional.settings import ConvolutionalConfig
from pipeline.models.ctc.settings import CTCConfig
from pipeline.models.fusion.settings import FusionConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.speech_attention.settings import SpeechAttentionConfig
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.schema import Closed, load_yaml, validate

ModelConfig = Annotated[
    TransformerConfig
    | WeightedTransformerConfig
    | RecurrentConfig
    | ConvolutionalConfig
    | LanguageModelConfig
    | SpeechAttentionConfig
    | CTCConfig,
    Field(discriminator="architecture"),
]


class LanguageModelRun(Closed):
    """The trained language model that a fusion reads."""

    run: str = Field(description="Folder of its run")
    model: LanguageModelConfig


class RunSpec(Closed):
    """One system on one dataset with one seed at one scale: all that training reads (`run.yaml`)."""

    paper: str
    system: str
    dataset: str
    scale: str
    seed: Annotated[int, Field(ge=0)]
    corpus: str = Field(description="Folder of the encoded corpus")
    model: ModelConfig
    training: TrainingConfig
    fusion: FusionConfig | None = Field(default=None, description="How a language model is fused with the decoder")
    language_model: LanguageModelRun | None = Field(default=None, description="What is fused; never trained here")
    initial: str | None = Field(default=None, description="Folder of the run whose weights the training starts from")

    @model_validator(mode="after")
    def fusions_are_whole(self):
        if (self.fusion is None) != (self.language_model is None):
            raise ValueError("fusion and language_model go together: one says how, the other what is fused")
        if self.fusion and self.fusion.kind == "deep" and self.initial is None:
            raise ValueError("deep fusion is trained on a finished model: name its run as `initial`")
        if self.training.trained_part == "fusion" and (self.fusion is None or self.initial is None):
            raise ValueError("training.trained_part: fusion needs a fusion, and an `initial` run that has it")
        return self

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.system} seed {self.seed}"


def load_run(path: Path) -> RunSpec:
    """Read a `run.yaml`. Raises UserError on unknown keys, bad values or a missing file."""
    return validate(RunSpec, load_yaml(path), str(path))
