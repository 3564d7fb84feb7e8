"""What was measured for the cells of a table: scores, parameters and costs read from run folders."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from pipeline.analysis.evidence import Sample, sample
from pipeline.analysis.scored import ScoredSplits
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import LayerTimes, ModelSizes, RunId, Score, Trained
from pipeline.core.errors import UserError
from pipeline.core.layout import COST_FILE
from pipeline.core.records.probes import LayerCosts
from pipeline.core.records.probes import ModelSizes as ModelSizesFile
from pipeline.core.records.scores import ScoreFile
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.metrics import metric_named
from pipeline.metrics.statistics.score_file import read_statistics


@dataclass(frozen=True)
class Measurement:
    """One cell over seeds (and decodings, where several stand for one)."""

    values: list[float]
    low: float | None
    high: float | None
    test_set: str
    signature: str

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for a single value."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


class Measured:
    """What the stages left in the run folders behind one paper. A file that is not there is a run not run."""

    def __init__(self, view: PaperView):
        self.view, self.layout = view, view.layout

    def trained(self, run: RunId) -> TrainedRun | None:
        return TrainedRun.read_if_there(self.layout.path(Trained(run)))

    def cost(self, run: RunId) -> TrainingCost | None:
        return TrainingCost.read_if_there(self.layout.run(run) / COST_FILE)

    @property
    def layer_times(self) -> LayerCosts | None:
        """What the stage layer-times measured at this scale."""
        return LayerCosts.read_if_there(self.layout.path(LayerTimes()))

    def score(self, product: Score) -> ScoreFile | None:
        """A score file. Raises UserError when it is of other weights than the run's training ended in."""
        path = self.layout.path(product)
        score, trained = ScoreFile.read_if_there(path), self.trained(product.run)
        if score and trained:
            score.require_training(trained.weights_digest, path)
        return score

    @cached_property
    def model_sizes(self) -> dict[tuple[str, int], int]:
        """Parameters at the paper's size by system and vocabulary; none where they were not counted."""
        counted = ModelSizesFile.read_if_there(self.layout.path(ModelSizes(self.view.paper)))
        return {(one.system, one.vocab): one.parameters for one in counted.sizes} if counted else {}

    def measure(self, runs: Sequence[RunId], decodings: Sequence[str], scored: ScoredSplits) -> Measurement | None:
        """Scores of some runs, each under every decoding; None as long as one is missing."""
        products = [self.view.scores(run, scored, [decoding]) for run in runs for decoding in decodings]
        records = [[self.score(product) for product in several] for several in products]
        scores = [[record for record in several if record is not None] for several in records]
        if not scores or scores != records:
            return None
        for product, score in zip(chain(*products), chain(*scores), strict=True):
            if scored.metric not in score.metrics:
                there_are = ", ".join(score.metrics)
                raise UserError(f"{self.layout.path(product)}: no metric {scored.metric!r}; there are {there_are}")
        require_one_basis(scores, scored.metric, runs[0].folder.rpartition("/")[0])
        metrics = [[score.metrics[scored.metric] for score in several] for several in scores]
        low, high = (mean_of(getattr(entry, side) for entry in chain(*metrics)) for side in ("low", "high"))
        if len(scored.splits) > 1:
            low, high = self.sample(runs, decodings, scored).interval
        return Measurement(
            values=[statistics.fmean(entry.value for entry in several) for several in metrics],
            low=low,
            high=high,
            test_set=", ".join(score.test_set_in_words for score in scores[0]),
            signature=metrics[0][0].signature,
        )

    def sample(self, runs: Sequence[RunId], decodings: Sequence[str], scored: ScoredSplits) -> Sample:
        """The metric over seeds, with its draws. Raises UserError when a score is missing."""
        paths = [[self.layout.path(product) for product in self.view.scores(run, scored, decodings)] for run in runs]
        rows = [[read_statistics(path, scored.metric) for path in several] for several in paths]
        files = [ScoreFile.read(path) for path in paths[0]]
        test_sets, system = dict.fromkeys(one.test_set for one in files), runs[0].folder.rpartition("/")[0]
        found = sample(rows, metric_named(scored.metric).total, ", ".join(test_sets), system)
        return replace(found, basis=basis(files, scored.metric))


def basis(scores: Iterable[ScoreFile], metric: str) -> str:
    """What scores of other systems must have in common with those of one, beside the test sets, in words."""
    return ", ".join(dict.fromkeys(f"references {one.references[:12]} by {one.basis(metric)[2]}" for one in scores))


def require_one_basis(scores: Iterable[Iterable[ScoreFile]], metric: str, name: str) -> None:
    """Raises UserError unless the seeds of a system were scored alike, split by split. scores: a row a seed."""
    for split in zip(*scores, strict=True):
        if len({score.basis(metric) for score in split if metric in score.metrics}) > 1:
            raise UserError(
                f"{name}: seeds were scored on different references of {split[0].split}, or {metric} in various ways; "
                "remove the older score files, then the same command again"
            )


def mean_of(values: Iterable[float | None]) -> float | None:
    """Mean, or None when a value is missing."""
    known = list(values)
    return None if None in known else statistics.fmean(value for value in known if value is not None)
