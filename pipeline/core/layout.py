"""Every path in the work folder and in results/.

The folder of a run or corpus ends in digits of a digest of its settings and data (papers/content.py). Other settings or
data have another folder beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.core import artifacts

RESULTS = Path("results")
SITE = RESULTS / "site/index.html"
"""The first page of the site, which covers all scales."""
RUN_FILE, DONE_FILE, STATE_FILE, LOCK_FILE = "run.yaml", "done.json", "state.jsonl", "run.lock"
COST_FILE, PROGRESS_FILE, SAMPLES_FILE = "cost.json", "progress.jsonl", "samples.jsonl"
TELEMETRY_FILES, EVENTS = (COST_FILE, PROGRESS_FILE, SAMPLES_FILE), "events"
WEIGHTS_FILE = "model.safetensors"
"""Files of a run's folder: what training reads, its records, its telemetry, its weights."""
OLD_RUN = ".before-"  # in the name of a folder beside a run: the run with its former settings
OUTPUTS_FILE, SCORES_FILE = "outputs.json", "scores.json"
"""The two manifests of a decoding, in the folder `{run}/{decoding}`."""
CORPUS_FILE = "corpus.json"
"""The record of an encoded corpus, in its folder."""


@dataclass(frozen=True)
class Layout:
    """The paths of one work folder and scale.

    Attributes:
        work: The work folder.
        run_content: Returns the content digits of a run's folder.
        corpus_content: Returns the content digits of a dataset's corpus.
    """

    work: Path
    scale: str
    run_content: Callable[[artifacts.RunId], str]
    corpus_content: Callable[[str], str]
    _run_folders: dict[artifacts.RunId, Path] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def downloads(self) -> Path:
        """Return the folder of fetched files."""
        return self.work / "downloads"

    @property
    def scale_folder(self) -> Path:
        """Return the folder of the scale: runs, measurements, logs."""
        return self.work / self.scale

    @property
    def runs(self) -> Path:
        """Return the folder of all runs of the scale."""
        return self.scale_folder / "runs"

    @property
    def results(self) -> Path:
        """Return the folder of the scale's results."""
        return RESULTS / self.scale

    def corpus(self, dataset: str) -> Path:
        """Return the folder of a corpus; scales share it."""
        return self.work / "corpora" / f"{dataset}-{self.corpus_content(dataset)}"

    def run(self, run: artifacts.RunId) -> Path:
        """Return the folder of a run."""
        if run not in self._run_folders:
            self._run_folders[run] = self.runs / f"{run.folder}-{self.run_content(run)}"
        return self._run_folders[run]

    def weights(self, run: artifacts.RunId) -> Path:
        """Return the final weights of a training. No rule declares them, so that they survive its failure."""
        return self.run(run) / WEIGHTS_FILE

    def log(self, artifact: artifacts.Artifact, stage: str) -> Path:
        """Return the log, such as `decode-final`, of the `stage` that makes an `artifact`, which decides the folder."""
        match artifact:
            case artifacts.DatasetArtifact():
                folder = self.corpus(artifact.dataset)
            case artifacts.RunArtifact():
                folder = self.run(artifact.run)
            case _:
                folder = self.scale_folder
        return folder / "logs" / f"{stage}.log"

    def path(self, artifact: artifacts.Artifact) -> Path:
        """Return the file whose presence means that an artifact is made.

        Raises:
            TypeError: The artifact has no path.
        """
        match artifact:
            case artifacts.DatasetArtifact():
                return self.corpus(artifact.dataset) / IN_CORPUS[type(artifact)]
            case artifacts.RunArtifact():
                return self.run(artifact.run) / path_in_run(artifact)
            case artifacts.LayerTimes():
                return self.scale_folder / "layer_times.json"
            case artifacts.Calibration():
                return self.scale_folder / "calibration.json"
            case artifacts.ModelSizes(paper):
                return self.scale_folder / "model_sizes" / f"{paper}.json"
            case artifacts.Table(paper, table):
                return self.results / paper / f"{table}.csv"
            case artifacts.Figure(paper, figure):
                return self.results / paper / f"{figure}.svg"
            case artifacts.Claims(paper):
                return self.results / paper / "claims.csv"
        raise TypeError(f"no path of {artifact!r}")

    def target(self, artifact: artifacts.Artifact) -> Path:
        """Return the file that a rule declares for `artifact`: its manifest if it has one."""
        return self.path(artifacts.manifest_of(artifact))

    def text(self, artifact: artifacts.Translation) -> Path:
        """Return the detokenised version of a translation."""
        return self.path(artifact).with_suffix(".txt")

    def trees(self, artifact: artifacts.Score, words: str = "") -> Path:
        """Return the trees that a score, `artifact`, was computed from; `words` is "", or `.aligned`."""
        return self.run(artifact.run) / f"parses/{artifact.decoding}/{artifact.split}{words}.trees"


IN_CORPUS: dict[type[artifacts.DatasetArtifact], str] = {
    artifacts.Raw: "raw.done",
    artifacts.Spoken: "spoken.json",
    artifacts.Prepared: "prepared/report.json",
    artifacts.Vocabulary: "subwords.model",
    artifacts.Encoded: f"encoded/{CORPUS_FILE}",
}
"""Paths of a dataset's artifacts in the folder of its corpus."""


def path_in_run(artifact: artifacts.RunArtifact) -> str:
    """Return the path of an artifact in the folder of its run.

    Raises:
        TypeError: The artifact has no path.
    """
    match artifact:
        case artifacts.Trained():
            return DONE_FILE
        case artifacts.Outputs(_, decoding):
            return f"{decoding}/{OUTPUTS_FILE}"
        case artifacts.Scores(_, decoding):
            return f"{decoding}/{SCORES_FILE}"
        case artifacts.Gates():
            return "gates.json"
        case artifacts.Averaged(_, decoding):
            return f"averaged/{decoding}.safetensors"
        case artifacts.Tuned(_, decoding):
            return f"tuned/{decoding}.json"
        case artifacts.Translation(_, decoding, split) | artifacts.Parse(_, decoding, split):
            return f"translations/{decoding}/{split}.tok"
        case artifacts.Transcript(_, decoding, split, scored_on):
            return f"transcripts/{decoding}/{split}@{scored_on}.txt"
        case artifacts.Score(_, measure, decoding, split, scored_on):
            return f"{measure}/{decoding}/{f'{split}@{scored_on}' if scored_on else split}.json"
        case artifacts.AttentionMaps(_, decoding, split, choice):
            return f"attention/{decoding}/{split}-{choice}.json"
        case artifacts.Alignments(_, split):
            return f"alignments/{split}.json"
    raise TypeError(f"no path of {artifact!r}")
