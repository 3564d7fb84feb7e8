"""Unpack the .tar file of a model, and check that each of its files is as it was packed; or check a folder alone.

reprise unpack base-en-de.tar [FOLDER]
reprise unpack base-en-de/
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="FILE.tar", help="or the folder of a packed model")
    parser.add_argument("into", type=Path, nargs="?", default=Path(), metavar="FOLDER", help="default: this one")


def run(args: argparse.Namespace) -> None:
    from reprise.portable import unpack, verify  # brings torch

    folder = args.model if args.model.is_dir() else unpack(args.model, args.into)
    print(f"{folder}: {len(verify(folder))} files are as they were packed")
