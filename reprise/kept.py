"""What is kept of a finished run for good: a small file to be committed, of which tables over seeds are made."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import ClassVar

from pydantic import Field

from pipeline.config import RunSpec
from pipeline.errors import UserError
from pipeline.files import sha256_json
from pipeline.kinds.training_curves import loss_curve
from pipeline.layout import COST_FILE, DONE_FILE
from pipeline.records.record import Record
from pipeline.records.scores import MetricValue, ScoreFile
from pipeline.records.training import TrainedRun, TrainingCost
from reprise.named_run import FoundRun

USUAL = ("bleu_paper", "f1", "f1_aligned", "wer", "cer", "perplexity")
"""Metrics that a table has where it is not told which."""
MEASURES = ("scores", "perplexities", "phenomena")


class KeptRun(Record):
    """One seed of one system: settings, outcome, cost and scores, without weights, texts and the machine's folders."""

    remedy: ClassVar[str] = "record the run again: `reprise record RUN --into FOLDER`"

    run: RunSpec
    trained: TrainedRun
    cost: TrainingCost
    late_gain: float | None = Field(
        description="Share by which the lowest dev loss fell in the last fifth; null: unknown"
    )
    scores: dict[str, ScoreFile] = Field(description="By measure/decoding/split")

    @classmethod
    def of(cls, found: FoundRun) -> "KeptRun":
        """Raises UserError when the run is not finished, or was never scored."""
        work = found.project.layout.work
        scores = dict(scores_below(found.folder, work))
        if not scores:
            raise UserError(f"{found.folder}: not scored yet; `snakemake` makes the scores of a table")
        gain = loss_curve(found.folder).late_gain
        return cls(
            run=found.spec.placed(lambda folder: place(folder, work)),
            trained=TrainedRun.read(found.folder / DONE_FILE),
            cost=TrainingCost.read(found.folder / COST_FILE),
            late_gain=gain if gain < 1 else None,
            scores=scores,
        )

    @property
    def system(self) -> tuple[str, str, str]:
        """Name, dataset, and digest of the settings: what seeds of one system have in common."""
        content = self.run.model_dump(mode="json", exclude={"seed", "corpus", "initial", "language_model"})
        return f"{self.run.paper}/{self.run.system}", self.run.dataset, sha256_json(content)

    @property
    def file_name(self) -> str:
        return f"{self.run.paper}-{self.run.system}-{self.run.dataset}-seed{self.run.seed}.json"


def scores_below(folder: Path, work: Path) -> Iterator[tuple[str, ScoreFile]]:
    """Every score file of a run; the files that it was made of by their place in the work folder."""
    for path in sorted(path for measure in MEASURES for path in folder.glob(f"{measure}/*/*.json")):
        score = ScoreFile.read(path)
        inputs = {place(name, work): digest for name, digest in score.inputs.items()}
        yield str(path.relative_to(folder).with_suffix("")), score.model_copy(update={"inputs": inputs})


def place(name: str, work: Path) -> str:
    """Below the work folder; of a file elsewhere its name alone."""
    path = Path(name).absolute()
    return str(path.relative_to(work.absolute())) if path.is_relative_to(work.absolute()) else path.name


def keep(kept: KeptRun, folder: Path) -> Path:
    """Write it. Raises UserError when another training of that name and seed is there already."""
    path = folder / kept.file_name
    there = KeptRun.read_if_there(path)
    if there and there.trained.weights_digest != kept.trained.weights_digest:
        raise UserError(
            f"{path}: is of another training (weights {there.trained.weights_digest[:12]}); remove it first"
        )
    folder.mkdir(parents=True, exist_ok=True)
    kept.write(path)
    return path


def kept_in(folder: Path) -> list[KeptRun]:
    """All, systems in order of their names. Raises UserError when there are none, or a file is faulty."""
    if not (paths := sorted(folder.glob("*-seed*.json"))):
        raise UserError(f"{folder}: nothing recorded in it; `reprise record RUN --into {folder}` does it")
    return sorted(map(KeptRun.read, paths), key=lambda kept: (*kept.system, kept.run.seed))


def table_rows(runs: Iterable[KeptRun], metrics: list[str]) -> list[dict[str, str]]:
    """A row a system: means over its seeds, with their standard deviations. metrics: none = the usual ones."""
    by_system = defaultdict(list)
    for kept in runs:
        by_system[kept.system].append(kept)
    rows = [row_of(seeds, metrics) for seeds in by_system.values()]
    columns = dict.fromkeys(name for row in rows for name in row)
    last = ("hours", "commit")
    ordered = [*(name for name in columns if name not in last), *last]
    return [{name: row.get(name, "") for name in ordered} for row in rows]


def row_of(seeds: list[KeptRun], metrics: list[str]) -> dict[str, str]:
    first = seeds[0]
    name, dataset, _ = first.system
    gains = [kept.late_gain for kept in seeds if kept.late_gain is not None]
    row = {
        "system": name,
        "dataset": dataset,
        "seeds": " ".join(str(kept.run.seed) for kept in seeds),
        "updates": str(first.trained.steps),
        "dev loss": over_seeds([kept.trained.dev.nll_per_token for kept in seeds], 3),
        "fell in last fifth": f"{100 * max(gains):.1f} %" if gains else "",
    }
    for score, metric in dict.fromkeys(columns_of(seeds, metrics)):
        found = [kept.scores[score].metrics[metric] for kept in seeds if score in kept.scores]
        row[f"{metric} {score.partition('/')[2]}"] = score_of(found)
    commits = dict.fromkeys(str(kept.trained.provenance.get("commit", "")) for kept in seeds)
    return row | {"hours": f"{sum(kept.cost.device_hours for kept in seeds):.2f}", "commit": " ".join(commits)}


def columns_of(seeds: list[KeptRun], metrics: list[str]) -> Iterator[tuple[str, str]]:
    """(score, metric) of what is shown."""
    for kept in seeds:
        for name, score in kept.scores.items():
            yield from ((name, metric) for metric in metrics or USUAL if metric in score.metrics)


def score_of(found: list[MetricValue]) -> str:
    """Of one seed with the interval over sentences; of several the mean, and the deviation between trainings."""
    if len(found) == 1 and found[0].low is not None:
        return f"{found[0].value:.2f} ({found[0].low:.2f}–{found[0].high:.2f})"
    return over_seeds([one.value for one in found], 2)


def over_seeds(values: list[float], digits: int) -> str:
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


def test_sets(runs: list[KeptRun]) -> dict[str, str]:
    """What was scored, by measure/decoding/split."""
    scores = {name: score for kept in runs for name, score in kept.scores.items()}
    return {name: f"{score.test_set}, {score.lines} lines" for name, score in sorted(scores.items())}
