"""Samples of what a paper's claims compare, with run-to-run variance pooled over systems of a family."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from pipeline.analysis.evidence import Sample, bootstrap_sample, degrees_of_freedom, seed_scores, training_sample
from pipeline.analysis.run_folders import NotRun, RunFolders, basis, require_one_basis
from pipeline.analysis.training_curves import System, below_floor
from pipeline.analysis.view import NamedScore, PaperView, Scores, Term
from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError, count_of
from pipeline.core.records.outputs import ScoreFile
from pipeline.metrics import metric_named

Values = Sequence[float] | np.ndarray
"""One number per training of a system."""
SplitsBySeed = list[dict[str, np.ndarray]]
"""For each seed, the statistics (N, F) of every split."""


@dataclass(frozen=True)
class NoisePools:
    """Run-to-run variance, pooled over the systems that a paper's claims name."""

    view: PaperView
    systems: Sequence[str] = ()
    known: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)
    """Cache of values by training, quantity and detail."""

    def pool(
        self, system: str, dataset: str, quantity: str, values: Callable[[str], Values], detail: str
    ) -> tuple[tuple[np.ndarray, ...], str]:
        """Collect a quantity of every system of the same family that is trained on the same data.

        Of systems that continue one training, such as the shares of target data on which one model is fine-tuned, only
        one counts, the first with most seeds: they share the variation of that training.
        If no system has two seeds, the variance measured once for the family (docs/measured/noise) is used.

        Args:
            system: System whose noise is wanted.
            dataset: Dataset that it is trained on.
            quantity: Name of the quantity.
            values: Returns the quantity of each training of any system.
            detail: Distinguishes quantities of one name.

        Returns:
            The values by system, and their source in words; both empty if the variance is unknown.
        """
        family = self.family(system, dataset)
        found: dict[RunId, np.ndarray] = {}
        for training, member in sorted(self.alike(system, dataset).items()):
            origin = self.view.experiment.origin(self.view.runs(member, dataset)[0])
            group = self.read(member, (training, quantity, detail), values)
            if len(group) > len(found.get(origin, ())):
                found[origin] = group
        if degrees := degrees_of_freedom(groups := tuple(found.values())):
            systems, freedom = count_of(len(groups), "system"), count_of(degrees, "degree") + " of freedom"
            return groups, f"pooled over {systems} ({family}, {freedom})"
        measured = self.view.experiment.noise_of(family)
        if measured and quantity in measured.values:
            return (np.array(measured.values[quantity]),), measured.title
        return (), ""

    def alike(self, system: str, dataset: str) -> dict[str, str]:
        """Return the systems of the same family that are trained on the same data.

        Returns:
            Systems by what their runs have in common (`training`), so that two names of one system count once.
        """
        family, data = self.family(system, dataset), self.corpus(system, dataset)
        return {
            self.training(member, dataset): member
            for member in (*self.systems, system)
            if self.family(member, dataset) == family and self.corpus(member, dataset) == data
        }

    def read(self, system: str, key: tuple[str, ...], values: Callable[[str], Values]) -> np.ndarray:
        """Return the values of a system; empty if they were not measured.

        Args:
            system: System as the paper writes it.
            key: Training, quantity and detail, by which the values are cached.
            values: Returns the quantity of each training of a system.
        """
        if key not in self.known:
            try:
                self.known[key] = np.array(values(system), dtype=float)
            except (NotRun, UserError):
                self.known[key] = np.array([])
        return self.known[key]

    def training(self, system: str, dataset: str) -> str:
        """Return what the runs of a system have in common: paper, system and dataset."""
        return "/".join((*self.view.experiment.locate(system, self.view.paper), dataset))

    def corpus(self, system: str, dataset: str) -> str:
        """Return the dataset that a system is trained on at this scale."""
        return self.view.runs(system, dataset)[0].dataset

    def family(self, system: str, dataset: str) -> str:
        """Return the model family of a system."""
        return self.view.experiment.run_spec(self.view.runs(system, dataset)[0]).model.family


@dataclass(frozen=True)
class Measurements:
    """Scores and other numbers of one paper's runs as samples; a missing file raises `NotRun`."""

    folders: RunFolders
    scores: Scores
    pools: NoisePools

    @property
    def view(self) -> PaperView:
        """Return the paper at its scale."""
        return self.folders.view

    def sample(self, term: Term, score: NamedScore) -> Sample:
        """Return a term's metric over seeds, with resampled sentences and the noise of its family."""
        runs = self.view.runs(term.system, score.dataset)
        decodings = term.decodings or [score.decoding]
        self.comparable_files(term.system, score, decodings)
        found, total = self.folders.sample(runs, decodings, score), metric_named(score.metric).total
        pool, noise = self.pools.pool(
            term.system,
            score.dataset,
            score.metric,
            lambda system: seed_scores(self.statistics(system, score, decodings), total),
            f"{score.splits} of {score.scored_on}, {' '.join(decodings)}",
        )
        training = self.pools.training(term.system, score.dataset)
        return replace(found, system=training, pool=pool, noise=noise or found.noise)

    def comparable_files(self, system: str, score: NamedScore, decodings: Sequence[str]) -> list[ScoreFile]:
        """Return the score files of a system's first seed, after a check that its seeds were scored alike.

        Raises:
            NotRun: A score file is missing.
            UserError: The seeds of the system were scored differently.
        """
        runs = self.view.runs(system, score.dataset)
        files = [[ScoreFile.read(path) for path in self.folders.score_paths(run, score, decodings)] for run in runs]
        require_one_basis(files, score.metric, f"{self.view.paper}/{system}")
        return files[0]

    def training_sample(
        self,
        system: str,
        dataset: str,
        quantity: str,
        of_each: Callable[[list[RunId]], Values],
        detail: str = "",
    ) -> Sample:
        """Return a number of each training of a system, with the noise of its family.

        Args:
            system: The system.
            dataset: Dataset that it is trained on.
            quantity: Name of the quantity in the measured noise.
            of_each: Returns the quantity of each of some trainings.
            detail: Distinguishes quantities of one name.
        """

        def values(name: str) -> Values:
            return of_each(self.view.runs(name, dataset))

        pool, noise = self.pools.pool(system, dataset, quantity, values, detail)
        return training_sample(values(system), self.pools.training(system, dataset), pool, noise)

    def statistics(self, system: str, score: NamedScore, decodings: Sequence[str] = ()) -> list[list[np.ndarray]]:
        """Return the statistics of each seed, split by split, under some decodings or else the score's own.

        Returns:
            For each seed and decoding, the statistics of each split, shape (N, F).
        """
        return self.folders.statistics(self.view.runs(system, score.dataset), score, decodings or [score.decoding])

    def statistics_by_split(self, system: str, score: NamedScore) -> SplitsBySeed:
        """Return the statistics of each seed by the name of the split."""
        rows = self.statistics(system, score)
        return [dict(zip(score.splits, of_seed, strict=True)) for of_seed in rows]

    def score_of_part(self, system: str, rows: Sequence[np.ndarray], chosen: np.ndarray, score: NamedScore) -> Sample:
        """Return the score of a part of the sentences.

        All parts of a set have the same resamples: the other sentences count as zero.

        Args:
            system: The system.
            rows: For each seed, the statistics (N, F) of the whole set.
            chosen: Mask of the part, shape (N,).
            score: The metric.
        """
        parts = [[statistics * chosen[:, None]] for statistics in rows]
        training = self.pools.training(system, score.dataset)
        sample = bootstrap_sample(parts, metric_named(score.metric).total, score.dataset, training)
        return replace(sample, basis=basis(self.comparable_files(system, score, [score.decoding]), score.metric))

    def source_lengths(self, system: str, score: NamedScore, splits: Sequence[str]) -> np.ndarray:
        """Return the lengths (N,) of the source sentences of some `splits`, concatenated in this order."""
        return self.folders.source_lengths(self.pools.corpus(system, score.dataset), splits)

    def longest_trained_on(self, system: str, score: NamedScore) -> int:
        """Return the length of the longest source sentence that a system was trained on."""
        return self.folders.longest_trained_on(self.view.runs(system, score.dataset)[0])

    def below_score_floor(self, score: NamedScore, terms: Sequence[Term], samples: Sequence[Sample]) -> str:
        """Name the systems whose score, under its own decoding, is below the floor; empty if there is none.

        Returns:
            One clause for each such system. A system that was not run is left out.
        """
        found: dict[str, str] = {}
        for term, sample in zip(terms, samples, strict=True):
            try:
                own = self._mean_score(term.system, score) if term.decodings else sample.mean
            except NotRun:
                continue
            if fault := below_floor(self.view.experiment.floors, score.metric, own):
                found[term.system] = f"{term.system}: {fault}"
        return "; ".join(found.values())

    def _mean_score(self, system: str, score: NamedScore) -> float:
        return float(seed_scores(self.statistics(system, score), metric_named(score.metric).total).mean())

    def above_perplexity_floor(self, trainings: Sequence[System]) -> str:
        """Name the systems whose final dev perplexity is above the floor; empty if there is none."""
        faults: dict[str, str] = {}
        for system, dataset in trainings:
            loss = fmean([self.folders.loss_curve(run).dev[-1] for run in self.view.runs(system, dataset)])
            faults[system] = below_floor(self.view.experiment.floors, "perplexity", float(np.exp(loss)))
        return "; ".join(f"{system}: {fault}" for system, fault in faults.items() if fault)


def concatenated(by_seed: SplitsBySeed) -> list[np.ndarray]:
    """Return each seed's statistics (N, F) with all splits as one set."""
    return [np.concatenate(list(rows.values())) for rows in by_seed]
