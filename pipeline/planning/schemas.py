"""Write the JSON schemas of every YAML file a user may edit, with type, range, default and meaning of each key.

    python -m pipeline schemas --out workflow/schemas

They are generated from the records in `pipeline/`, so that a key is described once; a test keeps them fresh.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.analysis.convergence import Floors
from pipeline.cluster.site import Site
from pipeline.config import RunSpec
from pipeline.core.files import atomic_write
from pipeline.data.dataset import Dataset, Origin
from pipeline.papers.claims import Claims
from pipeline.papers.paper import Paper
from pipeline.papers.scale import Scale
from pipeline.papers.settings import Config
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("workflow/schemas"), help="folder of the schemas")


def run(args: argparse.Namespace) -> None:
    for name, record in RECORDS.items():
        with atomic_write(args.out / f"{name}.json") as handle:
            handle.write(schema_text(record))


def schema_text(record: Any) -> str:
    return json.dumps(TypeAdapter(record).json_schema(), indent=1, ensure_ascii=False) + "\n"
