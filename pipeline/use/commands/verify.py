"""Check that every file of a packed model is as it was packed: reprise verify base-en-de/"""

import argparse
from pathlib import Path

from pipeline.use.portable import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="of a packed model")


def run(args: argparse.Namespace) -> None:
    print(f"{args.folder}: {len(verify(args.folder))} files are as they were packed")
