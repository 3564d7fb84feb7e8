"""Run folders as the stages leave them, with made-up scores and logs."""

import contextlib
import fcntl
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import yaml
from made_records import data_loss, score_file, start_cost, trained_run, training_cost, validation_line

from pipeline.analysis.view import measure_of
from pipeline.core.artifacts import RunId, Score
from pipeline.core.records.jobs import Failure, record_event
from pipeline.core.records.training import MonitorLine
from pipeline.metrics import metric_named, write_statistics
from pipeline.papers.project import Project
from pipeline.report.filled_table import fill

SENTENCES = 200
AT_PLATEAU = [4.0, *[2.0] * 9]
"""Losses of a training that has learnt all it will."""


def folder_of(project: Project, run: RunId) -> Path:
    return project.layout.run(run)


def touch(path: Path, text: str = "") -> Path:
    """Write a file and the folders around it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a run as a running training does."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "run.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_failure(folder: Path, error: str, traceback: str | None = None) -> None:
    """Record that the last start of a run failed."""
    record_event(folder, Failure(key="toy", job="7", node="n1", rank=0, time=0.0, error=error, traceback=traceback))


def table_rows(project: Project, paper: str, table: str) -> list[dict[str, str]]:
    """A table as its CSV has it."""
    return fill(project, paper, table).frame.to_dict("records")


def perplexity_statistics(nll: float, seed: int = 0) -> np.ndarray:
    """(N, 2) nats and subwords of batches whose difficulty is that of the test set: the same for every system."""
    tokens = np.random.default_rng(0).integers(50, 100, SENTENCES)
    difficulty = np.random.default_rng(1).normal(0, 0.3, SENTENCES)
    noise = np.random.default_rng([2, seed, int(1000 * nll)]).normal(0, 0.05, SENTENCES)
    deviation = difficulty + noise
    return np.stack([(nll + deviation - np.average(deviation, weights=tokens)) * tokens, tokens], axis=1)


def bleu_statistics(precision: float, seed: int = 0) -> np.ndarray:
    """(N, 10) of sentences of twelve words, of whose n-grams about `precision` match."""
    generator = np.random.default_rng([3, seed, int(10000 * max(precision, 0))])
    length = np.full(SENTENCES, 12)
    totals = np.stack([length - order for order in range(4)], axis=1)
    hard = np.random.default_rng(4).uniform(-0.15, 0.15, (SENTENCES, 1))
    return np.concatenate(
        [length[:, None], length[:, None], generator.binomial(totals, np.clip(precision + hard, 0, 1)), totals], axis=1
    )


def write_score(project: Project, run: RunId, metric: str, decoding: str, split: str, statistics: np.ndarray) -> None:
    """A score file of one metric, added to those that the run has."""
    path = project.layout.path(Score(run, measure_of(metric), decoding, split))
    arrays = dict(np.load(path.with_suffix(".npz"))) if path.exists() else {}
    arrays[metric] = statistics
    values = {name: float(metric_named(name).total(rows.sum(axis=0))) for name, rows in arrays.items()}
    metrics = {name: {"value": value, "low": None, "high": None, "signature": "toy"} for name, value in values.items()}
    write_statistics(path.with_suffix(".npz"), arrays)
    score_file(metrics, SENTENCES).write(path)
    if not (folder_of(project, run) / "done.json").exists():
        write_training(project, run, AT_PLATEAU, AT_PLATEAU)


def write_training(project: Project, run: RunId, dev: list[float], train: list[float], every: int = 100) -> None:
    """A finished training, validated `every` updates; losses in nats per symbol."""
    folder = folder_of(project, run)
    trained_run(steps=every * len(dev), fit=data_loss(train[-1])).write(folder / "done.json")
    training_cost(start_cost()).write(folder / "cost.json")
    losses = enumerate(zip(map(data_loss, train), map(data_loss, dev), strict=True), start=1)
    append(folder, (validation_line(step=every * i, fit=fit, dev=loss) for i, (fit, loss) in losses))


def write_training_beside(project: Project, run: RunId, **training: object) -> Path:
    """A finished training of the same name, some of whose `training` settings are not today's; returns its folder."""
    folder = folder_of(project, run).with_name(f"seed{run.seed}-00000000")
    folder.mkdir(parents=True)
    settings = project.run_yaml(run)
    settings["training"] |= training
    (folder / "run.yaml").write_text(yaml.safe_dump(settings))
    trained_run(steps=100).write(folder / "done.json")
    training_cost(start_cost(seconds=7200.0)).write(folder / "cost.json")
    return folder


def write_branches(
    project: Project,
    run: RunId,
    kappa: np.ndarray,
    first: int = 0,
    alpha: np.ndarray | None = None,
    dev: Sequence[float] = AT_PLATEAU,
) -> None:
    """A log of a layer's kappa and alpha (steps, M) after each update from `first`; alpha is kappa unless given."""
    folder = folder_of(project, run)
    trained_run(steps=len(kappa)).write(folder / "done.json")
    steps = np.linspace(0, len(kappa), len(dev) + 1).round().astype(int)[1:].tolist()
    losses = zip(steps, map(data_loss, dev), strict=True)
    append(folder, (validation_line(step=step, dev=loss) for step, loss in losses))
    weights = zip(kappa.tolist(), (kappa if alpha is None else alpha).tolist(), strict=True)
    names = ("encoder.0.kappa", "encoder.0.alpha", "decoder.0.kappa")
    values = (dict(zip(names, (k, a, k), strict=True)) for k, a in weights)
    append(folder, (MonitorLine(step=step, values=value) for step, value in enumerate(values, first)))


def append(folder: Path, records) -> None:
    with open(folder / "progress.jsonl", "a", encoding="utf-8") as handle:
        handle.writelines(record.line() for record in records)
