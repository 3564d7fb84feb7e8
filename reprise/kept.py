"""Records of finished runs: small files to be committed, and tables over seeds that are made of them."""

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import ClassVar

from pydantic import Field

from pipeline.analysis.training_curves import loss_curve
from pipeline.config import RunSpec
from pipeline.core.digests import sha256_json
from pipeline.core.errors import UserError
from pipeline.core.layout import COST_FILE, DONE_FILE, PROGRESS_FILE
from pipeline.core.records.outputs import MetricValue, ScoreFile
from pipeline.core.records.record import Record
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.papers.comparability import MACHINE_SETTINGS

USUAL = ("bleu_paper", "f1", "f1_aligned", "wer", "cer", "perplexity")
"""Metrics of a table by default."""
MEASURES = ("scores", "perplexities", "phenomena")


class KeptRun(Record):
    """One seed of one system: settings, outcome, cost and scores, without weights, texts, or the machine's names."""

    remedy: ClassVar[str] = "record the run again: `reprise record RUN --into FOLDER`"

    run: RunSpec
    trained: TrainedRun
    cost: TrainingCost | None
    late_gain: float | None = Field(
        description="Share by which the lowest dev loss fell in the last fifth; null: unknown"
    )
    scores: dict[str, ScoreFile] = Field(description="By measure/decoding/split")

    @classmethod
    def of(cls, folder: Path, run: RunSpec) -> "KeptRun":
        """Read the record of a run from its folder.

        Raises:
            UserError: The run is not finished or not scored, or a score belongs to an earlier training.
        """
        trained, cost = TrainedRun.read(folder / DONE_FILE), TrainingCost.read_if_there(folder / COST_FILE)
        if not (scores := dict(scores_below(folder, trained.weights_digest))):
            raise UserError(f"{folder}: not scored yet; run `snakemake` for a table that has it")
        provenance = {key: value for key, value in trained.provenance.items() if key != "node"}
        starts = tuple(start.model_copy(update={"node": ""}) for start in cost.starts) if cost else ()
        gain = loss_curve(folder).late_gain if (folder / PROGRESS_FILE).exists() else 1.0
        return cls(
            run=run.map_folders(place),
            trained=trained.model_copy(update={"provenance": provenance}),
            cost=cost and cost.model_copy(update={"starts": starts}),
            late_gain=gain if gain < 1 else None,
            scores=scores,
        )

    @property
    def system(self) -> tuple[str, str, str, str]:
        """Return name, dataset, scale and digest of the settings, which all seeds of a system share."""
        content = self.run.content() | {"seed": 0, "data": self.run.corpus}
        content["training"] = {key: one for key, one in content["training"].items() if key not in MACHINE_SETTINGS}
        return f"{self.run.paper}/{self.run.system}", self.run.dataset, self.run.scale, sha256_json(content)

    @property
    def file_name(self) -> str:
        """Return the name of the file of this record."""
        run = self.run
        return f"{run.paper}-{run.system}-{run.dataset}-{run.scale}-seed{run.seed}.json"


def scores_below(folder: Path, weights: str) -> Iterator[tuple[str, ScoreFile]]:
    """Yield every score file of a run, with input paths relative to the work folder.

    Args:
        folder: Folder of the run.
        weights: Digest of its final weights.

    Raises:
        UserError: A score belongs to other weights.
    """
    for path in sorted(path for measure in MEASURES for path in folder.glob(f"{measure}/*/*.json")):
        score = ScoreFile.read(path)
        score.require_training(weights, path)
        inputs = {place(name): digest for name, digest in score.inputs.items()}
        yield str(path.relative_to(folder).with_suffix("")), score.model_copy(update={"inputs": inputs})


def place(name: str) -> str:
    """Return a path below the folder of all corpora or runs; the bare name of a file elsewhere."""
    parts = Path(name).parts
    begins = [number for number, part in enumerate(parts) if part in ("corpora", "runs")]
    return "/".join(parts[begins[-1] :]) if begins else Path(name).name


def keep(kept: KeptRun, folder: Path) -> Path:
    """Write a record, merged with its earlier scores, and return its path.

    Raises:
        UserError: The folder has another training of this name and seed.
    """
    path = folder / kept.file_name
    if there := KeptRun.read_if_there(path):
        if there.trained.weights_digest != kept.trained.weights_digest:
            weights = there.trained.weights_digest[:12]
            raise UserError(f"{path}: is of another training (weights {weights}); remove it first")
        kept = kept.model_copy(update={"scores": there.scores | kept.scores})
    kept.write(path)
    return path


def kept_in(folder: Path) -> list[KeptRun]:
    """Read all records, by system and seed. Raises UserError if there are none or a file has a fault."""
    if not (paths := sorted(folder.glob("*-seed*.json"))):
        raise UserError(f"{folder}: has no records; run `reprise record RUN --into {folder}`")
    return sorted(map(KeptRun.read, paths), key=lambda kept: (*kept.system, kept.run.seed))


def table_rows(runs: Iterable[KeptRun], metrics: list[str]) -> list[dict[str, str]]:
    """Return one row per system: means over its seeds, with their standard deviations.

    Args:
        runs: The records.
        metrics: Metrics of the columns; empty means `USUAL`.

    Raises:
        UserError: Seeds were scored on different references or in different ways, or nothing has a metric.
    """
    by_system = defaultdict(list)
    for kept in runs:
        by_system[kept.system].append(kept)
    every = {metric for seeds in by_system.values() for _, metric in columns_of(seeds, metrics)}
    if missing := set(metrics) - every:
        raise UserError(f"nothing recorded has the metric {', '.join(sorted(missing))}")
    rows = [row_of(seeds, metrics) for seeds in by_system.values()]
    columns = dict.fromkeys(name for row in rows for name in row)
    last = ("hours", "commit")
    ordered = [*(name for name in columns if name not in last), *last]
    return [{name: row.get(name, "") for name in ordered} for row in rows]


def row_of(seeds: list[KeptRun], metrics: list[str]) -> dict[str, str]:
    """Return the row of one system."""
    name, dataset, scale, _ = seeds[0].system
    gains = [kept.late_gain for kept in seeds if kept.late_gain is not None]
    row = {
        "system": name,
        "dataset": dataset,
        "scale": scale,
        "seeds": joined(kept.run.seed for kept in seeds),
        "updates": joined(kept.trained.steps for kept in seeds),
        "dev loss": over_seeds([kept.trained.dev.nll_per_token for kept in seeds], 3),
        "fell in last fifth": f"{100 * statistics.mean(gains):.1f} %" if gains else "",
    }
    for score, metric in dict.fromkeys(columns_of(seeds, metrics)):
        row[f"{metric} {score.partition('/')[2]}"] = cell_of(name, seeds, score, metric)
    hours = [kept.cost.device_hours for kept in seeds if kept.cost]
    commits = joined(kept.trained.provenance.get("commit", "") for kept in seeds)
    return row | {"hours": f"{sum(hours):.2f}" if hours else "", "commit": commits}


def joined(values: Iterable[object]) -> str:
    """Join distinct values by spaces."""
    return " ".join(dict.fromkeys(map(str, values)))


def columns_of(seeds: list[KeptRun], metrics: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (score, metric) of every column."""
    for kept in seeds:
        for name, score in kept.scores.items():
            yield from ((name, metric) for metric in metrics or USUAL if metric in score.metrics)


def cell_of(system: str, seeds: list[KeptRun], score: str, metric: str) -> str:
    """Return the mean over the seeds that have a score, with their number if some lack it.

    Raises:
        UserError: As for `table_rows`.
    """
    files = [kept.scores[score] for kept in seeds if score in kept.scores and metric in kept.scores[score].metrics]
    if len({one.basis(metric) for one in files}) > 1:
        raise UserError(f"{system}, {score}: seeds were scored on different references, or {metric} in different ways")
    fewer = f", {len(files)} of {len(seeds)} seeds" if len(files) < len(seeds) else ""
    return score_of([one.metrics[metric] for one in files]) + fewer


def score_of(found: list[MetricValue]) -> str:
    """Format one seed with its interval over sentences, several as mean and standard deviation."""
    if len(found) == 1 and found[0].low is not None:
        return f"{found[0].value:.2f} ({found[0].low:.2f}–{found[0].high:.2f})"
    return over_seeds([one.value for one in found], 2)


def over_seeds(values: list[float], digits: int) -> str:
    """Format the mean and standard deviation of values."""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


def metrics_shown(table: Path, runs: Iterable[KeptRun]) -> list[str]:
    """Return the metrics of an existing table, and the default ones of runs that have none of these."""
    header: list[str] = []
    if table.exists():
        with open(table, encoding="utf-8", newline="") as lines:
            header = next(csv.reader(lines), [])
    shown = [name.partition(" ")[0] for name in header if "/" in name]
    found = [{metric for score in kept.scores.values() for metric in score.metrics} for kept in runs]
    there = [metric for metric in shown if any(metric in one for one in found)]
    further = [metric for one in found if not one & set(there) for metric in USUAL if metric in one]
    return list(dict.fromkeys([*there, *further]))


def test_sets(runs: list[KeptRun]) -> list[str]:
    """Describe the scored test sets of each dataset."""
    scores = ((kept.run.dataset, name, score) for kept in runs for name, score in kept.scores.items())
    return sorted({f"{dataset}, {name}: {score.test_set}, {score.lines} lines" for dataset, name, score in scores})
