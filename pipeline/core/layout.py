"""Every path under the work folder and under results/, once.

Runs and corpora lie in folders that end in a few digits of what they are made of (papers/content.py): with other
settings or data they are others, which lie beside them, wherever the work folder is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.core import artifacts as products

RESULTS = Path("results")
RUN_FILE, DONE_FILE = "run.yaml", "done.json"
COST_FILE, PROGRESS_FILE, SAMPLES_FILE = "cost.json", "progress.jsonl", "samples.jsonl"
TOLD, EVENTS = (COST_FILE, PROGRESS_FILE, SAMPLES_FILE), "events"
WEIGHTS_FILE = "model.safetensors"
"""In the folder of a run: what training reads, its records, what it tells of itself, its weights."""
OLD_RUN = ".before-"  # in the name of a folder beside a run's: what it was before its settings changed
OUTPUTS_FILE, SCORES_FILE = "outputs.json", "scores.json"
"""The two manifests of a decoding, in the folder `{run}/{decoding}`."""
DECODINGS_FILE = "decodings.json"
"""In the folder of a scale: how each run is decoded, for the end of its training job."""
CORPUS_FILE = "corpus.json"
"""In the folder of an encoded corpus: its record."""


@dataclass(frozen=True)
class Layout:
    """Where everything lies for one work folder and scale."""

    work: Path
    scale: str
    run_content: Callable[[products.RunId], str]
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
    def decodings(self) -> Path:
        """The file that tells training jobs how their runs are decoded."""
        return self.scale_folder / DECODINGS_FILE

    @property
    def runs(self) -> Path:
        return self.scale_folder / "runs"

    @property
    def results(self) -> Path:
        return RESULTS / self.scale

    def corpus(self, dataset: str) -> Path:
        """The folder of a corpus; scales share it."""
        return self.work / "corpora" / f"{dataset}-{self.corpus_content(dataset)}"

    def run(self, run: products.RunId) -> Path:
        """The folder of a run."""
        return self.runs / f"{run.folder}-{self.run_content(run)}"

    def weights(self, run: products.RunId) -> Path:
        """A training's final weights; no rule declares them, so that they survive its failure."""
        return self.run(run) / WEIGHTS_FILE

    def log(self, product: products.Product, stage: str, *distinct: str) -> Path:
        """Of the stage that makes `product`; distinct: what tells its logs in one folder apart."""
        match product:
            case products.OfDataset():
                folder = self.corpus(product.dataset)
            case products.OfRun():
                folder = self.run(product.run)
            case _:
                folder = self.scale_folder
        return folder / "logs" / ("-".join((stage, *distinct)) + ".log")

    def job(self, product: products.Product, stage: str, *distinct: str) -> Path:
        """The folder of the cluster job that makes `product`."""
        folder = self.run(product.run) if isinstance(product, products.OfRun) else self.scale_folder
        return folder / "jobs" / "-".join((stage, *distinct))

    def path(self, product: products.Product) -> Path:
        """The file that says that `product` is there."""
        match product:
            case products.OfDataset():
                return self.corpus(product.dataset) / IN_CORPUS[type(product)]
            case products.OfRun():
                return self.run(product.run) / path_in_run(product)
            case products.LayerTimes():
                return self.scale_folder / "layer_times.json"
            case products.Calibration():
                return self.scale_folder / "calibration.json"
            case products.ModelSizes(paper):
                return self.scale_folder / "model_sizes" / f"{paper}.json"
            case products.Table(paper, table):
                return self.results / paper / f"{table}.csv"
            case products.Figure(paper, figure):
                return self.results / paper / f"{figure}.svg"
            case products.Claims(paper):
                return self.results / paper / "claims.csv"
        raise TypeError(f"no path of {product!r}")

    def target(self, product: products.Product) -> Path:
        """Return the file that a rule declares for `product`: its manifest's if it has one."""
        return self.path(products.manifest_of(product))

    def text(self, product: products.Translation) -> Path:
        """A translation's detokenised twin."""
        return self.path(product).with_suffix(".txt")

    def trees(self, product: products.Score, words: str = "") -> Path:
        """The trees that a score of parses was counted on. words: `.aligned`, or set on tags in order."""
        return self.run(product.run) / f"parses/{product.decoding}/{product.split}{words}.trees"


IN_CORPUS: dict[type[products.OfDataset], str] = {
    products.Raw: "raw.done",
    products.Spoken: "spoken.json",
    products.Prepared: "prepared/report.json",
    products.Vocabulary: "subwords.model",
    products.Encoded: f"encoded/{CORPUS_FILE}",
}
"""Of products of a dataset, in the folder of its corpus."""


def path_in_run(product: products.OfRun) -> str:
    """Of products of a run, in its folder."""
    match product:
        case products.Trained():
            return DONE_FILE
        case products.Outputs(_, decoding):
            return f"{decoding}/{OUTPUTS_FILE}"
        case products.Scores(_, decoding):
            return f"{decoding}/{SCORES_FILE}"
        case products.Gates():
            return "gates.json"
        case products.Averaged(_, decoding):
            return f"averaged/{decoding}.safetensors"
        case products.Tuned(_, decoding):
            return f"tuned/{decoding}.json"
        case products.Translation(_, decoding, split) | products.Parse(_, decoding, split):
            return f"translations/{decoding}/{split}.tok"
        case products.Transcript(_, decoding, split, scored_on):
            return f"transcripts/{decoding}/{split}@{scored_on}.txt"
        case products.Score(_, measure, decoding, split, scored_on):
            return f"{measure}/{decoding}/{f'{split}@{scored_on}' if scored_on else split}.json"
        case products.AttentionMaps(_, decoding, split, choice):
            return f"attention/{decoding}/{split}-{choice}.json"
        case products.Alignments(_, split):
            return f"alignments/{split}.json"
    raise TypeError(f"no path of {product!r}")
