"""A score file: metrics of one system on one split, with the statistics of each sentence in a .npz file beside it."""

import re
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pipeline.core.errors import UserError
from pipeline.core.records.record import Record
from pipeline.core.schema import Closed


class MetricValue(Closed):
    """A metric over the whole split, with its 95 % interval by resampling sentences, of which there must be two."""

    value: float
    low: float | None
    high: float | None
    signature: str = Field(description="How it was computed")


class Scored(Closed):
    """What was scored, by any of the stages `score`, `score-speech`, `score-trees`, `phenomena` and `perplexity`."""

    dataset: str
    split: str
    test_set: str = Field(description="As it stands beside every score")
    lines: int = Field(description="Sentences, utterances or trees")
    left_out: int = Field(default=0, description="Of speech: utterances of the split that could not be used")
    references: str = Field(description="SHA-256 of the references: scores of different ones are never compared")
    inputs: dict[str, str] = Field(default={}, description="SHA-256 of each file that was read")
    ceiling: float | None = Field(
        default=None,
        description="sacreBLEU of the references, tokenised and detokenised: that of a perfect translation",
    )
    recall: float | None = Field(default=None, description="Of brackets, per cent")
    precision: float | None = Field(default=None, description="Of brackets, per cent")
    repairs: dict[str, int] | None = Field(default=None, description="Of written trees, by kind")
    nll: float | None = Field(default=None, description="Of a perplexity: nats in all")
    tokens: int | None = Field(default=None, description="Of a perplexity: symbols in all")
    weights: str | None = Field(default=None, description="Of a perplexity: digest of the weights")
    training: str | None = Field(default=None, description="Digest of the weights that the training ended in")


VERSION = re.compile(r"(?<=version:)[\d.]+|(?<=rapidfuzz-)[\d.]+")


class ScoreFile(Scored, Record):
    remedy: ClassVar[str] = "score the run again"

    metrics: dict[str, MetricValue]
    statistics: str = Field(description="Name of the .npz file")

    @property
    def test_set_in_words(self) -> str:
        """The test set, how much of it there is, and what tells it from every other, in words."""
        lines = f"{self.lines} of {self.lines + self.left_out}" if self.left_out else self.lines
        return f"{self.test_set} ({lines} lines, references {self.references[:12]})"

    def basis(self, metric: str) -> tuple[str, str, str]:
        """What scores of one metric must have in common: test set, references, and how it was computed.

        By whatever versions of the libraries: these do not change what a metric is.
        """
        return self.test_set, self.references, VERSION.sub("", self.metrics[metric].signature)

    def require_training(self, digest: str, path: Path) -> None:
        """Raises UserError when the training that was scored ended in other weights than the run's."""
        if self.training not in (None, digest):
            raise UserError(
                f"{path}: scores weights of another training (it ended in {self.training[:12]}) than that of its run "
                f"({digest[:12]}); remove it and score the run again"
            )
