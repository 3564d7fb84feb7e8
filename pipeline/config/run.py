"""One run: a model, its training and its data, resolved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field, model_validator

from pipeline.config.training import TrainingConfig
from pipeline.models.architectures import architectures
from pipeline.models.fusion.settings import FusionConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.settings import ModelSettings
from pipeline.schema import Closed, load_yaml, validate

if TYPE_CHECKING:
    ModelConfig = ModelSettings
else:
    ModelConfig = Annotated[Union[tuple(architectures().values())], Field(discriminator="architecture")]  # noqa: UP007


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

    @model_validator(mode="after")
    def model_can_be_trained_so(self):
        if self.fusion and self.model.state_width is None:
            raise ValueError(f"fusion: a model of architecture {self.model.architecture} has no decoder to fuse")
        if self.model.reads != "parallel" and self.training.sentences_per_update is None:
            raise ValueError(
                f"updates on {self.model.reads} are counted in sentences: set training.sentences_per_update"
            )
        self.model.check_training(self.training)
        return self

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.system} seed {self.seed}"


def load_run(path: Path) -> RunSpec:
    """Read a `run.yaml`. Raises UserError on unknown keys, bad values or a missing file."""
    return validate(RunSpec, load_yaml(path), str(path))
