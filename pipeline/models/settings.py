"""What the settings of every architecture offer to training, planning and decoding, which know no architecture."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

from pipeline.core.schema import Closed

Reads = Literal["parallel", "speech", "text"]
"""Sentence pairs; features and transcripts; or sentences without a source, for language models."""


class ModelSettings(Closed):
    """Those of one stand in its folder's settings.py, with `architecture: Literal[<the folder's name>]`."""

    reads: ClassVar[Reads] = "parallel"
    """What a model takes of a corpus; one that reads text takes the target side of any."""

    fusable: ClassVar[bool] = True
    """Whether what it learns by is its decoder's output alone, and one rule moves its weights."""
    samples: ClassVar[bool] = False
    """Whether its decoder may read its own predictions in training."""

    architecture: str

    @property
    def family(self) -> str:
        """The kind of systems whose trainings are alike in their noise."""
        return {"parallel": self.architecture, "speech": "recogniser", "text": "language model"}[self.reads]

    @property
    @abstractmethod
    def schedule_width(self) -> int:
        """Stands for d_model in the learning rate's schedule."""

    @property
    def branch_schedule_width(self) -> float:
        """The same for branch weights, where a model has them (`parameter_groups`)."""
        return self.schedule_width

    @property
    def state_width(self) -> int | None:
        """Of the task state, which a language model can be fused with; None where the model has none."""
        return None

    def output_frames(self, frames: Any) -> Any:
        """Of speech of `frames` frames, an array, where every character of a target needs an output frame, and another
        one between two equal ones; None where a target may have any length."""
        return None

    def check_training(self, training: Any) -> None:
        """Raises ValueError where a model can't be trained by `training`, a TrainingConfig."""
