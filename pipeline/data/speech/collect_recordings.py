"""The recordings of a corpus, unpacked from its archives and listed."""

import logging
import os
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import made, writing
from pipeline.core.shown_text import shown
from pipeline.data.dataset import RecordedDataset, SplitName, load_one_of
from pipeline.data.fetch.archives import members
from pipeline.data.fetch.download import fetch_all
from pipeline.data.fetch.raw_mark import write_raw_mark
from pipeline.data.speech.layouts import LAYOUTS
from pipeline.data.speech.manifest import Utterance, manifest_path, write_manifest

log = logging.getLogger(__name__)


def collect_recordings(*, dataset: Path, downloads: Path, corpus: Path, mirror: str | None = None) -> None:
    """Fetch, verify and unpack the archives of a corpus of recordings, and list its utterances.

        python -m pipeline collect-recordings --dataset workflow/datasets/fsdd.yaml --downloads work/downloads \\
            --corpus work/corpora/fsdd --mirror /data/mirror

    reads   the mirror, <downloads>/<file>, or the addresses of the dataset file
    writes  <corpus>/audio/<archive>/<member>   the files that its layout needs (layouts.py)
            <corpus>/manifests/<split>.tsv      the utterances of each split (manifest.py)

    A training utterance of a recording that is also in a dev or test set is left out. Files that are unpacked already
    are not written again.

    Args:
        dataset: Dataset file.
        downloads: Folder of fetched files.
        corpus: Folder of the corpus.
        mirror: Folder or URL that is tried first.
    """
    record = load_one_of(dataset, RecordedDataset, "recordings")
    collect(record, fetch_all(record, downloads, mirror), corpus)
    write_raw_mark(corpus)


def collect(dataset: RecordedDataset, files: dict[str, Path], corpus: Path) -> None:
    """Unpack, and write the manifests. files: fetched files by source.

    Raises:
        UserError: an archive is damaged, has a member that escapes its folder, or has no utterance of a split.
    """
    layout = LAYOUTS[dataset.layout]
    wanted: dict[str, list[str]] = {}
    for part in (part for parts in dataset.splits.values() for part in parts):
        wanted.setdefault(part.source, []).append(part.members)
    for source, patterns in wanted.items():
        unpack(files[source], patterns, layout.suffixes, folder_of(corpus, source))
        made(folder_of(corpus, source))
    held_out: set[str] = set()
    for split in reversed(dataset.split_names):
        found = list(utterances(dataset, split, files, corpus))
        kept = [one for one in found if split != "train" or layout.recording(one) not in held_out]
        held_out |= {layout.recording(one) for one in kept}
        if not kept:
            raise UserError(
                f"{dataset.name}: split {split} has no utterance; correct its `members` in the dataset file"
            )
        write_manifest(manifest_path(corpus, split), kept)
        hours, doubled = sum(one.seconds for one in kept) / 3600, len(found) - len(kept)
        log.info("%s %s: %d utterances, %.2f h; %d also in a test set", dataset.name, split, len(kept), hours, doubled)


def utterances(dataset: RecordedDataset, split: SplitName, files: dict[str, Path], corpus: Path) -> Iterator[Utterance]:
    """Raises UserError when a table or transcript names audio outside of the archive's folder."""
    layout = LAYOUTS[dataset.layout]
    for part in dataset.splits[split]:
        table, folder = files[part.table] if part.table else None, folder_of(corpus, part.source)
        for one in layout.utterances(folder, part.members, dataset.domain, table):
            if Path(name := os.path.relpath(one.audio, folder)).parts[0] == os.pardir:
                raise UserError(f"{part.table or part.source}: names {shown(name)}, which is not in {part.source}")
            yield one


def folder_of(corpus: Path, source: str) -> Path:
    """Where an archive is unpacked."""
    return corpus / "audio" / source


def unpack(archive: Path, patterns: list[str], suffixes: tuple[str, ...], folder: Path) -> None:
    """Write the members that have one of the suffixes and fit a pattern below `folder`, under their names."""

    def wanted(name: str) -> bool:
        return name.endswith(suffixes) and any(fnmatch(name, pattern) for pattern in patterns)

    require_space(folder, archive.stat().st_size, f"the recordings of {archive.name}")
    count = 0
    for name, size, content in members(archive, wanted):
        count += 1
        path = folder / name
        with writing(path):
            if not (path.exists() and path.stat().st_size == size):
                require_space(folder, size, f"{name} of {archive.name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "wb") as output:
                    shutil.copyfileobj(content, output, 1 << 20)
    log.info("%s: %d files in %s", archive.name, count, folder)
