"""What claims are judged by, read from the folders of the runs that they are about."""

from pathlib import Path

import numpy as np

from pipeline.errors import UserError
from pipeline.evaluation.score_file import metric_named, read_statistics
from pipeline.experiment.claim import AlignmentClaim, CurvesClaim, EqualTimeClaim, Score, StepsClaim, Term
from pipeline.experiment.project import Project
from pipeline.kinds.evidence import Sample, sample
from pipeline.kinds.layer_times import LayerTimes
from pipeline.kinds.lengths import longest_trained_on, source_lengths
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.training_curves import LossCurve, fit_curve, loss_curve
from pipeline.records.scores import ScoreFile


class NotRun(Exception):
    """Something that a claim stands on was not measured."""


class ClaimSources:
    """Scores, losses and times for the claims of one paper; what is not there raises `NotRun`."""

    def __init__(self, project: Project, paper: str):
        self.project, self.paper = project, paper
        self.folders = RunFolders(project)

    def score(self, name: str) -> Score:
        return self.project.claims[self.paper].scores[name]

    def runs(self, system: str, dataset: str) -> list:
        return self.project.runs_of(self.paper, system, dataset)

    def paired(self, claim: StepsClaim | CurvesClaim | EqualTimeClaim | AlignmentClaim) -> list[tuple]:
        """Runs of system and baseline with the same seed."""
        return list(zip(self.runs(claim.system, claim.dataset), self.runs(claim.baseline, claim.dataset), strict=True))

    def sample(self, term: Term, score: Score) -> Sample:
        """A term's metric over seeds, with its draws."""
        statistics, test_sets = [], set()
        for run in self.runs(term.system, score.dataset):
            named = term.decodings or [score.decoding]
            paths = [self.folders.folder(run) / path for path in self.project.files_of(score, named)]
            for path in paths:
                self.need(path)
            statistics.append([read_statistics(path, score.metric) for path in paths])
            test_sets |= {ScoreFile.read(path).test_set for path in paths}
        return sample(statistics, metric_named(score.metric), ", ".join(sorted(test_sets)))

    def by_split(self, system: str, score: Score) -> list[dict[str, np.ndarray]]:
        """Each seed's statistics (N, F) of every split."""
        found = []
        for run in self.runs(system, score.dataset):
            paths = [self.folders.folder(run) / path for path in self.project.files_of(score, [score.decoding])]
            for path in paths:
                self.need(path)
            rows = (read_statistics(path, score.metric) for path in paths)
            found.append(dict(zip(score.splits, rows, strict=True)))
        return found

    def part(self, rows: list[np.ndarray], chosen: np.ndarray, score: Score) -> Sample:
        """The score of the rows `chosen` (N,); all parts of a set have the same resamples, the others left out."""
        return sample([[one * chosen[:, None]] for one in rows], metric_named(score.metric), score.dataset)

    def lengths(self, system: str, score: Score, splits: list[str]) -> np.ndarray:
        """(N,) of the sources of some splits in a row."""
        return source_lengths(self.project.corpus(self.runs(system, score.dataset)[0].dataset), splits)

    def longest_trained_on(self, system: str, score: Score) -> int:
        run = self.runs(system, score.dataset)[0]
        return longest_trained_on(self.project.corpus(run.dataset), self.project.run_spec(run).training.max_length)

    def trained(self, run) -> Path:
        """The folder of a run whose training has ended."""
        folder = self.folders.folder(run)
        self.need(folder / "trained.json")
        return folder

    def curve(self, run) -> LossCurve:
        return loss_curve(self.trained(run))

    def fit_curve(self, run) -> LossCurve:
        try:
            return fit_curve(self.trained(run))
        except UserError as error:
            raise NotRun(str(error)) from error

    def seconds(self, run) -> float:
        cost = self.folders.cost(run)
        if cost is None:
            raise NotRun(f"{self.folders.folder(run) / 'cost.json'} is not there")
        return cost.total.seconds

    def times(self) -> LayerTimes:
        self.need(self.folders.layer_times_path)
        return LayerTimes.read(self.folders.layer_times_path)

    def need(self, path: Path) -> None:
        """Raises NotRun when the file is not there."""
        if not path.exists():
            raise NotRun(f"{path} is not there")

    def sentence_test(self, score: Score) -> str:
        return self.resampling("batches" if score.metric == "perplexity" else "sentences")

    def resampling(self, unit: str) -> str:
        return f"paired bootstrap over {unit}" + ("" if self.seeds == 1 else f", t over {self.seeds} seeds")

    def seed_test(self) -> str:
        return "one seed: noise between trainings unknown" if self.seeds == 1 else f"paired t over {self.seeds} seeds"

    @property
    def seeds(self) -> int:
        return len(self.project.config.seed_list)
