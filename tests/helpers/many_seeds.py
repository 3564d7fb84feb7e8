"""Measurements of one system under many seeds (docs/measured/noise), as runs of any number of systems.

The system `X1` of seeds_of={"X1": [4, 7, 11]} is three of those trainings. Claims judge such systems as they do any,
but all of them are the same: whatever is decided between them is false.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fabricated import write_score, write_training
from made_records import start_cost, training_cost

from pipeline.analysis import evidence, run_folders
from pipeline.analysis.claims import Claims
from pipeline.analysis.claims.measurements import Measurements, NoisePools
from pipeline.analysis.claims.verdicts import ClaimResult, evaluate_claims
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.training_curves import Floors
from pipeline.analysis.view import PaperView
from pipeline.config import DecodingConfig
from pipeline.core.artifacts import RunId
from pipeline.core.layout import Layout
from pipeline.core.provenance import ROOT
from pipeline.core.records import record
from pipeline.core.records.training import MeasuredNoise
from pipeline.core.schema import validate

DATA = "data"
SHORT, LONG = "test", "test2"
"""Halves of the test set, by the length of the reference."""
METRICS = {"bleu": "bleu_paper", "gleu": "gleu", "ppl": "perplexity", "wer": "wer"}
SCORES = {
    key: {"metric": name, "dataset": DATA, "split": [SHORT, LONG], "decoding": "final"} for key, name in METRICS.items()
}


@dataclass(frozen=True)
class ManySeeds:
    """Trainings of one system."""

    record: MeasuredNoise
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, family: str) -> "ManySeeds":
        path = ROOT / "docs/measured/noise" / family
        return cls(MeasuredNoise.read(path.with_suffix(".json")), dict(np.load(path.with_suffix(".npz"))))

    @property
    def count(self) -> int:
        return len(self.record.seeds)

    @property
    def scores(self) -> dict[str, str]:
        """Names of the metrics that were kept, by what claims call them."""
        return {key: name for key, name in METRICS.items() if name in self.arrays}

    def is_long(self, metric: str) -> np.ndarray:
        """Return whether each sentence is long, by words of the reference or by the metric's own sentences."""
        words = next(self.arrays[name] for name in ("bleu_paper", "wer") if name in self.arrays)
        own = self.arrays[metric]
        lengths = (words if len(words[0]) == len(own[0]) else own)[0, :, 1]
        return lengths > np.median(lengths)

    def raised(self, nats: float) -> "ManySeeds":
        """The same with losses, a symbol, that are so much higher."""
        changed = {"dev": self.arrays["dev"] + nats}
        if "perplexity" in self.arrays:
            changed["perplexity"] = self.arrays["perplexity"].astype(float)
            changed["perplexity"][..., 0] += nats * changed["perplexity"][..., 1]
        return ManySeeds(self.record, self.arrays | changed)

    def write(self, deal: "Deal", first: int = 0) -> None:
        """Run folders of all seeds, numbered from `first` on."""
        every = int(self.arrays["steps"][0])
        for number in range(self.count):
            run = RunId("aa", "X", DATA, first + number)
            dev, train = (self.arrays[name][number].tolist() for name in ("dev", "train"))
            write_training(deal, run, dev, train, every)
            training_cost(start_cost(seconds=60.0)).write(deal.layout.run(run) / "cost.json")
            for name in self.scores.values():
                rows, long = self.arrays[name][number], self.is_long(name)
                for split, part in ((SHORT, ~long), (LONG, long)):
                    write_score(deal, run, name, "final", split, rows[part])


class SeedFolders(Layout):
    def run(self, run: RunId) -> Path:
        if run not in self._run_folders:
            self._run_folders[run] = self.work / f"seed{run.seed}"
        return self._run_folders[run]


@dataclass(frozen=True)
class Deal:
    """An experiment (pipeline/analysis/view.py) whose systems are trainings dealt out of many."""

    layout: Layout
    spec: Any
    seeds_of: dict[str, list[int]] = field(default_factory=dict)
    noise: MeasuredNoise | None = None
    floors: Floors = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        return max(self.seeds_of.values(), key=len)

    def runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        return [RunId(paper, system, dataset, seed) for seed in self.seeds_of[system]]

    def run_spec(self, run: RunId) -> Any:
        return self.spec

    def origin(self, run: RunId) -> RunId:
        return run

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        return paper, reference

    def stand_in(self, dataset: str) -> str:
        return dataset

    def decoding(self, paper: str, system: str, name: str) -> DecodingConfig:
        """Return any settings: there is no record of decoded outputs to compare them with."""
        return DecodingConfig()

    def scored_apart(self, dataset: str, measure: str) -> None:
        """Each deal has one set of scores."""

    def noise_of(self, family: str) -> MeasuredNoise | None:
        return self.noise


class WithLengths(Measurements):
    """Corpora are not there; what they say of lengths is that the second half's are longer than any trained on."""

    def source_lengths(self, system, score, splits):
        return np.concatenate(
            [np.full(self.rows(system, score, split), 9 if split == SHORT else 30) for split in splits]
        )

    def rows(self, system, score, split) -> int:
        (run, *_) = self.view.runs(system, score.dataset)
        (path,) = self.folders.score_paths(run, score.model_copy(update={"split": split}), [score.decoding])
        return len(np.load(path.with_suffix(".npz"))[score.metric])

    def longest_trained_on(self, system, score) -> int:
        return 20


def measure(deal: Deal) -> WithLengths:
    """Return the scores and losses of a deal, which all its claims share as those of a paper do."""
    view = PaperView(deal, "aa")
    scores = validate(Claims, {"scores": SCORES, "claims": {}}, "toy").scores
    return WithLengths(RunFolders(view), scores, NoisePools(view, tuple(deal.seeds_of)))


def judge(measured: WithLengths, claims: dict[str, dict], primary: list[str] = ()) -> list[ClaimResult]:
    """claims: as in claims.yaml, without words."""
    words = {"statement": "It is so.", "printed": "Table 9"}
    claimed = validate(
        Claims, {"scores": SCORES, "claims": {name: words | claim for name, claim in claims.items()}}, "toy"
    )
    return evaluate_claims(claimed.claims, primary, measured)


def remember_files(monkeypatch) -> None:
    """Remember the files of the trainings, which every deal reads again; no deal writes to them."""
    for module, name in ((run_folders, "read_statistics"), (run_folders, "loss_curve"), (record, "read_as")):
        monkeypatch.setattr(module, name, cache(getattr(module, name)))


def remember_resamples(monkeypatch) -> None:
    """Remember the resamples of a seed, which every deal needs again."""
    original = evidence.resampled
    known: dict[tuple[bytes, int], np.ndarray] = {}

    def resampled(statistics, total, seed):
        key = statistics.tobytes(), seed
        if key not in known:
            known[key] = original(statistics, total, seed=seed)
        return known[key]

    monkeypatch.setattr(evidence, "resampled", resampled)
