"""What the workflow makes, a record a thing: its path is said in layout.py, what it needs in workflow/graph.py.

A field may hold Snakemake's `{wildcard}` in the place of a value: so the rules get the patterns of their files.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunId:
    """Names one training: a system of the paper that owns it, on one dataset of the scale, with one seed."""

    paper: str
    system: str
    dataset: str
    seed: int

    @property
    def folder(self) -> str:
        return f"{self.paper}/{self.system}/{self.dataset}/seed{self.seed}"

    @classmethod
    def of(cls, folder: str) -> "RunId":
        """The run of such a folder. Raises ValueError when it is none."""
        paper, system, dataset, seed = folder.split("/")
        return cls(paper, system, dataset, int(seed.removeprefix("seed")))


@dataclass(frozen=True)
class OfDataset:
    dataset: str


class Raw(OfDataset):
    """The splits of a corpus as they came, or its collected trees, text or recordings."""


class Spoken(OfDataset):
    """Recordings of text that was read aloud."""


class Prepared(OfDataset):
    """Cleaned and tokenised splits, and the report of what was left out."""


class Vocabulary(OfDataset):
    """Learnt subwords."""


class Encoded(OfDataset):
    """What training reads: ids or features, memory-mapped."""


@dataclass(frozen=True)
class OfRun:
    run: RunId


class Trained(OfRun):
    """The record of a finished training, with its final weights and its `run.yaml` beside it."""


class Gates(OfRun):
    """Mean gate values between channels, by kinds of source words."""


@dataclass(frozen=True)
class OfDecoding(OfRun):
    decoding: str


class Outputs(OfDecoding):
    """The manifest of everything that the model of a run writes or shows under one decoding."""


class Scores(OfDecoding):
    """The manifest of all scores of the outputs of one decoding."""


class Averaged(OfDecoding):
    """Weights averaged over the last checkpoints."""


class Tuned(OfDecoding):
    """Weights of shallow fusion, chosen on the development set."""


@dataclass(frozen=True)
class OfOutputs(OfDecoding):
    split: str


class Translation(OfOutputs):
    """One split's translations."""


class Parse(OfOutputs):
    """One split's linearised trees."""


@dataclass(frozen=True)
class Transcript(OfOutputs):
    """What is said in one split of a corpus, written down."""

    scored_on: str


@dataclass(frozen=True)
class Score(OfRun):
    """Metrics of one split. measure: the folder of its file, which says what reads it (metrics/)."""

    measure: str
    decoding: str
    split: str
    scored_on: str | None = None


@dataclass(frozen=True)
class AttentionMaps(OfOutputs):
    """Attention of single heads on a sentence that a rule chose."""

    choice: str


@dataclass(frozen=True)
class Alignments(OfRun):
    """Attention over speech at every kept checkpoint."""

    split: str


@dataclass(frozen=True)
class LayerTimes:
    """Times of layer types on this machine."""


@dataclass(frozen=True)
class Calibration:
    """How fast this machine trains and decodes."""


@dataclass(frozen=True)
class ModelSizes:
    """Parameters of a paper's systems at its own size."""

    paper: str


@dataclass(frozen=True)
class Table:
    """Scores next to the numbers that a paper printed."""

    paper: str
    table: str


class ExampleTable(Table):
    """One sentence with every system's translation of it."""


class TranscriptTable(Table):
    """What systems write down of a few utterances."""


class LayerTable(Table):
    """Times of layer types next to their printed complexities."""


@dataclass(frozen=True)
class Figure:
    paper: str
    figure: str


@dataclass(frozen=True)
class Claims:
    """Every claim of a paper, with its verdict."""

    paper: str


TRAINING = "training"
"""The decoding that stands for outputs of the final weights or the checkpoints alone: gates and alignments."""


def manifest_of(product: "Product") -> "Product":
    """Return the manifest that lists `product`, which rules declare in its place; others stand for themselves."""
    match product:
        case Outputs() | Scores():
            return product
        case Score(run, measure, decoding) if measure != "perplexities":
            return Scores(run, decoding)
        case OfDecoding(run, decoding) | Score(run, _, decoding):
            return Outputs(run, decoding)
        case Transcript(run, decoding):
            return Outputs(run, decoding)
        case Gates(run) | Alignments(run):
            return Outputs(run, TRAINING)
    return product


Report = Table | Figure | Claims
Product = OfDataset | OfRun | LayerTimes | Calibration | ModelSizes | Report
