"""Every path under the work folder and under results/, once.

Runs and corpora lie in folders that end in a few digits of what they are made of (experiment/content.py): with other
settings or data they are others, which lie beside them, wherever the work folder is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.products import (
    Alignments,
    AttentionMaps,
    Averaged,
    Calibration,
    Claims,
    Encoded,
    Figure,
    Gates,
    LayerTimes,
    ModelSizes,
    OfDataset,
    OfRun,
    Parse,
    Prepared,
    Product,
    Raw,
    RunId,
    Score,
    Specification,
    Spoken,
    Table,
    Trained,
    Transcript,
    Translation,
    Tuned,
    Vocabulary,
)

RESULTS = Path("results")
RUN_FILE, TRAINED_FILE, DONE_FILE = "run.yaml", "trained.json", "done.json"
COST_FILE, PROGRESS_FILE, SAMPLES_FILE = "cost.json", "progress.jsonl", "samples.jsonl"
WEIGHTS_FILE = "model.safetensors"
OLD_RUN = ".before-"  # in the name of a folder beside a run's: what it was before its settings changed
"""In the folder of a run: what training reads, its records, what it cost, its logs, its final weights."""
CORPUS_FILE = "corpus.json"
"""In the folder of an encoded corpus: its record."""


@dataclass(frozen=True)
class Layout:
    """Where everything lies for one work folder and scale."""

    work: Path
    scale: str
    run_content: Callable[[RunId], str]
    corpus_content: Callable[[str], str]
    """What a run, or the corpus of a dataset, is made of, as the digits that end its folder's name."""

    @property
    def downloads(self) -> Path:
        return self.work / "downloads"

    @property
    def scale_folder(self) -> Path:
        """What belongs to the scale: runs, measurements, logs."""
        return self.work / self.scale

    @property
    def runs(self) -> Path:
        return self.scale_folder / "runs"

    @property
    def results(self) -> Path:
        return RESULTS / self.scale

    def corpus(self, dataset: str) -> Path:
        """The folder of a corpus; scales share it."""
        return self.work / "corpora" / f"{dataset}-{self.corpus_content(dataset)}"

    def run(self, run: RunId) -> Path:
        """The folder of a run."""
        return self.runs / f"{run.folder}-{self.run_content(run)}"

    def weights(self, run: RunId) -> Path:
        """A training's final weights; no rule declares them, so that they survive its failure."""
        return self.run(run) / WEIGHTS_FILE

    def log(self, product: Product, stage: str, *distinct: str) -> Path:
        """Of the stage that makes `product`; distinct: what tells its logs in one folder apart."""
        match product:
            case OfDataset():
                folder = self.corpus(product.dataset)
            case OfRun():
                folder = self.run(product.run)
            case _:
                folder = self.scale_folder
        return folder / "logs" / ("-".join((stage, *distinct)) + ".log")

    def job(self, product: Product, stage: str, *distinct: str) -> Path:
        """The folder of the cluster job that makes `product`."""
        folder = self.run(product.run) if isinstance(product, OfRun) else self.scale_folder
        return folder / "jobs" / "-".join((stage, *distinct))

    def path(self, product: Product) -> Path:
        """The file that says that `product` is there."""
        match product:
            case OfDataset():
                return self.corpus(product.dataset) / IN_CORPUS[type(product)]
            case OfRun():
                return self.run(product.run) / path_in_run(product)
            case LayerTimes():
                return self.scale_folder / "layer_times.json"
            case Calibration():
                return self.scale_folder / "calibration.json"
            case ModelSizes(paper):
                return self.scale_folder / "model_sizes" / f"{paper}.json"
            case Table(paper, table):
                return self.results / paper / f"{table}.csv"
            case Figure(paper, figure):
                return self.results / paper / f"{figure}.svg"
            case Claims(paper):
                return self.results / paper / "claims.csv"
        raise TypeError(f"no path of {product!r}")

    def text(self, product: Translation) -> Path:
        """A translation's detokenised twin."""
        return self.path(product).with_suffix(".txt")

    def trees(self, product: Score, words: str = "") -> Path:
        """The trees that a score of parses was counted on. words: `.aligned`, or set on tags in order."""
        return self.run(product.run) / f"parses/{product.decoding}/{product.split}{words}.trees"


IN_CORPUS: dict[type[OfDataset], str] = {
    Raw: "raw.done",
    Spoken: "spoken.json",
    Prepared: "prepared/report.json",
    Vocabulary: "subwords.model",
    Encoded: f"encoded/{CORPUS_FILE}",
}
"""Of products of a dataset, in the folder of its corpus."""


def path_in_run(product: OfRun) -> str:
    """Of products of a run, in its folder."""
    match product:
        case Specification():
            return RUN_FILE
        case Trained():
            return TRAINED_FILE
        case Gates():
            return "gates.json"
        case Averaged(_, decoding):
            return f"averaged/{decoding}.safetensors"
        case Tuned(_, decoding):
            return f"tuned/{decoding}.json"
        case Translation(_, decoding, split) | Parse(_, decoding, split):
            return f"translations/{decoding}/{split}.tok"
        case Transcript(_, decoding, split, scored_on):
            return f"transcripts/{decoding}/{split}@{scored_on}.txt"
        case Score(_, measure, decoding, split, scored_on):
            return f"{measure}/{decoding}/{f'{split}@{scored_on}' if scored_on else split}.json"
        case AttentionMaps(_, decoding, split, choice):
            return f"attention/{decoding}/{split}-{choice}.json"
        case Alignments(_, split):
            return f"alignments/{split}.json"
    raise TypeError(f"no path of {product!r}")
