"""Everything that the workflow makes, one class per kind.

Paths are in layout.py, dependencies in workflow/graph.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunId:
    """Name of one training: a system of the paper that owns it, a dataset of the scale, and a seed."""

    paper: str
    system: str
    dataset: str
    seed: int

    @property
    def folder(self) -> str:
        """Return the folder of the run among the runs, without the digits of its content."""
        return f"{self.paper}/{self.system}/{self.dataset}/seed{self.seed}"

    @classmethod
    def of(cls, folder: str) -> "RunId":
        """Return the run of such a folder.

        Raises:
            ValueError: The folder is not that of a run.
        """
        paper, system, dataset, seed = folder.split("/")
        return cls(paper, system, dataset, int(seed.removeprefix("seed")))


@dataclass(frozen=True)
class DatasetArtifact:
    """An artifact of one dataset."""

    dataset: str


class Raw(DatasetArtifact):
    """The splits of a corpus as fetched or generated, or its collected trees, text or recordings."""


class Spoken(DatasetArtifact):
    """Recordings of text that a synthesiser read aloud."""


class Prepared(DatasetArtifact):
    """Cleaned and tokenised splits, and the report of rejected lines."""


class Vocabulary(DatasetArtifact):
    """Learnt subwords."""


class Encoded(DatasetArtifact):
    """Memory-mapped ids or features, as training reads them."""


@dataclass(frozen=True)
class RunArtifact:
    """An artifact of one run."""

    run: RunId


class Trained(RunArtifact):
    """The record of a finished training, beside its final weights and `run.yaml`."""


class Gates(RunArtifact):
    """Mean gate values between channels, by kind of source word."""


@dataclass(frozen=True)
class DecodingArtifact(RunArtifact):
    """An artifact of one run under one decoding."""

    decoding: str


class Outputs(DecodingArtifact):
    """The manifest of all outputs of a run under one decoding."""


class Scores(DecodingArtifact):
    """The manifest of all scores of the outputs of one decoding."""


class Averaged(DecodingArtifact):
    """Weights averaged over the last checkpoints."""


class Tuned(DecodingArtifact):
    """Weights of shallow fusion, tuned on the development set."""


@dataclass(frozen=True)
class SplitArtifact(DecodingArtifact):
    """An output for one split."""

    split: str


class Translation(SplitArtifact):
    """Translations of one split."""


class Parse(SplitArtifact):
    """Linearised trees of one split."""


@dataclass(frozen=True)
class Transcript(SplitArtifact):
    """Transcripts of one split of a corpus."""

    scored_on: str


@dataclass(frozen=True)
class Score(RunArtifact):
    """Metrics of one split.

    Attributes:
        measure: Folder of its file, which names what is measured (metrics/).
        scored_on: Dataset of the split; None for the run's own.
    """

    measure: str
    decoding: str
    split: str
    scored_on: str | None = None


@dataclass(frozen=True)
class AttentionMaps(SplitArtifact):
    """Attention of single heads on a sentence that a rule chose."""

    choice: str


@dataclass(frozen=True)
class Alignments(RunArtifact):
    """Attention over speech at every kept checkpoint."""

    split: str


@dataclass(frozen=True)
class LayerTimes:
    """Times of layer types on this machine."""


@dataclass(frozen=True)
class Calibration:
    """Training and decoding speed of this machine."""


@dataclass(frozen=True)
class ModelSizes:
    """Parameters of a paper's systems at the paper's own size."""

    paper: str


@dataclass(frozen=True)
class Table:
    """Scores beside the numbers that a paper printed."""

    paper: str
    table: str


class ExampleTable(Table):
    """One sentence with the translation of every system."""


class TranscriptTable(Table):
    """Transcripts of a few utterances by every system."""


class LayerTable(Table):
    """Times of layer types beside their printed complexities."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper."""

    paper: str
    figure: str


@dataclass(frozen=True)
class Claims:
    """Every claim of a paper, with its verdict."""

    paper: str


TRAINING = "training"
"""Name of the decoding that stands for outputs of final weights or checkpoints alone: gates and alignments."""


def manifest_of(artifact: "Artifact") -> "Artifact":
    """Return the manifest that lists `artifact`, which rules declare in its place, or the artifact itself."""
    match artifact:
        case Outputs() | Scores():
            return artifact
        case Score(run, measure, decoding) if measure != "perplexities":
            return Scores(run, decoding)
        case DecodingArtifact(run, decoding) | Score(run, _, decoding):
            return Outputs(run, decoding)
        case Transcript(run, decoding):
            return Outputs(run, decoding)
        case Gates(run) | Alignments(run):
            return Outputs(run, TRAINING)
    return artifact


Report = Table | Figure | Claims
Artifact = DatasetArtifact | RunArtifact | LayerTimes | Calibration | ModelSizes | Report
