"""A score on disk: a JSON file of metrics, and beside it the statistics of each sentence for paired tests."""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import UserError
from pipeline.files import atomic_write, read_json, write_json
from pipeline.metrics import metrics_of
from pipeline.metrics.statistics.metric import Inputs
from pipeline.metrics.statistics.significance import bootstrap_interval

log = logging.getLogger(__name__)


def write_score(out: Path, inputs: Inputs, record: dict[str, Any]) -> None:
    """Measure all that `inputs` have a metric for; write `record` with it, and the statistics beside it.

    Adds metrics: {<metric>: {value, low, high, signature}}, with 95 % intervals, and statistics: a file's name.
    """
    chosen = metrics_of(inputs)
    statistics = {metric.name: metric.statistics(inputs) for metric in chosen}
    metrics = {
        metric.name: {
            **vars(bootstrap_interval(statistics[metric.name], metric.total)),
            "signature": metric.signature(inputs),
        }
        for metric in chosen
    }
    path = out.with_suffix(".npz")
    write_statistics(path, statistics)
    write_json(out, {**record, "metrics": metrics, "statistics": path.name})
    for name, metric in metrics.items():
        log.info("%s %.2f (%.2f to %.2f)  %s", name, *metric.values())


def write_statistics(path: Path, statistics: dict[str, Any]) -> None:
    """Arrays (N, F) by name, whole or absent, compressed; the same bytes for the same statistics."""
    with atomic_write(path, "wb") as handle:
        np.savez_compressed(handle, **statistics)


def read_statistics(score: Path, name: str) -> np.ndarray:
    """(N, F) of the metric `name` of the score file `score`. Raises UserError when missing."""
    path = Path(score).parent / read_json(score)["statistics"]
    try:
        with np.load(path) as arrays:
            return arrays[name]
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file, though {score} names it; run the stage `score` again") from error
    except KeyError as error:
        raise UserError(f"{path}: no statistics for {name!r}") from error
