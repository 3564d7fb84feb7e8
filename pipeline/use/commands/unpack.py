"""Unpack the .tar file of a model, and verify it: reprise unpack base-en-de.tar [FOLDER]"""

import argparse
from pathlib import Path

from pipeline.use.portable import unpack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", type=Path, metavar="FILE.tar")
    parser.add_argument("into", type=Path, nargs="?", default=Path(), metavar="FOLDER", help="default: this one")


def run(args: argparse.Namespace) -> None:
    print(unpack(args.archive, args.into))
