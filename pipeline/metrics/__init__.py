"""All metrics by name.

A new metric is one more entry in the `METRICS` of the module that counts it, or a new module listed here.
Importing a metric loads nothing that counts (sacreBLEU, rapidfuzz), because a dry run checks every name.
"""

from typing import Any

from pipeline.core.schema import known
from pipeline.metrics import bleu, brackets, error_rates, perplexity, phenomena
from pipeline.metrics.metric import Metric, MetricInputs

MODULES = (bleu, brackets, error_rates, perplexity, phenomena)
METRICS: dict[str, Metric[Any]] = {metric.name: metric for module in MODULES for metric in module.METRICS}


def metric_names() -> list[str]:
    """Return the names of all metrics in alphabetical order."""
    return sorted(METRICS)


def metric_named(name: str) -> Metric[Any]:
    """Return the metric of a name.

    Args:
        name: Key in score files.

    Returns:
        The metric.

    Raises:
        UserError: There is none; the message lists all names and the nearest one.
    """
    known(name, metric_names(), "metric")
    return METRICS[name]


def metrics_of(inputs: MetricInputs) -> list[Metric[Any]]:
    """Return every metric that reads given inputs and is defined for them.

    Args:
        inputs: Inputs of one split.

    Returns:
        Metrics in alphabetical order of their names.
    """
    metrics = [METRICS[name] for name in metric_names()]
    return [metric for metric in metrics if isinstance(inputs, metric.reads) and metric.applies(inputs)]
