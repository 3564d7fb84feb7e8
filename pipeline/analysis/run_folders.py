"""The one reader of run folders: scores, curves, costs and probes, for claims, tables, figures and the site.

A file that is missing is a run that was not run. Methods return None for it where a report can leave a number out,
and raise `NotRun` where it cannot.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from pipeline.analysis.evidence import Sample, bootstrap_sample
from pipeline.analysis.training_curves import (
    BranchCurve,
    LossCurve,
    Stack,
    branch_curves,
    loss_curve,
    with_training_losses,
)
from pipeline.analysis.view import Experiment, PaperView, ScoredSplits
from pipeline.config import DecodingConfig
from pipeline.core import artifacts
from pipeline.core.digests import noted_digest
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.layout import COST_FILE, path_in_run
from pipeline.core.records.outputs import (
    AlignmentMaps,
    AttentionMap,
    Decoded,
    LayerCosts,
    PaperSizes,
    ScoreFile,
)
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.data.sequence_store import TokenStore
from pipeline.metrics import metric_named, read_statistics
from pipeline.metrics.error_rates import LogLikelihoods

AVERAGING = ("averaged", "average_last")
"""Settings of a decoding that choose its weights."""


class NotRun(Exception):
    """An artifact that a report needs is missing."""


@dataclass(frozen=True)
class Measurement:
    """The score of one table cell over seeds (and decodings, if several stand for one)."""

    values: list[float]
    low: float | None
    high: float | None
    test_set: str
    signature: str

    @property
    def mean(self) -> float:
        """Return the mean over seeds and decodings."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """Return the standard deviation over seeds and decodings; None for a single value, or if one is infinite."""
        return statistics.stdev(self.values) if len(self.values) > 1 and np.isfinite(self.values).all() else None


class RunFolders:
    """Reader of the run folders of one paper, which reads each `done.json`, score, loss curve and sample once.

    Args:
        view: The paper at one scale.
    """

    def __init__(self, view: PaperView):
        self.view, self.layout = view, view.layout
        self._trained: dict[artifacts.RunId, TrainedRun | None] = {}
        self._scores: dict[artifacts.Score, ScoreFile | None] = {}
        self._statistics: dict[tuple[Path, str], np.ndarray] = {}
        self._curves: dict[artifacts.RunId, LossCurve] = {}
        self._samples: dict[tuple[object, ...], Sample] = {}

    def require(self, artifact: artifacts.Artifact) -> Path:
        """Return the path of an artifact.

        Raises:
            NotRun: It is missing.
        """
        return present(self.layout.path(artifact))

    def trained(self, run: artifacts.RunId) -> TrainedRun | None:
        """Read the record of a finished training."""
        if run not in self._trained:
            self._trained[run] = TrainedRun.read_if_there(self.layout.path(artifacts.Trained(run)))
        return self._trained[run]

    def cost(self, run: artifacts.RunId) -> TrainingCost | None:
        """Read the cost of a training."""
        return TrainingCost.read_if_there(self.layout.run(run) / COST_FILE)

    def required_cost(self, run: artifacts.RunId) -> TrainingCost:
        """Return the cost of a training.

        Raises:
            NotRun: It is missing.
        """
        return TrainingCost.read(present(self.layout.run(run) / COST_FILE))

    @property
    def layer_costs(self) -> LayerCosts | None:
        """Read what the stage `layer-times` measured at this scale."""
        return LayerCosts.read_if_there(self.layout.path(artifacts.LayerTimes()))

    @cached_property
    def model_sizes(self) -> dict[tuple[str, int], int]:
        """Return parameters at the paper's size by system and vocabulary; empty if they were not counted."""
        counted = PaperSizes.read_if_there(self.layout.path(artifacts.ModelSizes(self.view.paper)))
        return {(size.system, size.vocab): size.parameters for size in counted.sizes} if counted else {}

    # Curves of finished trainings and probes of their models. A missing file raises NotRun.

    def loss_curve(self, run: artifacts.RunId) -> LossCurve:
        """Read the loss curve of a finished training."""
        if run not in self._curves:
            self._curves[run] = loss_curve(self.require(artifacts.Trained(run)).parent)
        return self._curves[run]

    def fit_curve(self, run: artifacts.RunId) -> LossCurve:
        """Return the loss curve of a finished training, with a training loss at every point.

        Raises:
            NotRun: The training is not finished, or its training loss was not measured.
        """
        try:
            return with_training_losses(self.loss_curve(run), self.layout.run(run))
        except UserError as error:
            raise NotRun(str(error)) from error

    def branch_curves(self, run: artifacts.RunId, layer: int, stack: Stack = "encoder") -> list[BranchCurve]:
        """Return the curves of kappa and alpha of one layer, from 1 or else the last, of a finished training."""
        return branch_curves(self.require(artifacts.Trained(run)).parent, layer, stack)

    def gates(self, run: artifacts.RunId, name: str) -> np.ndarray:
        """Return gates (N, 2) by `<channel>.<kind of words>`: for each sentence the sum of z and the words."""
        return read_statistics(self.require(artifacts.Gates(run)), name)

    def attention_map(self, artifact: artifacts.AttentionMaps) -> AttentionMap:
        """Read the attention weights of one sentence."""
        return AttentionMap.read(self.require(artifact))

    def alignment_maps(self, artifact: artifacts.Alignments) -> AlignmentMaps:
        """Read the alignments of one utterance at several checkpoints."""
        return AlignmentMaps.read(self.require(artifact))

    def score(self, artifact: artifacts.Score) -> ScoreFile | None:
        """Return a score file; None if the output was not scored, or not as its decoding is now.

        Raises:
            UserError: It is of other weights than the run's final ones.
        """
        if artifact not in self._scores:
            path = self.layout.path(artifact)
            score, trained = ScoreFile.read_if_there(path), self.trained(artifact.run)
            if score and trained:
                score.require_training(trained.weights_digest, path)
            outdated = score and (changed_decoding(self.view.experiment, artifact) or is_outdated(path, score))
            self._scores[artifact] = None if outdated else score
        return self._scores[artifact]

    def score_paths(self, run: artifacts.RunId, scored: ScoredSplits, decodings: Sequence[str]) -> list[Path]:
        """Return the score files of a run: for each decoding, those of all splits.

        Raises:
            NotRun: One is missing.
            UserError: One is of other weights than the run's final ones.
        """
        wanted = self.view.scores(run, scored, decodings)
        paths = [self.layout.path(artifact) for artifact in wanted]
        scores = [self.score(artifact) for artifact in wanted]
        if None in scores:
            unscored = scores.index(None)
            changed = ", ".join(changed_decoding(self.view.experiment, wanted[unscored]))
            absent = "is of an earlier output" if paths[unscored].exists() else "is not there"
            raise NotRun(f"{paths[unscored]} {f'was not decoded with this {changed}' if changed else absent}")
        return paths

    def statistics(
        self, runs: Sequence[artifacts.RunId], scored: ScoredSplits, decodings: Sequence[str]
    ) -> list[list[np.ndarray]]:
        """Return the sentence statistics of each run, shape (N, F): for each decoding, those of all splits.

        Raises:
            NotRun: A score file is missing.
        """
        paths = (self.score_paths(run, scored, decodings) for run in runs)
        return [[self._rows(path, scored.metric) for path in of_run] for of_run in paths]

    def _rows(self, path: Path, metric: str) -> np.ndarray:
        """Return the sentence statistics of a metric in a score file, shape (N, F)."""
        if (path, metric) not in self._statistics:
            self._statistics[path, metric] = rows = read_statistics(path, metric)
            rows.setflags(write=False)  # callers share it
        return self._statistics[path, metric]

    def measurement(
        self, runs: Sequence[artifacts.RunId], decodings: Sequence[str], scored: ScoredSplits
    ) -> Measurement | None:
        """Return the score of a table cell; None as long as a score file is missing.

        Raises:
            UserError: A score file does not have the metric, or seeds were scored differently.
        """
        wanted = [self.view.scores(run, scored, [decoding]) for run in runs for decoding in decodings]
        if not (scores := self.all_scores(wanted)):
            return None
        for artifact, score in zip(chain(*wanted), chain(*scores), strict=True):
            if scored.metric not in score.metrics:
                there_are = ", ".join(score.metrics)
                raise UserError(
                    f"{self.layout.path(artifact)}: no metric {scored.metric!r}; there are {there_are}; if it is new, "
                    "add `-R score` to the `snakemake` command to score finished runs again"
                )
        require_one_basis(scores, scored.metric, system_of(runs[0]))
        metrics = [[score.metrics[scored.metric] for score in several] for several in scores]
        low, high = (mean_if_known(getattr(entry, side) for entry in chain(*metrics)) for side in ("low", "high"))
        if len(scored.splits) > 1:
            low, high = self.sample(runs, decodings, scored).interval
        return Measurement(
            values=[statistics.fmean(entry.value for entry in several) for several in metrics],
            low=low,
            high=high,
            test_set=", ".join(score.test_set_in_words for score in scores[0]),
            signature=metrics[0][0].signature,
        )

    def all_scores(self, wanted: Sequence[Sequence[artifacts.Score]]) -> list[list[ScoreFile]]:
        """Return the score files of `wanted`, grouped like them; empty if one is missing."""
        found = [[self.score(artifact) for artifact in several] for several in wanted]
        scores = [[score for score in several if score is not None] for several in found]
        return scores if scores == found else []

    def mean_if_scored(
        self, runs: Sequence[artifacts.RunId], decodings: Sequence[str], scored: ScoredSplits
    ) -> tuple[float, str] | None:
        """Return mean and signature; None if a score file lacks the metric or seeds were scored differently."""
        scores = self.all_scores([self.view.scores(run, scored, decodings) for run in runs])
        if not scores or any(scored.metric not in score.metrics for score in chain(*scores)):
            return None
        found = [[score.metrics[scored.metric] for score in several] for several in scores]
        signatures = {tuple(entry.signature for entry in several) for several in found}
        mean = statistics.fmean(entry.value for entry in chain(*found))
        return (mean, found[0][0].signature) if len(signatures) == 1 else None

    def sample(self, runs: Sequence[artifacts.RunId], decodings: Sequence[str], scored: ScoredSplits) -> Sample:
        """Return the metric of each seed and on resampled sentences, without the noise of its family.

        Raises:
            UserError: A score is missing.
        """
        key = (*runs, *decodings, scored.metric, scored.dataset, *scored.splits, scored.scored_on)
        if key not in self._samples:
            self._samples[key] = self._sample(runs, decodings, scored)
        return self._samples[key]

    def _sample(self, runs: Sequence[artifacts.RunId], decodings: Sequence[str], scored: ScoredSplits) -> Sample:
        paths = [[self.layout.path(artifact) for artifact in self.view.scores(run, scored, decodings)] for run in runs]
        rows = [[self._rows(path, scored.metric) for path in several] for several in paths]
        files = [ScoreFile.read(path) for path in paths[0]]
        test_sets = ", ".join(dict.fromkeys(file.test_set for file in files))
        total, sets = metric_named(scored.metric).total, len(scored.splits)
        found = bootstrap_sample(rows, total, test_sets, system_of(runs[0]), sets)
        return replace(found, basis=basis(files, scored.metric))

    def source_lengths(self, dataset: str, splits: Iterable[str]) -> np.ndarray:
        """Return the lengths (N,) of source sentences of `splits`, in this order, in entries of the vocabulary."""
        corpus = self.layout.corpus(dataset)
        return np.concatenate([TokenStore(corpus / f"encoded/{split}.src").lengths() for split in splits])

    def longest_trained_on(self, run: artifacts.RunId) -> int:
        """Return the length of the longest source sentence that a run was trained on, in words or subwords."""
        corpus, longest = self.layout.corpus(run.dataset), self.view.experiment.run_spec(run).training.max_length
        src, tgt = (TokenStore(corpus / f"encoded/train.{side}").lengths() for side in ("src", "tgt"))
        return int(src[np.maximum(src, tgt) <= longest].max())


def changed_decoding(experiment: Experiment, artifact: artifacts.Score) -> list[str]:
    """Return the changed settings of a decoding, since the output behind a score was decoded.

    They include `language_model` if that is trained with other settings, and `dataset` if other data is transcribed.
    """
    run, layout = artifact.run, experiment.layout
    record = decoded_record(layout.run(run), artifact)
    config = experiment.decoding(run.paper, run.system, artifact.decoding)
    changed = changed_in(layout.run(run), artifact, config, record)
    if record and record.language_model and "language_model" not in changed:
        other = experiment.decoding_language_model(run, artifact.decoding)
        is_same = other and layout.run(other).name == Path(record.language_model).name
        changed += [] if is_same else ["language_model"]
    if record and record.corpus and artifact.scored_on:
        is_same = layout.corpus(artifact.scored_on).name == Path(record.corpus).parent.name
        changed += [] if is_same else ["dataset"]
    return changed


def changed_in(
    run_folder: Path, artifact: artifacts.Score, config: DecodingConfig, record: Decoded | None
) -> list[str]:
    """Return the settings of a decoding that differ from those behind a score.

    A perplexity has no record of its settings. It depends on the averaged weights alone, as does a translation by them.

    Args:
        run_folder: Folder of the run.
        artifact: The score.
        config: The decoding of its name.
        record: Record of the output behind the score, by `decoded_record`.
    """
    changed = config.changed_since(record.decoding) if record else []
    if artifact.measure == LogLikelihoods.folder and changed:
        score = ScoreFile.read_if_there(run_folder / path_in_run(artifact))
        is_same = score and record and score.weights == record.weights
        return [name for name in changed if name in AVERAGING] if is_same else []
    return changed


def decoded_record(run_folder: Path, artifact: artifacts.Score) -> Decoded | None:
    """Return the record of the output behind a score; None if there is none."""
    return Decoded.read_if_there((run_folder / path_in_run(scored_output(artifact))).with_suffix(".json"))


def is_outdated(path: Path, score: ScoreFile) -> bool:
    """Return whether the output behind the `score` in `path`, a file of its run, was decoded again since."""
    inputs = ((Path(file).parts[-3:], digest) for file, digest in score.inputs.items())
    return any(
        noted_digest(path.parents[2].joinpath(*place)) not in (None, digest)
        for place, digest in inputs
        if place[0] in ("translations", "transcripts")
    )


def scored_output(artifact: artifacts.Score) -> artifacts.SplitArtifact:
    """Return the output behind a score. Parses have the path of translations."""
    run, names = artifact.run, (artifact.decoding, artifact.split)
    if artifact.scored_on:
        return artifacts.Transcript(run, *names, artifact.scored_on)
    return artifacts.Translation(run, *names)


def system_of(run: artifacts.RunId) -> str:
    """Return the folder that the runs of a system share."""
    return run.folder.rpartition("/")[0]


def present(path: Path) -> Path:
    """Return the path of a file that must exist.

    Raises:
        NotRun: There is no file.
    """
    if not path.exists():
        raise NotRun(f"{path} is not there")
    return path


def basis(scores: Iterable[ScoreFile], metric: str) -> str:
    """Return in words what comparable scores of two systems have in common besides the test set."""
    return ", ".join(
        dict.fromkeys(f"references {score.references[:12]} by {score.basis(metric)[2]}" for score in scores)
    )


def require_one_basis(scores: Iterable[Iterable[ScoreFile]], metric: str, name: str) -> None:
    """Check that the seeds of a system were scored alike, split by split.

    Args:
        scores: For each seed, its score files.
        metric: The metric to compare.
        name: Name of the system for the message.

    Raises:
        UserError: They were not.
    """
    for split in zip(*scores, strict=True):
        if len({score.basis(metric) for score in split if metric in score.metrics}) > 1:
            raise UserError(
                f"{name}: seeds were scored on different references of {split[0].split}, or their {metric} was "
                f"computed in different ways; delete the older score files, {REPAIR}"
            )


def mean_if_known(values: Iterable[float | None]) -> float | None:
    """Return the mean, or None if a value is None."""
    known = list(values)
    return None if None in known else statistics.fmean(value for value in known if value is not None)
