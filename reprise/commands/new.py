"""Begin a dataset or a paper of one's own, which then are files to change.

    reprise new dataset mine --src talk.en --tgt talk.de              # split 98/1/1, under data/mine/
    reprise new dataset mine --src a.en --tgt a.de --dev d.en d.de --test t.en t.de
    reprise new dataset mine --src a.txt --tgt b.txt --languages en pl --split 0.9/0.05/0.05
    reprise new paper my-paper --dataset mine

`snakemake my-paper` then trains and scores its systems and fills in its table.
"""

import argparse
import json
import logging
import re
from pathlib import Path

from pipeline.data.dataset import load_dataset
from pipeline.errors import UserError
from pipeline.experiment.project import load_project
from pipeline.files import atomic_write
from reprise.named_run import find_root
from reprise.new_dataset import Sides, described, read_pairs, split_pairs
from reprise.scaffold import SCAFFOLD, filled, write_paper

log = logging.getLogger(__name__)
NAME, LANGUAGE = re.compile(r"[a-z][a-z0-9-]*"), re.compile(r"[a-z]{2,3}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("dataset", "paper"))
    parser.add_argument("name", help="small letters, digits and `-`")
    parser.add_argument("--src", type=Path, help="source sentences, a line each")
    parser.add_argument("--tgt", type=Path, help="their translations")
    parser.add_argument("--dev", type=Path, nargs=2, metavar=("SRC", "TGT"), help="development set")
    parser.add_argument("--test", type=Path, nargs=2, metavar=("SRC", "TGT"), help="test set")
    parser.add_argument("--split", default="0.98/0.01/0.01", help="without --dev and --test (default: %(default)s)")
    parser.add_argument("--languages", nargs=2, metavar=("SRC", "TGT"), help="ISO 639; default: the files' endings")
    parser.add_argument("--licence", default="not known; ask its owner before you pass it on")
    parser.add_argument("--citation", default="none given")
    parser.add_argument("--redistributable", action="store_true", help="anyone may pass the data on")
    parser.add_argument("--dataset", help="of a paper: what its systems are trained on")


def run(args: argparse.Namespace) -> None:
    if not NAME.fullmatch(args.name):
        raise UserError(f"{args.name}: a name is of small letters, digits and `-`, beginning with a letter")
    root = find_root()
    if args.what == "dataset":
        made = write_dataset(args, root)
        log.info("%s: `reprise new paper NAME --dataset %s` begins a comparison on it", made, args.name)
        return
    if not args.dataset:
        raise UserError("--dataset: name the dataset of the paper, such as one that `reprise new dataset` wrote")
    made = write_paper(load_project(root), args.name, args.dataset)
    load_project(root)  # says what is wrong with it, if anything is
    log.info("%s: `snakemake -n %s` shows what it would run", made, args.name)


def write_dataset(args: argparse.Namespace, root: Path) -> Path:
    """The file of the dataset, read back as every other. Raises UserError when the text has a fault."""
    path = root / "workflow/datasets" / f"{args.name}.yaml"
    if path.exists():
        raise UserError(f"{path}: is there already; choose another name, or remove it")
    if not (args.src and args.tgt):
        raise UserError("name the text: --src and --tgt, two files that go line by line")
    languages = languages_of(args)
    splits = splits_of(args, root / "data" / args.name, languages)
    facts = described(args.name, languages, splits, args.redistributable)
    said = {key: json.dumps(getattr(args, key), ensure_ascii=False) for key in ("licence", "citation")}
    said |= {"name": args.name, "title": f"{args.name}, text of one's own", "src": languages[0], "tgt": languages[1]}
    with atomic_write(path) as file:
        file.write(filled(root / SCAFFOLD / "dataset.yaml", **said, **facts))
    load_dataset(path)
    return path


def languages_of(args: argparse.Namespace) -> tuple[str, str]:
    src, tgt = args.languages or (path.suffix.removeprefix(".") for path in (args.src, args.tgt))
    if not (LANGUAGE.fullmatch(src) and LANGUAGE.fullmatch(tgt)) or src == tgt:
        raise UserError(f"--languages: two ISO 639 codes, such as en de, are needed; the files say {src!r} and {tgt!r}")
    return src, tgt


def splits_of(args: argparse.Namespace, folder: Path, languages: tuple[str, str]) -> dict[str, Sides]:
    """The files of each split: those named, or those that one corpus is split into, in `folder`."""
    if bool(args.dev) != bool(args.test):
        raise UserError("--dev and --test go together; without them the text is split (--split)")
    if args.dev:
        return {"train": (args.src, args.tgt), "dev": tuple(args.dev), "test": tuple(args.test)}
    shares = [float(share) for share in re.findall(r"\d*\.?\d+", args.split)]
    if len(shares) != 3 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise UserError(f"--split {args.split}: three shares that sum to 1, such as 0.98/0.01/0.01")
    files, empty = split_pairs(read_pairs((args.src, args.tgt)), shares, folder, languages)
    log.info("%s: train, dev and test, no source sentence in two of them; %d empty pairs left out", folder, empty)
    return files
