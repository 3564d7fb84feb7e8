"""What is measured: one metric a file, found by being there.

A module here holds one metric as `METRIC`, named as the module is; what several share is in the folder `statistics`.
Importing a metric brings nothing that counts (sacreBLEU, sentencepiece, rapidfuzz): a dry run checks every name.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from pipeline.core.errors import UserError
from pipeline.core.schema import known
from pipeline.metrics.statistics.metric import Inputs, Metric


def metric_names() -> list[str]:
    """Of every metric, in alphabetical order; none is imported."""
    return modules_in(tuple(__path__))


@cache
def modules_in(folders: tuple[str, ...]) -> list[str]:
    """Looked for once: a dry run asks a thousand times."""
    return sorted(module.name for module in pkgutil.iter_modules(folders) if not module.ispkg)


def metric_named(name: str) -> Metric[Any]:
    """Raises UserError when there is none, with those that there are and the nearest."""
    known(name, metric_names(), "metric")
    metric: Metric[Any] = importlib.import_module(f"{__name__}.{name}").METRIC
    if metric.name != name:
        raise UserError(f"pipeline/metrics/{name}.py: its metric is named {metric.name!r}; name it {name!r}")
    return metric


def metrics_of(inputs: Inputs) -> list[Metric[Any]]:
    """Every metric that reads `inputs` and is defined for them."""
    metrics = [metric_named(name) for name in metric_names()]
    return [metric for metric in metrics if isinstance(inputs, metric.reads) and metric.applies(inputs)]
