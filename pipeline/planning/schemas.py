"""JSON schemas of the YAML files that users edit, generated from the records in `pipeline/`."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.analysis.claims import Claims
from pipeline.analysis.training_curves import Floors
from pipeline.cluster.resources import Site
from pipeline.config import RunSpec
from pipeline.core.files import atomic_write
from pipeline.data.dataset import Dataset, Origin
from pipeline.papers.config_file import Config
from pipeline.papers.paper import Paper
from pipeline.papers.scale import Scale
from pipeline.planning.devices import Devices

RECORDS = {
    "config": Config,
    "paper": Paper,
    "claims": Claims,
    "scale": Scale,
    "dataset": Dataset,
    "files": Origin,
    "devices": Devices,
    "floors": Floors,
    "site": Site,
    "run": RunSpec,
}


def write_schemas(*, out: Path = Path("workflow/schemas")) -> None:
    """Write the JSON schemas of the YAML files that users edit.

        python -m pipeline schemas --out workflow/schemas

    Each key has its type, range, default and meaning.

    Args:
        out: Folder of the schemas.
    """
    for name, record in RECORDS.items():
        with atomic_write(out / f"{name}.json") as handle:
            handle.write(schema_text(record))


def schema_text(record: Any) -> str:
    """Return the schema of a record as JSON."""
    return json.dumps(TypeAdapter(record).json_schema(), indent=1, ensure_ascii=False) + "\n"
