"""All metrics by name, and score files.

A new metric is one more entry in the `METRICS` of the module that counts it, or a new module listed here.
Importing a metric loads nothing that counts (sacreBLEU, rapidfuzz), because a dry run checks every name.

A score file is a JSON file of metrics; beside it are the statistics of each sentence for paired tests.
"""

import logging
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.records.outputs import MetricValue, Scored, ScoreFile
from pipeline.core.retries import read_with_retries
from pipeline.core.schema import require_known
from pipeline.metrics import bleu, brackets, error_rates, phenomena
from pipeline.metrics.metric import Comparison, Metric, MetricInputs, bootstrap_interval, paired_bootstrap

log = logging.getLogger(__name__)
MODULES = (bleu, brackets, error_rates, phenomena)
METRICS: dict[str, Metric[Any]] = {metric.name: metric for module in MODULES for metric in module.METRICS}


def metric_names() -> list[str]:
    """Return the names of all metrics in alphabetical order."""
    return sorted(METRICS)


def metric_named(name: str) -> Metric[Any]:
    """Return the metric of a name.

    Raises:
        UserError: There is none; the message lists all names and the nearest one.
    """
    require_known(name, metric_names(), "metric")
    return METRICS[name]


def metrics_of(inputs: MetricInputs) -> list[Metric[Any]]:
    """Return every metric that reads given inputs and is defined for them, in alphabetical order."""
    metrics = [METRICS[name] for name in metric_names()]
    return [metric for metric in metrics if isinstance(inputs, metric.reads) and metric.applies(inputs)]


def write_score(out: Path, inputs: MetricInputs, scored: Scored) -> None:
    """Score `inputs` by every metric that reads them, and write `out` with what is `scored`, statistics beside it."""
    statistics, metrics = dict[str, np.ndarray](), dict[str, MetricValue]()
    for metric in metrics_of(inputs):
        statistics[metric.name] = metric.statistics(inputs)
        found = bootstrap_interval(statistics[metric.name], metric.total)
        metrics[metric.name] = MetricValue(**vars(found), signature=metric.signature(inputs))
    path = out.with_suffix(".npz")
    write_statistics(path, statistics)
    ScoreFile(**dict(scored), metrics=metrics, statistics=path.name).write(out)
    for name, score in metrics.items():
        interval = "" if score.low is None else f" ({score.low:.2f} to {score.high:.2f})"
        log.info("%s %.2f%s  %s", name, score.value, interval, score.signature)


def write_statistics(path: Path, statistics: dict[str, Any]) -> None:
    """Write arrays (N, F) by metric to the .npz file `path` atomically; equal `statistics` give equal bytes."""
    with atomic_write(path, "wb") as handle:
        np.savez_compressed(handle, **statistics)


def read_statistics(score: Path, name: str) -> np.ndarray:
    """Return the statistics (N, F) of the metric `name`, beside the JSON file `score`.

    Raises:
        UserError: The statistics are missing or damaged.
    """
    path = Path(score).with_suffix(".npz")
    try:
        content = read_with_retries(path)  # faults of the disk keep their own message
        with ZipFile(BytesIO(content)) as archive:
            array = archive.read(f"{name}.npy")  # checks the checksum, which np.load(path) does after parsing
        return np.load(BytesIO(array))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file beside {score}; run the stage `score` again") from error
    except KeyError as error:
        raise UserError(f"{path}: no statistics for {name!r}") from error
    except (BadZipFile, EOFError, RuntimeError, ValueError, zlib.error) as error:
        raise UserError(f"{path}: is damaged ({error}); remove it and run the stage `score` again") from error


def compare_scores(a: Path, b: Path, name: str) -> Comparison:
    """Return the difference of the score files `a` and `b`, each with its statistics, by the metric `name`.

    Raises:
        UserError: Their test sets, references or signatures differ.
    """
    bases = []
    for path in (a, b):
        score = ScoreFile.read(path)
        require_known(name, score.metrics, f"{path}: metric")
        bases.append(score.basis(name))
    for what, ours, theirs in zip(("test set", "digest of the references", "signature"), *bases, strict=True):
        if ours != theirs:
            if what == "digest of the references":
                ours, theirs = ours[:60], theirs[:60]
            raise UserError(
                f"can't compare {a} and {b}: {what} differs ({ours}, {theirs}); both must be scored on one "
                "test set by one metric"
            )
    return paired_bootstrap(read_statistics(a, name), read_statistics(b, name), metric_named(name).total)
