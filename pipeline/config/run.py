"""The resolved settings of one run: model, training and data."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, model_validator

from pipeline.config.training import TrainingConfig
from pipeline.core.layout import RUN_FILE
from pipeline.core.schema import Closed, Seed, load_yaml_as
from pipeline.models.architectures import architectures
from pipeline.models.language_model.settings import FusionConfig, LanguageModelConfig
from pipeline.models.settings import ModelSettings

if TYPE_CHECKING:
    ModelConfig = ModelSettings
else:
    ModelConfig = Annotated[Union[tuple(architectures().values())], Field(discriminator="architecture")]  # noqa: UP007


class LanguageModelRun(Closed):
    """A trained language model that is fused with a decoder."""

    run: str = Field(description="Folder of its run")
    model: LanguageModelConfig


class RunSpec(Closed):
    """One system on one dataset with one seed at one scale: everything that training reads (`run.yaml`)."""

    paper: str
    system: str
    dataset: str
    scale: str
    seed: Seed
    corpus: str = Field(description="Folder of the encoded corpus")
    model: ModelConfig
    training: TrainingConfig
    fusion: FusionConfig | None = Field(default=None, description="How a language model is fused with the decoder")
    language_model: LanguageModelRun | None = Field(
        default=None, description="Language model that is fused; its weights stay fixed"
    )
    initial: str | None = Field(default=None, description="Folder of the run whose weights initialise the training")

    @model_validator(mode="after")
    def check_fusion(self):
        """Return the settings if those of a fusion fit.

        Raises:
            ValueError: It has no language model, or lacks the run to start from.
        """
        if (self.fusion is None) != (self.language_model is None):
            raise ValueError("fusion and language_model go together: set both or neither")
        if self.fusion and self.fusion.kind == "deep" and self.initial is None:
            raise ValueError("deep fusion starts from a trained model: name its run as `initial`")
        if self.training.trained_part == "fusion" and (self.fusion is None or self.initial is None):
            raise ValueError(
                "training.trained_part: fusion needs a fusion and an `initial` run that has the same fusion"
            )
        return self

    @model_validator(mode="after")
    def check_training(self):
        """Return the settings if training fits the model and its data.

        Raises:
            ValueError: One does not.
        """
        if self.fusion and self.model.state_width is None:
            raise ValueError(f"fusion: architecture {self.model.architecture} has no decoder to fuse with")
        if self.model.reads != "parallel" and self.training.sentences_per_update is None:
            raise ValueError(
                f"models of {self.model.reads} count batches in sentences: set training.sentences_per_update"
            )
        for key in ("sorted_first_epoch", "noise_probability"):
            if self.model.reads != "speech" and getattr(self.training, key):
                raise ValueError(f"training.{key} is for speech: this model reads {self.model.reads}")
        self.model.check_training(self.training)
        return self

    @property
    def ignored_setting(self) -> str:
        """Return a message about a setting that the model ignores, else an empty text.

        This is no validator, so that `run.yaml` files of older versions can still be read.
        """
        kind = self.model.architecture
        if self.fusion and self.fusion.kind == "cold" and not self.model.fusable:
            return f"fusion: architecture {kind} is not trained by the loss of its decoder alone"
        if self.training.scheduled_sampling and not (self.fusion or self.model.samples):
            return f"training.scheduled_sampling: architecture {kind} is always fed the reference"
        if self.training.train_share < 1 and self.model.reads == "parallel":
            return "training.train_share is for speech and text: this model reads sentence pairs"
        return ""

    @property
    def name(self) -> str:
        """Return the name of the run in messages."""
        return f"{self.paper}/{self.system} seed {self.seed}"

    @property
    def weight_sources(self) -> dict[str, str]:
        """Return the folders of runs whose weights this run loads, by setting."""
        named = {"language_model": self.language_model and self.language_model.run, "initial": self.initial}
        return {key: folder for key, folder in named.items() if folder}

    def content(self, exclude_defaults: bool = True) -> dict[str, Any]:
        """Return the settings that decide the weights, without folders and without settings of other output files."""
        excluded: dict[str, Any] = {"corpus": True, "initial": True, "language_model": {"run"}}
        excluded["training"] = {"keep_checkpoints", "tensorboard", "cuda_graphs"}
        return self.model_dump(mode="json", exclude_defaults=exclude_defaults, exclude=excluded)

    def differences(self, other: "RunSpec") -> list[str]:
        """Describe the settings, data and weight sources in which another run differs from this one."""
        before, after = other.identity, self.identity
        keys = (key for key in {**before, **after} if before.get(key) != after.get(key))
        return [f"{key} is {before.get(key, 'not set')} (here {after.get(key, 'not set')})" for key in keys]

    @property
    def identity(self) -> dict[str, Any]:
        """Return all settings by dotted name, and the names of the folders that the run reads."""
        folders = {"corpus": Path(self.corpus).parent, **{key: Path(run) for key, run in self.weight_sources.items()}}
        return flat(self.content(exclude_defaults=False)) | {key: folder.name for key, folder in folders.items()}

    def map_folders(self, place: Callable[[str], str]) -> "RunSpec":
        """Return a copy in which `place` was applied to each folder."""
        model = self.language_model
        changed = {
            "corpus": place(self.corpus),
            "initial": place(self.initial) if self.initial else None,
            "language_model": model and model.model_copy(update={"run": place(model.run)}),
        }
        return self.model_copy(update=changed)


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested `settings` as one mapping with dotted keys, each after `prefix`."""
    parts = (flat(v, f"{k}.") if isinstance(v, dict) else {k: v} for k, v in settings.items())
    return {prefix + key: value for part in parts for key, value in part.items()}


def run_folder_above(path: Path) -> Path | None:
    """Return the nearest run folder: `path` itself or one of its parents; None if there is none."""
    above = (path, *path.resolve().parents) if path.exists() else ()
    return next((folder for folder in above if (folder / RUN_FILE).exists()), None)


def load_run(path: Path) -> RunSpec:
    """Return the settings of a `run.yaml`, with folders relative to the working directory.

    Its folders are relative to its own folder, so that a work folder can be moved.

    Raises:
        UserError: The file is missing, has an unknown key or a bad value.
    """
    spec: RunSpec = load_yaml_as(RunSpec, path)
    return spec.map_folders(lambda folder: os.path.normpath(path.parent / folder))


def sibling_runs(run_folder: Path) -> list[Path]:
    """Return the folders of other runs of the same system, dataset and seed."""
    run_folder = Path(run_folder).absolute()
    name, dash, _ = run_folder.name.rpartition("-")
    folders = sorted(run_folder.parent.glob(f"{name}-*")) if dash else []
    return [folder for folder in folders if folder != run_folder and (folder / RUN_FILE).exists()]
