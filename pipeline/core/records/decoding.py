"""What lies beside decoded text and averaged weights."""

from typing import Any

from pydantic import Field

from pipeline.core.records.record import Record
from pipeline.core.records.training import TrainingCost
from pipeline.core.schema import Closed


class Decoded(Record):
    """Beside the outputs of one split: how they were made, and how fast."""

    split: str
    lines: int
    cut_at_last_position: int = Field(description="Outputs as long as the model has positions for")
    weights: str = Field(description="Digest of the weights")
    training: str | None = Field(default=None, description="Digest of the weights that the training ended in")
    decoding: dict[str, Any] = Field(description="All settings (pipeline/config/decoding.py)")
    precision: str
    device: str = Field(description="cpu or cuda")
    seconds: float
    sentences_per_second: float
    corpus: str | None = Field(default=None, description="Folder of what was transcribed; None = the run's own")

    def device_name(self, trained: TrainingCost | None) -> str:
        """The device it took: it says only of which kind, so that of the training where that had one of this kind."""
        same_kind = trained and bool(trained.starts[-1].gpu_hours) == (self.device != "cpu")
        return trained.starts[-1].device if trained and same_kind else self.device


class TunedPoint(Closed):
    """Error rates, per cent, of a pair of weights."""

    lm_weight: float
    word_bonus: float
    wer: float
    cer: float


class Tuned(TunedPoint, Record):
    """The best pair of weights of a shallow fusion on the development set."""

    sentences: int = Field(description="Utterances decoded")
    grid: list[TunedPoint]


class AveragedFile(Closed):
    file: str
    step: int
    digest: str


class Averaged(Record):
    """Beside averaged weights."""

    key: str
    digest: str
    inputs: list[AveragedFile]
