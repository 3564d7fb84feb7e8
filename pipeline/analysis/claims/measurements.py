"""What claims are judged by, read from the folders of the runs that they are about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline.analysis.claims.pools import NotRun, Pools, Values
from pipeline.analysis.claims.terms import NamedScore, Scores, Term
from pipeline.analysis.evidence import Sample, sample, seed_scores, trainings
from pipeline.analysis.layer_times import LayerTimes
from pipeline.analysis.lengths import longest_trained_on, source_lengths
from pipeline.analysis.measured import Measured, require_one_basis
from pipeline.analysis.training_curves import LossCurve, fit_curve, loss_curve
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Gates, Product, RunId, Trained
from pipeline.core.artifacts import LayerTimes as LayerTimesFile
from pipeline.core.errors import UserError
from pipeline.core.layout import COST_FILE
from pipeline.core.records.scores import ScoreFile
from pipeline.core.records.training import TrainingCost
from pipeline.metrics import metric_named
from pipeline.metrics.statistics.score_file import read_statistics

OfRuns = Callable[[list[RunId]], Values]
"""A number of each of some trainings."""
SplitsBySeed = list[dict[str, np.ndarray]]
"""Each seed's statistics (N, F) of every split."""


@dataclass(frozen=True)
class Measurements:
    """Scores, losses and times of one paper's runs; what is not there raises `NotRun`."""

    view: PaperView
    scores: Scores
    pools: Pools

    def path(self, product: Product) -> Path:
        return present(self.view.layout.path(product))

    def sample(self, term: Term, score: NamedScore) -> Sample:
        """A term's metric over seeds, with its draws and the noise of its kind."""
        runs = self.view.runs(term.system, score.dataset)
        decodings = term.decodings or [score.decoding]
        files = [[ScoreFile.read(path) for path in self.score_paths(run, score, decodings)] for run in runs]
        require_one_basis(files, score.metric, f"{self.view.paper}/{term.system}")
        found, total = Measured(self.view).sample(runs, decodings, score), metric_named(score.metric).total
        pool, noise = self.pools.pool(
            term.system,
            score.dataset,
            score.metric,
            lambda system: seed_scores(self.statistics(system, score, [score.decoding]), total),
            f"{score.splits} of {score.scored_on}, {score.decoding}",
        )
        training = self.pools.training(term.system, score.dataset)
        return replace(found, system=training, pool=pool, noise=noise or found.noise)

    def mean_score(self, system: str, score: NamedScore) -> float:
        """Under the score's own decoding."""
        rows = self.statistics(system, score, [score.decoding])
        return float(seed_scores(rows, metric_named(score.metric).total).mean())

    def statistics(self, system: str, score: NamedScore, decodings: list[str]) -> list[list[np.ndarray]]:
        """Of each seed, of each decoding and split in a row."""
        paths = (self.score_paths(run, score, decodings) for run in self.view.runs(system, score.dataset))
        return [[read_statistics(path, score.metric) for path in several] for several in paths]

    def trainings(
        self, system: str, dataset: str, quantity: str, of_each: OfRuns, own: Values = (), of: str = ""
    ) -> Sample:
        """A number of each training of a system, with the noise of its kind.

        quantity: its name in what was measured of noise; of_each: what it is of any trainings; own: what it is of
        these, where that is something else; of: as Pools.pool has it.
        """

        def values(name: str) -> Values:
            return of_each(self.view.runs(name, dataset))

        pool, noise = self.pools.pool(system, dataset, quantity, values, of)
        return trainings(own or values(system), self.pools.training(system, dataset), pool, noise)

    def score_paths(self, run: RunId, score: NamedScore, decodings: list[str]) -> list[Path]:
        """Each decoding's splits in a row. Raises UserError when one is of other weights than the run's."""
        products = self.view.scores(run, score, decodings)
        folders = Measured(self.view)
        for product in products:
            folders.score(product)
        return [self.path(product) for product in products]

    def statistics_by_split(self, system: str, score: NamedScore) -> SplitsBySeed:
        rows = self.statistics(system, score, [score.decoding])
        return [dict(zip(score.splits, of_seed, strict=True)) for of_seed in rows]

    def score_of_part(self, system: str, rows: Sequence[np.ndarray], chosen: np.ndarray, score: NamedScore) -> Sample:
        """The score of the rows `chosen` (N,) of each seed's statistics (N, F) of a system.

        All parts of a set have the same resamples: the others count as zero.
        """
        parts = [[one * chosen[:, None]] for one in rows]
        training = self.pools.training(system, score.dataset)
        return sample(parts, metric_named(score.metric).total, score.dataset, training)

    def lengths(self, system: str, score: NamedScore, splits: Sequence[str]) -> np.ndarray:
        """(N,) of the sources of some splits in a row."""
        return source_lengths(self.view.layout.corpus(self.view.runs(system, score.dataset)[0].dataset), splits)

    def longest_trained_on(self, system: str, score: NamedScore) -> int:
        run = self.view.runs(system, score.dataset)[0]
        max_length = self.view.experiment.run_spec(run).training.max_length
        return longest_trained_on(self.view.layout.corpus(run.dataset), max_length)

    def run_folder(self, run: RunId) -> Path:
        """Of a run whose training has ended."""
        return self.path(Trained(run)).parent

    def curve(self, run: RunId) -> LossCurve:
        return loss_curve(self.run_folder(run))

    def fit_curve(self, run: RunId) -> LossCurve:
        try:
            return fit_curve(self.run_folder(run))
        except UserError as error:
            raise NotRun(str(error)) from error

    def cost(self, run: RunId) -> TrainingCost:
        return TrainingCost.read(present(self.view.layout.run(run) / COST_FILE))

    def gates(self, run: RunId, name: str) -> np.ndarray:
        """(N, 2): sum of z and number of words of each sentence. name: `<channel>.<kind of words>`."""
        return read_statistics(self.path(Gates(run)), name)

    def layer_times(self) -> LayerTimes:
        return LayerTimes.read(self.path(LayerTimesFile()))


def of_all_splits(by_seed: SplitsBySeed) -> list[np.ndarray]:
    """Each seed's statistics (N, F), all splits as one set."""
    return [np.concatenate(list(rows.values())) for rows in by_seed]


def present(path: Path) -> Path:
    """Raises NotRun when the file is not there."""
    if not path.exists():
        raise NotRun(f"{path} is not there")
    return path
