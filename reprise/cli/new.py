"""Begin a dataset or a paper of one's own, which then are files to change.

    reprise new dataset mine --src talk.en --tgt talk.de              # split 98/1/1, under data/mine/
    reprise new dataset mine --src a.en --tgt a.de --dev d.en d.de --test t.en t.de
    reprise new dataset mine --src a.txt --tgt b.txt --languages en pl --split 0.9/0.05/0.05
    reprise new dataset mine --pairs talk.tsv --languages en de       # two columns, a tab between them
    reprise new dataset mine --trees news.mrg                         # Penn bracketing
    reprise new dataset mine --recordings calls.tsv --split 0.8/0.1/0.1   # columns audio, text, perhaps speaker
    reprise new paper my-paper --dataset mine

`snakemake my-paper` then trains and scores its systems and fills in its table.
"""

import argparse
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.shown_text import one_line
from pipeline.core.yaml_file import yaml_text
from pipeline.data.dataset import load_dataset
from pipeline.data.languages import canonical
from pipeline.papers.project import load_project
from reprise.named_run import find_root
from reprise.new_data import recordings, text, trees
from reprise.new_data.shares import read_shares
from reprise.scaffold import SCAFFOLD, filled, undone_on_failure, write_paper

log = logging.getLogger(__name__)
LONGEST_NAME = 60
NAME = re.compile(rf"[a-z][a-z0-9-]{{0,{LONGEST_NAME - 1}}}")
FILE_KINDS = frozenset(
    (
        *("bak", "csv", "doc", "ids", "log", "low", "new", "old", "org", "raw", "seg"),
        *("sgm", "src", "srt", "tex", "tgt", "trg", "trn", "tsv", "txt", "val", "xml"),
    )
)
"""Endings of files that say nothing about a language, although ISO 639 has such codes."""
SPLIT = "0.98/0.01/0.01"
UNSAID = {"licence": "not known; ask its owner before you pass it on", "citation": "none given"}
OF_DATASETS = (
    *("src", "tgt", "pairs", "trees", "recordings", "dev", "test", "split", "languages", "redistributable"),
    *UNSAID,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("dataset", "paper"), help="what is begun")
    parser.add_argument("name", help="small letters, digits and `-`")
    parser.add_argument("--src", type=Path, help="source sentences, a line each")
    parser.add_argument("--tgt", type=Path, help="their translations")
    parser.add_argument("--pairs", type=Path, help="both, a TSV file of two columns")
    parser.add_argument("--trees", type=Path, help="constituency trees in Penn bracketing")
    parser.add_argument(
        "--recordings", type=Path, help="a TSV file with a header: audio, text[, speaker, start, seconds]"
    )
    parser.add_argument("--dev", type=Path, nargs="+", metavar="FILE", help="development set: SRC TGT, or one of trees")
    parser.add_argument("--test", type=Path, nargs="+", metavar="FILE", help="test set, likewise")
    parser.add_argument("--split", help=f"without --dev and --test (default: {SPLIT})")
    parser.add_argument("--languages", nargs=2, metavar=("SRC", "TGT"), help="ISO 639; default: the files' endings")
    parser.add_argument("--licence", help=f"default: {UNSAID['licence']}")
    parser.add_argument("--citation", help=f"default: {UNSAID['citation']}")
    parser.add_argument("--redistributable", action="store_true", help="anyone may pass the data on")
    parser.add_argument("--dataset", help="of a paper: what its systems are trained on")


def run(args: argparse.Namespace) -> None:
    if not NAME.fullmatch(args.name):
        raise UserError(
            f"{one_line(args.name, 80)}: write a name of at most {LONGEST_NAME} small letters, digits and `-`, "
            "beginning with a letter"
        )
    if unused := unused_options(args):
        raise UserError(f"--{unused[0]}: has no effect beside the other options")
    args.split = args.split or SPLIT
    root = find_root()
    if args.what == "dataset":
        made = write_dataset(args, root)
        log.info("%s: `reprise new paper NAME --dataset %s` begins a comparison on it", made, args.name)
        return
    if not args.dataset:
        raise UserError("--dataset: name the dataset of the paper, such as one that `reprise new dataset` wrote")
    with undone_on_failure(root / "workflow/papers" / args.name):
        made = write_paper(load_project(root), args.name, args.dataset)
        load_project(root)  # says what is wrong with it, if anything is
    log.info("%s: `snakemake -n -- %s` shows what it would run", made, args.name)


def unused_options(args: argparse.Namespace) -> list[str]:
    """Those given that the others leave without effect."""
    unused = {
        "dataset": True,
        "split": args.dev and args.test and not args.pairs,
        "languages": args.trees or args.recordings,
        "redistributable": args.recordings,  # they are never passed on
    }
    found = OF_DATASETS if args.what == "paper" else [option for option, is_unused in unused.items() if is_unused]
    return [option for option in found if getattr(args, option)]


def write_dataset(args: argparse.Namespace, root: Path) -> Path:
    """The file of the dataset, read back as every other. Raises UserError when the data have a fault."""
    path = root / "workflow/datasets" / f"{args.name}.yaml"
    if path.exists():
        raise UserError(f"{path}: is there already; choose another name, or remove it")
    splits = root / "data" / args.name
    with undone_on_failure(splits):
        template, facts = facts_of(args, splits)
        said = {key: json.dumps(getattr(args, key) or unsaid, ensure_ascii=False) for key, unsaid in UNSAID.items()}
        said |= {"name": args.name, "domain": yaml_text(args.name), "title": f"{args.name}, data of one's own"}
        with atomic_write(path) as file:
            file.write(filled(root / SCAFFOLD / template, **said, **facts))
        load_dataset(path)
    return path


def facts_of(args: argparse.Namespace, folder: Path) -> tuple[str, dict[str, Any]]:
    """The template for what was named, and what it asks of the data; splits that are made lie in `folder`."""
    given = [kind for kind in ("src", "pairs", "trees", "recordings") if getattr(args, kind)]
    if len(given) != 1 or bool(args.src) != bool(args.tgt):
        raise UserError(
            "name the data: --src and --tgt, two files that go line by line, or one of --pairs, --trees, --recordings"
        )
    match given[0]:
        case "trees":
            return "treebank.yaml", trees.described(args.name, tree_splits(args, folder), args.redistributable)
        case "recordings":
            if args.dev or args.test:
                raise UserError("--recordings are split (--split); for splits of your own, edit the tables it writes")
            utterances = recordings.read_table(args.recordings, args.name)
            facts = recordings.split_recordings(utterances, read_shares(args.split), folder)
            return "recordings.yaml", facts | {"folder": json.dumps(os.path.relpath(folder))}
    languages = languages_of(args)
    splits = text_splits(args, folder, languages)
    facts = text.described(args.name, languages, splits, args.redistributable)
    return "dataset.yaml", facts | {"src": yaml_text(languages[0]), "tgt": yaml_text(languages[1])}


def languages_of(args: argparse.Namespace) -> tuple[str, str]:
    if args.pairs and not args.languages:
        raise UserError("--languages: say those of the two columns of --pairs, such as en de")
    named = args.languages or [path.suffix.removeprefix(".") for path in (args.src, args.tgt)]
    if kinds := [one for one in named if one in FILE_KINDS and not args.languages]:
        raise UserError(f"--languages: name the two languages, such as en de; a file's ending says {kinds[0]!r}")
    try:
        src, tgt = map(canonical, named)
    except ValueError as error:
        raise UserError(f"--languages: {error}") from error
    if src == tgt:
        raise UserError(f"--languages: two languages are needed, such as en de; got {' and '.join(named)}")
    return src, tgt


def text_splits(args: argparse.Namespace, folder: Path, languages: tuple[str, str]) -> dict[str, text.Sides]:
    """The files of each split: those named, or those that one corpus is split into, in `folder`."""
    if has_splits(args, 2):
        if args.pairs:
            raise UserError("--pairs are split (--split); --dev and --test go with --src and --tgt")
        return {"train": (args.src, args.tgt), "dev": tuple(args.dev), "test": tuple(args.test)}
    pairs = list(text.read_columns(args.pairs) if args.pairs else text.read_pairs((args.src, args.tgt)))
    path, reads = (args.pairs, "cut -f 2") if args.pairs else (args.tgt, "cat")  # a detokeniser takes tabs away
    text.require_raw(path, (tgt for _, tgt in pairs), languages[1], reads)
    files, empty = text.split_pairs(iter(pairs), read_shares(args.split), folder, languages)
    log.info("%s: train, dev and test, no source sentence in two of them; %d empty pairs left out", folder, empty)
    return files


def tree_splits(args: argparse.Namespace, folder: Path) -> dict[str, Path]:
    if has_splits(args, 1):
        return {"train": args.trees, "dev": args.dev[0], "test": args.test[0]}
    files = trees.split_trees(args.trees, read_shares(args.split), folder)
    log.info("%s: train, dev and test, no sentence in two of them", folder)
    return files


def has_splits(args: argparse.Namespace, files: int) -> bool:
    """Whether --dev and --test are given. Raises UserError for one alone, or another number of files."""
    if bool(args.dev) != bool(args.test):
        raise UserError("--dev and --test go together; without them the data are split (--split)")
    if args.dev and {len(args.dev), len(args.test)} != {files}:
        raise UserError(f"--dev and --test: {files} file{'s' * (files > 1)} each")
    return bool(args.dev)
