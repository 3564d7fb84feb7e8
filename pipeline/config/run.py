"""One run: a model, its training and its data, resolved."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, model_validator

from pipeline.config.training import TrainingConfig
from pipeline.core.layout import RUN_FILE
from pipeline.core.schema import Closed, Seed, load_yaml, validate
from pipeline.models.architectures import architectures
from pipeline.models.fusion.settings import FusionConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.settings import ModelSettings

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
    seed: Seed
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
        for key in ("sorted_first_epoch", "noise_probability"):
            if self.model.reads != "speech" and getattr(self.training, key):
                raise ValueError(f"training.{key} is for speech: this model reads {self.model.reads}")
        self.model.check_training(self.training)
        return self

    @property
    def without_effect(self) -> str:
        """What of it would not be done as it is written, or nothing; runs of before are read all the same."""
        kind = self.model.architecture
        if self.fusion and self.fusion.kind == "cold" and not self.model.fusable:
            return f"fusion: a model of architecture {kind} does not learn by the loss of its decoder alone"
        if self.training.scheduled_sampling and not (self.fusion or self.model.samples):
            return f"training.scheduled_sampling: a model of architecture {kind} reads references alone"
        if self.training.train_share < 1 and self.model.reads == "parallel":
            return "training.train_share is for speech and text: this model reads sentence pairs"
        return ""

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.system} seed {self.seed}"

    @property
    def taken(self) -> dict[str, str]:
        """Folders of the runs whose weights it takes, by key."""
        named = {"language_model": self.language_model and self.language_model.run, "initial": self.initial}
        return {key: folder for key, folder in named.items() if folder}

    def content(self, exclude_defaults: bool = True) -> dict[str, Any]:
        """What decides the weights besides the data and other runs' weights: settings, usually those not at defaults.

        Where anything lies is not among them, nor what else is written.
        """
        places: dict[str, Any] = {"corpus": True, "initial": True, "language_model": {"run"}}
        places["training"] = {"keep_checkpoints", "tensorboard", "cuda_graphs"}
        return self.model_dump(mode="json", exclude_defaults=exclude_defaults, exclude=places)

    def differences(self, there: "RunSpec") -> list[str]:
        """Settings, data and other runs' weights that another run has otherwise, in words."""
        before, after = there.facts, self.facts
        keys = (key for key in {**before, **after} if before.get(key) != after.get(key))
        return [f"{key} is {before.get(key, 'not set')} (here {after.get(key, 'not set')})" for key in keys]

    @property
    def facts(self) -> dict[str, Any]:
        """Settings by whole names, and the folders of what it reads: their names say what is in them."""
        folders = {"corpus": Path(self.corpus).parent, **{key: Path(run) for key, run in self.taken.items()}}
        return flat(self.content(exclude_defaults=False)) | {key: folder.name for key, folder in folders.items()}

    def placed(self, place: Callable[[str], str]) -> "RunSpec":
        """With another way to write the folders that it names."""
        model = self.language_model
        changed = {
            "corpus": place(self.corpus),
            "initial": place(self.initial) if self.initial else None,
            "language_model": model and model.model_copy(update={"run": place(model.run)}),
        }
        return self.model_copy(update=changed)


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    parts = (flat(v, f"{k}.") if isinstance(v, dict) else {k: v} for k, v in settings.items())
    return {prefix + key: value for part in parts for key, value in part.items()}


def run_folder_above(path: Path) -> Path | None:
    """The nearest folder that holds a run: `path` itself or one that it lies in; None where `path` is nothing."""
    above = (path, *path.resolve().parents) if path.exists() else ()
    return next((one for one in above if (one / RUN_FILE).exists()), None)


def load_run(path: Path) -> RunSpec:
    """Read a `run.yaml`, which names folders as seen from its own: a work folder may lie anywhere.

    Raises:
        UserError: on unknown keys, bad values or a missing file.
    """
    spec: RunSpec = validate(RunSpec, load_yaml(path), str(path))
    return spec.placed(lambda folder: os.path.normpath(path.parent / folder))


def neighbours(run_folder: Path) -> list[Path]:
    """Folders of the other runs of this system, dataset and seed."""
    run_folder = Path(run_folder).absolute()
    name, dash, _ = run_folder.name.rpartition("-")
    folders = sorted(run_folder.parent.glob(f"{name}-*")) if dash else []
    return [folder for folder in folders if folder != run_folder and (folder / RUN_FILE).exists()]
