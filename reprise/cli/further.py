"""Train a run for more updates than it was, from its last checkpoint, as another run beside it.

    reprise continue attention/base/wmt14-en-de/1 --steps 200000

The workflow finds it once `max_steps` says so.
"""

import argparse

from pipeline.papers.arguments import add_settings_argument
from pipeline.papers.settings import parse_settings
from pipeline.training.arguments import add_machine_arguments
from reprise import longer
from reprise.named_run import find_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="RUN", help="paper/system/dataset/seed, or a run's folder")
    longer.add_length_arguments(parser)
    add_machine_arguments(parser, longer.THREADS)
    add_settings_argument(parser)


def run(args: argparse.Namespace) -> None:
    args.run = find_run(args.name, parse_settings(args.set)).folder
    longer.run(args)
