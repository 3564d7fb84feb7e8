"""Say what is in a prepared dataset: sizes, lengths, what was left out and why with examples, overlaps, licence.

reprise report multi30k-en-de
"""

import argparse

from pipeline.experiment.settings import parse_settings
from pipeline.schema import known
from pipeline.use.dataset_report import report
from pipeline.use.named_run import find_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a file of workflow/datasets, without .yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="replace a key of config.yaml")


def run(args: argparse.Namespace) -> None:
    project = find_project(parse_settings(args.set))
    known(args.dataset, project.datasets, "DATASET")
    for line in report(project.dataset_records[args.dataset], project.layout):
        print(line)
