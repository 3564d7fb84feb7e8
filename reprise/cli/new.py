"""The command `new`: create the files of a dataset or paper, for the user to edit."""

import json
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, count_of, one_line
from pipeline.core.files import atomic_write
from pipeline.core.yaml_file import yaml_text
from pipeline.data.dataset import load_dataset
from pipeline.data.languages import base_language, canonical
from pipeline.papers.project import load_project
from reprise.find_runs import find_root
from reprise.new_data import read_shares, recordings, text, trees
from reprise.scaffold import SCAFFOLD, fill_template, remove_on_failure, write_paper
from reprise.user_files import refuse_pipe

log = logging.getLogger(__name__)
LONGEST_NAME = 60
NAME = re.compile(rf"[a-z][a-z0-9-]{{0,{LONGEST_NAME - 1}}}")
FILE_KINDS = frozenset(
    (
        *("bak", "csv", "doc", "ids", "log", "low", "new", "old", "org", "raw", "seg"),
        *("sgm", "src", "srt", "tex", "tgt", "trg", "trn", "tsv", "txt", "val", "xml"),
        *("bin", "bpe", "ctm", "dev", "lab", "lst", "mrg", "odt", "one", "spm", "stm", "sub"),
        *("tab", "tar", "tgz", "tmp", "tst", "two", "xls"),
    )
)
"""File endings that are ISO 639 codes, but do not name the language of a file."""
SPLIT = "0.98/0.01/0.01"
UNKNOWN = {"licence": "not known; ask its owner before you redistribute it", "citation": "none given"}
DATASET_OPTIONS = (
    *("src", "tgt", "pairs", "trees", "recordings", "dev", "test", "split", "languages", "redistributable"),
    *UNKNOWN,
)
Files = Annotated[tuple[Path, ...], Argument(metavar="FILE")]


@dataclass(frozen=True)
class DataOptions:
    """Options of `reprise new`.

    Attributes:
        src: Source sentences, one per line.
        tgt: Their translations.
        pairs: Both, as a TSV file of two columns.
        trees: Constituency trees in Penn bracketing.
        recordings: TSV file with a header: audio, text[, speaker, start, seconds].
        dev: Development set: SRC TGT, or one file of trees.
        test: Test set, likewise.
        split: Shares of train, dev and test, if there are no --dev and --test; by default 0.98/0.01/0.01.
        languages: Languages as BCP 47 tags, such as `de` or `pt-BR`; by default the endings of the files.
        licence: Licence of the data; by default it is marked as not known.
        citation: How to cite the data; by default none is given.
        redistributable: Anyone may redistribute the data.
        dataset: For a paper, the dataset that its systems are trained on.
    """

    src: Path | None = None
    tgt: Path | None = None
    pairs: Path | None = None
    trees: Path | None = None
    recordings: Path | None = None
    dev: Files = ()
    test: Files = ()
    split: str | None = None
    languages: Annotated[tuple[str, str] | None, Argument(metavar=("SRC", "TGT"))] = None
    licence: str | None = None
    citation: str | None = None
    redistributable: bool = False
    dataset: str | None = None

    @property
    def shares(self) -> list[float]:
        """Shares of train, dev and test."""
        return read_shares(self.split or SPLIT)


def new(what: Literal["dataset", "paper"], name: str, *, given: DataOptions) -> None:
    """Create a dataset or a paper of your own.

        reprise new dataset mine --src talk.en --tgt talk.de              # split 98/1/1, under data/mine/
        reprise new dataset mine --src a.en --tgt a.de --dev d.en d.de --test t.en t.de
        reprise new dataset mine --src a.txt --tgt b.txt --languages en pl --split 0.9/0.05/0.05
        reprise new dataset mine --pairs talk.tsv --languages en de       # two columns, a tab between them
        reprise new dataset mine --trees news.mrg                         # Penn bracketing
        reprise new dataset mine --recordings calls.tsv --split 0.8/0.1/0.1   # columns audio, text, maybe speaker
        reprise new paper my-paper --dataset mine

    Writes files that you may edit. `snakemake my-paper` then trains and scores the systems and fills in the table.

    Args:
        what: Kind of thing to create.
        name: Lower-case letters, digits and `-`.
        given: The data and facts about them.

    Raises:
        UserError: The name or an option is invalid, or the data have a fault.
    """
    if not NAME.fullmatch(name):
        raise UserError(
            f"{one_line(name, 80)}: write a name of at most {LONGEST_NAME} lower-case letters, digits and `-` "
            "that starts with a letter"
        )
    if unused := unused_options(what, given):
        raise UserError(f"--{unused[0]}: has no effect with the other options")
    root = find_root()
    if what == "dataset":
        made = write_dataset(name, given, root)
        log.info("%s: `reprise new paper NAME --dataset %s` creates a comparison on it", made, name)
        return
    if not given.dataset:
        raise UserError("--dataset: name the dataset of the paper, such as one that `reprise new dataset` wrote")
    with remove_on_failure(root / "workflow/papers" / name):
        made = write_paper(load_project(root), name, given.dataset)
        load_project(root)  # raises if anything is wrong with it
    log.info("%s: `snakemake -n -- %s` shows what it would run", made, name)


def unused_options(what: str, given: DataOptions) -> list[str]:
    """Return the `given` options that have no effect beside the others, for a new dataset or paper (`what`)."""
    unused = {
        "dataset": True,
        "split": given.dev and given.test and not given.pairs,
        "languages": given.trees or given.recordings,
        "redistributable": given.recordings,  # recordings are never redistributed
    }
    found = DATASET_OPTIONS if what == "paper" else [option for option, is_unused in unused.items() if is_unused]
    return [option for option in found if getattr(given, option)]


def write_dataset(name: str, given: DataOptions, root: Path) -> Path:
    """Return the file of a new dataset `name`, which is written below `root`.

    Raises:
        UserError: A dataset has this name, or the data have a fault.
    """
    path = root / "workflow/datasets" / f"{name}.yaml"
    splits = root / "data" / name
    if path.exists():
        is_split = not (given.dev and given.test)  # which refuses splits with other contents, too
        old = f"{path} and {splits}" if is_split and splits.exists() else "it"
        raise UserError(f"{path}: exists already; choose another name, or move {old} away")
    single = (given.src, given.tgt, given.pairs, given.trees, given.recordings)
    for given_path in (*filter(None, single), *given.dev, *given.test):
        refuse_pipe(given_path)
    with remove_on_failure(splits):
        template, facts = choose_template(name, given, splits)
        terms = {key: json.dumps(getattr(given, key) or text, ensure_ascii=False) for key, text in UNKNOWN.items()}
        terms |= {"name": name, "domain": yaml_text(name), "title": f"{name}, data of one's own"}
        with atomic_write(path) as file:
            file.write(fill_template(root / SCAFFOLD / template, **terms, **facts))
        load_dataset(path)
    return path


def choose_template(name: str, given: DataOptions, folder: Path) -> tuple[str, dict[str, Any]]:
    """Choose the template for the data, and collect the facts that it needs.

    Args:
        name: Name of the dataset.
        given: The data.
        folder: Folder of the splits that are made of the data.

    Returns:
        The name of the template, and the values of its fields.

    Raises:
        UserError: The options name no data, or data of several kinds, or the data have a fault.
    """
    kinds = [kind for kind in ("src", "pairs", "trees", "recordings") if getattr(given, kind)]
    if len(kinds) != 1 or bool(given.src) != bool(given.tgt):
        raise UserError(
            "name the data: --src and --tgt, two files with parallel lines, or one of --pairs, --trees, --recordings"
        )
    if given.trees:
        return "treebank.yaml", trees.template_values(
            name, tree_splits(given, given.trees, folder), given.redistributable
        )
    if given.recordings:
        if given.dev or given.test:
            raise UserError("--recordings are split by --split; for splits of your own, edit the tables that it writes")
        utterances = recordings.read_table(given.recordings, name)
        facts = recordings.split_recordings(utterances, given.shares, folder)
        return "recordings.yaml", facts | {"folder": json.dumps(os.path.relpath(folder))}
    languages = languages_of(given)
    splits = text_splits(given, folder, languages)
    facts = text.template_values(name, languages, splits, given.redistributable)
    return "dataset.yaml", facts | {"src": yaml_text(languages[0]), "tgt": yaml_text(languages[1])}


def languages_of(given: DataOptions) -> tuple[str, str]:
    """Return the languages of source and target as canonical tags.

    Raises:
        UserError: They are unknown or the same, or contradict the names of the files.
    """
    if given.pairs and not given.languages:
        raise UserError("--languages: name the languages of the two columns of --pairs, such as en de")
    for option, (src_file, tgt_file) in sides_of(given).items():
        if is_same_file(src_file, tgt_file):
            place = "as --tgt" if src_file is given.src else "second"
            raise UserError(f"{option}: are both {src_file}; name the file of the translations {place}")
    named = given.languages or [path.suffix.removeprefix(".") for path in (given.src, given.tgt) if path]
    if kinds := [name for name in named if name.lower() in FILE_KINDS and not given.languages]:
        raise UserError(f"--languages: name the two languages, such as en de; a file ends in {kinds[0]!r}")
    try:
        src, tgt = map(canonical, named)
    except ValueError as error:
        raise UserError(f"--languages: {error}") from error
    if src == tgt:
        raise UserError(f"--languages: two languages are needed, such as en de; got {' and '.join(named)}")
    for sides in sides_of(given).values():
        refuse_swapped(given, sides, (src, tgt))
    return src, tgt


def sides_of(given: DataOptions) -> dict[str, tuple[Path, Path]]:
    """Return the source and target file of each split that is `given` as two files, by the options that name them."""
    every = {
        "--src and --tgt": [path for path in (given.src, given.tgt) if path],
        "files of --dev": given.dev,
        "files of --test": given.test,
    }
    return {option: (files[0], files[1]) for option, files in every.items() if len(files) == 2}


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, which may be missing."""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return one.resolve() == other.resolve()


def refuse_swapped(given: DataOptions, sides: tuple[Path, Path], languages: tuple[str, str]) -> None:
    """Refuse source and target files of a split that are named after each other's language.

    Args:
        given: The options, to name the remedy.
        sides: Source and target file.
        languages: Source and target language as canonical tags.

    Raises:
        UserError: One of the `sides` is.
    """
    src, tgt = map(base_language, languages)
    for path, language, other in zip(sides, languages, languages[::-1], strict=True):
        ending = language_of_name(path)
        if ending == other or (src != tgt and base_language(ending) == base_language(other)):
            says = "--languages says" if given.languages else "--src and --tgt say"
            remedy = "languages" if path in (given.src, given.tgt) else "files"
            ending = path.suffix.removeprefix(".")
            raise UserError(f"{path}: ends in {ending}, but {says} {language}; swap the {remedy}, or rename the file")


def language_of_name(path: Path) -> str:
    """Return the language that a file name ends in as a canonical tag, empty if there is none."""
    ending = path.suffix.removeprefix(".")
    if not ending or ending.lower() in FILE_KINDS:
        return ""
    try:
        return canonical(ending)
    except ValueError:
        return ""


def text_splits(given: DataOptions, folder: Path, languages: tuple[str, str]) -> dict[str, text.Sides]:
    """Return the source and target file of each split: those given, or those that one corpus is split into.

    Args:
        given: The data.
        folder: Folder of the splits that are written.
        languages: Source and target language.

    Raises:
        UserError: The options contradict each other, or the data have a fault.
    """
    has_dev_and_test = has_splits(given, 2)
    if given.pairs:
        if has_dev_and_test:
            raise UserError("--pairs are split by --split; use --dev and --test with --src and --tgt")
        pairs, path, reads = list(text.read_columns(given.pairs)), given.pairs, "cut -f 2"
    else:
        assert given.src and given.tgt
        sides = given.src, given.tgt
        if has_dev_and_test:
            (dev_src, dev_tgt), (test_src, test_tgt) = given.dev, given.test
            return {"train": sides, "dev": (dev_src, dev_tgt), "test": (test_src, test_tgt)}
        pairs, path, reads = list(text.read_pairs(sides)), given.tgt, "cat"
    text.require_raw(path, (tgt for _, tgt in pairs), languages[1], reads)  # a detokeniser removes tabs
    files, empty = text.split_pairs(iter(pairs), given.shares, folder, languages)
    log.info("%s: train, dev and test share no source sentence; %s left out", folder, count_of(empty, "empty pair"))
    return files


def tree_splits(given: DataOptions, corpus: Path, folder: Path) -> dict[str, Path]:
    """Return the file of each split: those given, or those in `folder` that the treebank `corpus` is split into."""
    if has_splits(given, 1):
        return {"train": corpus, "dev": given.dev[0], "test": given.test[0]}
    files = trees.split_trees(corpus, given.shares, folder)
    log.info("%s: train, dev and test share no sentence", folder)
    return files


def has_splits(given: DataOptions, files: int) -> bool:
    """Return whether --dev and --test are `given`, each with the number of `files`.

    Raises:
        UserError: Only one of them is given, or not with this number of files.
    """
    if bool(given.dev) != bool(given.test):
        raise UserError("give both --dev and --test, or neither, to split the data by --split")
    if given.dev and {len(given.dev), len(given.test)} != {files}:
        raise UserError(f"--dev and --test: give {files} file{'s' * (files > 1)} for each")
    return bool(given.dev)
