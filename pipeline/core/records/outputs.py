"""Records of decoding and scoring: manifests, decoded splits, averaged weights and scores."""

import re
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from pipeline.core.errors import UserError
from pipeline.core.records.record import Record
from pipeline.core.records.training import TrainingCost
from pipeline.core.schema import Closed


class Output(Closed):
    """An output: how it was made, or why it was not."""

    key: str = Field(description="Digest of its inputs and settings")
    files: dict[str, str] = Field(default={}, description="SHA-256 of each of its files, by path in the run's folder")
    error: str | None = Field(default=None, description="Why it could not be made")


class Manifest(Record):
    """`outputs.json` or `scores.json`: all outputs or scores of one decoding."""

    entries: dict[str, Output] = Field(description="Outputs by the path of their main file in the run's folder")


class Decoded(Record):
    """The record beside the outputs of one split: settings and speed."""

    split: str
    lines: int
    cut_at_last_position: int = Field(description="Outputs cut at the model's last position")
    weights: str = Field(description="Digest of the weights")
    training: str | None = Field(default=None, description="Digest of the final weights of the training")
    decoding: dict[str, Any] = Field(description="All settings (pipeline/config/decoding.py)")
    precision: str
    device: str = Field(description="cpu or cuda")
    seconds: float
    sentences_per_second: float
    corpus: str | None = Field(default=None, description="Folder of the transcribed corpus; None = the run's own")

    def device_name(self, trained: TrainingCost | None) -> str:
        """Return the name of the device that decoded.

        The record holds only its kind. A training on the same kind of device supplies the name.
        """
        same_kind = trained and bool(trained.starts[-1].gpu_hours) == (self.device != "cpu")
        return trained.starts[-1].device if trained and same_kind else self.device


class TunedPoint(Closed):
    """Error rates, per cent, of a pair of fusion weights."""

    lm_weight: float
    word_bonus: float
    wer: float
    cer: float


class Tuned(TunedPoint, Record):
    """The best pair of weights of a shallow fusion on the development set."""

    sentences: int = Field(description="Utterances decoded")
    grid: list[TunedPoint]


class AveragedFile(Closed):
    """A checkpoint that was averaged."""

    file: str
    step: int
    digest: str


class Averaged(Record):
    """The record beside averaged weights."""

    key: str
    digest: str
    inputs: list[AveragedFile]


class MetricValue(Closed):
    """A metric over a whole split, with a 95 % interval by resampling sentences; none for a single sentence."""

    value: float
    low: float | None
    high: float | None
    signature: str = Field(description="Metric signature")


class Scored(Closed):
    """Facts about what was scored, of all kinds of scores."""

    dataset: str
    split: str
    test_set: str = Field(description="Name of the test set, as shown beside every score")
    lines: int = Field(description="Sentences, utterances or trees")
    left_out: int = Field(default=0, description="Utterances of the split that could not be used")
    references: str = Field(description="SHA-256 of the references: scores of different ones are never compared")
    inputs: dict[str, str] = Field(default={}, description="SHA-256 of each file that was read")
    ceiling: float | None = Field(
        default=None,
        description="sacreBLEU of a perfect translation: of the references, tokenised and detokenised",
    )
    recall: float | None = Field(default=None, description="Of labelled brackets, per cent")
    precision: float | None = Field(default=None, description="Of labelled brackets, per cent")
    repairs: dict[str, int] | None = Field(default=None, description="Repairs of output trees, by kind")
    nll: float | None = Field(default=None, description="Summed negative log-likelihood of a perplexity, nats")
    tokens: int | None = Field(default=None, description="Target symbols of a perplexity")
    weights: str | None = Field(default=None, description="Digest of the weights of a perplexity")
    training: str | None = Field(default=None, description="Digest of the final weights of the training")


VERSION = re.compile(r"(?<=version:)[\d.]+|(?<=rapidfuzz-)[\d.]+")


class ScoreFile(Scored, Record):
    """Metrics of one system on one split; an .npz file beside it holds the statistics of each sentence."""

    remedy: ClassVar[str] = "score the run again"

    metrics: dict[str, MetricValue]
    statistics: str = Field(description="Name of the .npz file")

    @property
    def test_set_in_words(self) -> str:
        """Describe the test set: name, size, and digest of the references."""
        lines = f"{self.lines} of {self.lines + self.left_out}" if self.left_out else self.lines
        return f"{self.test_set} ({lines} lines, references {self.references[:12]})"

    def basis(self, metric: str) -> tuple[str, str, str]:
        """Return what comparable scores of one metric share: test set, references, and signature without versions."""
        return self.test_set, self.references, VERSION.sub("", self.metrics[metric].signature)

    def require_training(self, digest: str, path: Path) -> None:
        """Check that the scores belong to the run's current training.

        Args:
            digest: Digest of the weights that the training ended with.
            path: The score file.

        Raises:
            UserError: The scores are of other weights.
        """
        if self.training not in (None, digest):
            raise UserError(
                f"{path}: scores weights of another training (it ended in {self.training[:12]}) than that of its run "
                f"({digest[:12]}); remove it and score the run again"
            )
