"""Write a run's resolved specification: every setting of model and training, and nothing else.

python -m pipeline describe --spec '{"paper": "weighted", …}' --out work/demo/runs/weighted/A/…/run.yaml
"""

import argparse
import json
from pathlib import Path

import yaml

from pipeline.config import RunSpec
from pipeline.errors import UserError
from pipeline.files import atomic_write
from pipeline.schema import validate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, help="the run specification as JSON")
    parser.add_argument("--out", type=Path, required=True, help="run.yaml to write")


def run(args: argparse.Namespace) -> None:
    try:
        values = json.loads(args.spec)
    except ValueError as error:
        raise UserError(f"--spec is not JSON: {error}") from error
    spec = validate(RunSpec, values, "--spec")
    with atomic_write(args.out) as handle:
        yaml.safe_dump(spec.model_dump(), handle, sort_keys=False)
