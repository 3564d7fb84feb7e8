"""Records of decoding, scoring and probes: manifests, decoded splits, weights, scores, analyses of models."""

import re
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from pipeline.core.errors import REPAIR, UserError, count_of
from pipeline.core.records.record import Record
from pipeline.core.records.training import Machine, TrainingCost
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
    decoding: dict[str, Any] = Field(description="All settings (pipeline/config/training.py)")
    precision: str
    device: str = Field(description="cpu or cuda")
    seconds: float
    sentences_per_second: float
    corpus: str | None = Field(default=None, description="Folder of the transcribed corpus; None = the run's own")
    language_model: str | None = Field(default=None, description="Folder of the run of the external language model")

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


class TunedWeights(TunedPoint, Record):
    """The best pair of weights of a shallow fusion on the development set."""

    sentences: int = Field(description="Utterances decoded, including those of further runs")
    grid: list[TunedPoint]


class AveragedFile(Closed):
    """A checkpoint that was averaged."""

    file: str
    step: int
    digest: str


class AveragedWeights(Record):
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

    remedy: ClassVar[str] = REPAIR

    metrics: dict[str, MetricValue]
    statistics: str = Field(description="Name of the .npz file")

    @property
    def test_set_in_words(self) -> str:
        """Describe the test set: name, size, and digest of the references."""
        share = f"{self.lines} of " if self.left_out else ""
        lines = count_of(self.lines + self.left_out, "line")
        return f"{self.test_set} ({share}{lines}, references {self.references[:12]})"

    def basis(self, metric: str) -> tuple[str, str, str]:
        """Return what comparable scores of one metric share: test set, references, and signature without versions."""
        return self.test_set, self.references, VERSION.sub("", self.metrics[metric].signature)

    def require_training(self, digest: str, path: Path) -> None:
        """Check that the scores in `path` belong to the run's training, which ended with this `digest`.

        Raises:
            UserError: The scores are of other weights.
        """
        if self.training not in (None, digest):
            raise UserError(
                f"{path}: scores weights of another training (it ended in {self.training[:12]}, that of its run in "
                f"{digest[:12]}); remove it and score the run again"
            )


class GateValue(Closed):
    """Mean of a gate over words of a kind; None without words."""

    value: float | None
    words: int


class GateValues(Record):
    """`gates.json`; the .npz file beside it holds the statistics of each sentence, by `<channel>.<kind>`."""

    dataset: str
    test_sets: list[str]
    lines: int
    gates: dict[str, dict[str, GateValue]] = Field(description="Gate values by channel and kind of word")
    statistics: str
    weights_digest: str


class AttentionMap(Record):
    """Attention weights of some heads of one encoder layer on one sentence."""

    rule: str = Field(description="Rule that chose the sentence")
    split: str
    sentence: int = Field(description="Its place in the split, from 0")
    tokens: list[str]
    query: int | None = Field(description="Position of the query word; None = all")
    pronoun: bool = Field(description="The query word is a pronoun")
    layer: int = Field(description="Number of the layer, from 1")
    layers: int
    heads: list[int] = Field(description="Numbers of the heads, from 0")
    weights: list[list[list[float]]] = Field(description="Attention weights, shape (heads, queries, keys)")
    weights_digest: str


class AlignmentMaps(Record):
    """Alignments of a recogniser at each kept checkpoint."""

    split: str
    utterances: int = Field(description="Number of utterances in the mean entropy")
    utterance: int = Field(description="Number of the utterance of the maps, from 0")
    text: str = Field(description="Transcript of that utterance")
    steps: list[int] = Field(description="Training step of each checkpoint")
    entropy: list[float] = Field(description="Mean entropy of a character's alignment at each checkpoint, nats")
    maps: list[list[list[float]]] = Field(
        description="Attention weights, shape (checkpoints, characters, encoder positions)"
    )
    weights_digest: str


TIMED_BESIDE = ("additive attention", "attention of one head", "attention of eight heads")
"""Layers of section 3.2 of Attention Is All You Need that are timed beside the types of its Table 1."""


class LayerTime(Closed):
    """Times of a forward pass of a layer type on n positions of width d."""

    layer: str
    n: int
    d: int
    seconds: list[float] = Field(description="Seconds of each repeat")


class LayerCosts(Machine, Record):
    """`layer_times.json`."""

    times: list[LayerTime]
    matmul_flops_per_s: float = Field(description="Sustained FLOP/s in float32; a multiply-add counts as 2")
    kernel: int = Field(description="Positions that a convolution reads")
    window: int = Field(description="Positions that restricted self-attention reads")
    on_processor: bool
    provenance: dict[str, str | int]


class ModelSize(Closed):
    """Number of parameters of a system."""

    system: str
    vocab: int = Field(description="Size of the vocabulary")
    parameters: int = Field(description="Trainable parameters")


class PaperSizes(Record):
    """Sizes of a paper's systems at the paper's own size."""

    sizes: list[ModelSize]
