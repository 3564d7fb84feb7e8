"""Stage `collect-trees`: raw trees of a treebank, from fetched files and folders of licensed packages."""

import hashlib
import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.data.dataset import ExpectedTrees, Source, TreebankDataset, TreePart, load_one_of
from pipeline.data.fetch import download, raw_text, transfer, untrusted
from pipeline.data.fetch.packages import Packages, existing_files, package_folders
from pipeline.data.trees.trees import bracketings

log = logging.getLogger(__name__)


def collect_trees(
    *, dataset: Path, downloads: Path, corpus: Path, mirror: str | None = None, package: Packages = ()
) -> None:
    r"""Collect the trees of a treebank.

        python -m pipeline collect-trees --dataset workflow/datasets/craft.yaml --downloads work/downloads \
            --corpus work/corpora/craft --mirror /data/mirror
        python -m pipeline collect-trees --dataset workflow/datasets/wsj.yaml --downloads work/downloads \
            --corpus work/corpora/wsj --package LDC99T42=/corpora/LDC99T42/treebank_3

    reads   the mirror or <downloads>/<file>, else the documents on the web; the files of the packages
    writes  <corpus>/raw/{train,dev,test}.trees   one tree per line, as annotated, white space collapsed

    Every file of a package is looked for before any is read. Each split must have the number of trees and the digest
    that the dataset file gives.

    Args:
        dataset: Dataset file.
        downloads: Folder of fetched files.
        corpus: Folder of the corpus.
        mirror: Folder or URL that is tried first; variables such as `$MIRROR` are expanded.
        package: Folder of a licensed package, or of your own corpus. May be given several times.
    """
    record = load_one_of(dataset, TreebankDataset, "trees that others annotated; `generate` is for the grammar")
    packages = package_folders(record, package)
    sources = {
        name: fetch_trees(name, source, downloads, download.expand_variables(mirror))
        for name, source in record.sources.items()
    }
    for split in record.split_names:
        parts = [
            (part, sources[part.place] if part.source else existing_files(part.place, packages[part.place], part.files))
            for part in record.splits[split].parts
        ]
        path = corpus / f"raw/{split}.trees"
        write_trees(path, parts, record.expected.get(split))
    raw_text.write_raw_mark(corpus)


def fetch_trees(name: str, source: Source, downloads: Path, mirror: str | None) -> list[Path]:
    """Return a source as one verified file, or else as its documents in order; see `fetch`.

    Raises:
        UserError: Neither is available.
    """
    try:
        return [download.fetch(name, source, downloads, mirror)]
    except UserError as error:
        if source.documents is None:
            raise
        log.info(
            "%s is not available as one file (%s): fetching its %d documents", name, error, len(source.documents.names)
        )
    folder = documents_folder(name, downloads)
    try:
        return [
            transfer.fetch_url(source.documents.folder + document, folder / document, known_hash=None)
            for document in source.documents.names
        ]
    except transfer.DownloadError as error:
        raise UserError(
            f"{error}; put {name} into {downloads}, or set `mirror:` to a folder that has it as {source.mirror}"
        ) from error


def documents_folder(name: str, downloads: Path) -> Path:
    """Return the folder in `downloads` for the documents of the source `name` without a single file."""
    return downloads / f"{name}.documents"


def write_trees(path: Path, parts: list[tuple[TreePart, list[Path]]], expected: ExpectedTrees | None) -> None:
    """Write a split, its `parts` with their files, atomically, and check it against what is `expected`, if any.

    Raises:
        UserError: A file is not Penn bracketing, a part has too few trees, or the split is not as expected.
    """
    digest, count = hashlib.sha256(), 0
    with atomic_write(path) as output:
        for part, files in parts:
            for tree in trees_of_part(part, files):
                output.write(f"{tree}\n")
                digest.update(f"{tree}\n".encode())
                count += 1
        if expected and count != expected.lines:
            raise UserError(
                f"{path}: {count_of(count, 'tree')} found, expected {expected.lines}; the source files are wrong"
            )
        if expected and expected.sha256 not in (None, digest.hexdigest()):
            folders = sorted({str(file.parent) for _, files in parts for file in files})
            raise UserError(
                f"{path}: sha256 of the trees is {digest.hexdigest()}, expected {expected.sha256}; remove the "
                f"files in {', '.join(folders)} and fetch them again"
            )
    log.info("%s: %s trees", path, f"{count:,}")


def trees_of_part(part: TreePart, files: list[Path]) -> Iterator[str]:
    """Yield the trees of a `part` of `files`, read in order, each on one line.

    Raises:
        UserError: There are fewer than the part names.
    """
    begin = part.first - 1
    count = 0
    for tree in islice(read_trees(files), begin, None if part.trees is None else begin + part.trees):
        count += 1
        yield tree
    if not count or part.trees not in (None, count):
        raise UserError(
            f"{files[0]}: {count_of(count, 'tree')} from number {part.first} on, expected "
            f"{part.trees or 'some'}; fetch it again"
        )


def read_trees(files: list[Path]) -> Iterator[str]:
    """Yield the trees of several files.

    Raises:
        UserError: A file is damaged or not Penn bracketing.
    """
    for path in files:
        with untrusted.opened(path) as file:
            lines = untrusted.decoded_lines(untrusted.gunzipped(file, path.name, path, path.stat().st_size), path)
            yield from (tree for _, tree in bracketings(lines, str(path)))
