"""The arguments of the stages that make a corpus."""

import argparse
from pathlib import Path


def corpus_arguments(
    parser: argparse.ArgumentParser, fetches: bool = False, packages: bool = False, parallel: bool = False
) -> None:
    """--dataset and --corpus; what a stage needs that fetches files, reads packages, or works in several processes."""
    parser.add_argument("--dataset", type=Path, required=True, help="dataset file")
    if fetches:
        parser.add_argument("--downloads", type=Path, required=True, help="folder of fetched files")
        parser.add_argument("--mirror", help="folder or URL tried first")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus")
    if packages:
        owned = "a licensed package, or a corpus of the user's own"
        parser.add_argument("--package", action="append", default=[], metavar="NAME=FOLDER", help=owned)
    if parallel:
        parser.add_argument("--processes", type=int, default=1, help="processes that share the work")
