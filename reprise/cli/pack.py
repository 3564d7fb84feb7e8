"""Put a trained model into one folder, or one .tar file, that works anywhere, offline and by itself.

    reprise pack attention/base/wmt14-en-de/1 base-en-de.tar
    reprise translate base-en-de talk.en        # after `reprise unpack base-en-de.tar`

In it are weights, vocabulary, preparation of text or sound, settings, scores, the data's licence and a model card, and
no sentence of the data.
"""

import argparse
import logging
import shutil
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.papers.settings import parse_settings
from reprise.named_run import find_run
from reprise.opening import add_run_argument

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write, or a file NAME.tar")


def run(args: argparse.Namespace) -> None:
    from reprise.portable import pack, pack_archive  # brings torch

    if is_other_archive(args.out):
        raise UserError(f"{args.out}: an archive of a model is a .tar file; name one, or a folder")
    found = find_run(args.model, parse_settings(args.set))
    (pack_archive if args.out.suffix == ".tar" else pack)(found, args.decoding, args.out)
    log.info("%s: %s", args.out, found.id.folder)


def is_other_archive(path: Path) -> bool:
    """Whether it is called like an archive that is none of ours."""
    endings = {ending for _, known, _ in shutil.get_unpack_formats() for ending in known} - {".tar"}
    return path.name.lower().endswith(tuple(endings))
