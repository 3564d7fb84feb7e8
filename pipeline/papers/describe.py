"""The resolved settings of a run: every setting of model and training, and nothing else."""

from pathlib import Path

import yaml

from pipeline.config import RunSpec
from pipeline.core.files import atomic_write
from pipeline.core.schema import parse_json


def describe(*, spec: str, out: Path) -> None:
    """Write the resolved settings of a run.

        python -m pipeline describe --spec '{"paper": "weighted", …}' --out work/demo/runs/weighted/A/…/run.yaml

    Args:
        spec: Specification of the run, as JSON.
        out: File run.yaml to write.
    """
    record = parse_json(RunSpec, spec, "--spec")
    with atomic_write(out) as handle:
        yaml.safe_dump(record.model_dump(), handle, sort_keys=False)
