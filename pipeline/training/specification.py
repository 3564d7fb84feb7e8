"""The specification of a run, `run.yaml`: all that its training reads."""

from pathlib import Path

import yaml

from pipeline.config import RunSpec
from pipeline.core.digests import recording_digests
from pipeline.core.files import atomic_write
from pipeline.core.layout import RUN_FILE
from pipeline.core.schema import parse_json


def write_specification(run_folder: Path, specification: str) -> None:
    """Write `run.yaml` from JSON unless it says the same already. Raises UserError for a faulty specification."""
    path, spec = run_folder / RUN_FILE, parse_json(RunSpec, specification, "--spec")
    text = yaml.safe_dump(spec.model_dump(), sort_keys=False)
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") == text:
        return
    with recording_digests(), atomic_write(path) as handle:
        handle.write(text)
