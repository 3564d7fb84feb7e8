"""Write a run's resolved specification: every setting of model and training, and nothing else.

python -m pipeline describe --spec '{"paper": "weighted", …}' --out work/demo/runs/weighted/A/…/run.yaml
"""

import argparse
from pathlib import Path

import yaml

from pipeline.config import RunSpec
from pipeline.core.files import atomic_write
from pipeline.core.schema import parse_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, help="the run specification as JSON")
    parser.add_argument("--out", type=Path, required=True, help="run.yaml to write")


def run(args: argparse.Namespace) -> None:
    spec = parse_json(RunSpec, args.spec, "--spec")
    with atomic_write(args.out) as handle:
        yaml.safe_dump(spec.model_dump(), handle, sort_keys=False)
