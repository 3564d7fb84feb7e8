"""Stage `collect-recordings`: recordings of a corpus, unpacked from archives and listed in manifests."""

import logging
import os
import posixpath
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, NamedTuple

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError, count_of, shown
from pipeline.core.files import register_output, write_errors
from pipeline.data.dataset import RecordedDataset, SplitName, load_one_of
from pipeline.data.fetch import download, raw_text
from pipeline.data.fetch.archives import members, warn_of_repeat
from pipeline.data.fetch.links import link_target
from pipeline.data.speech.audio import seconds_of
from pipeline.data.speech.collect_text import is_comment, segment_text, table_rows
from pipeline.data.speech.manifest import Utterance, manifest_path, number_of, write_manifest
from pipeline.data.text.text_files import lines_of

log = logging.getLogger(__name__)
BLOCK = 1 << 20
"""Bytes that are compared at once."""


def collect_recordings(*, dataset: Path, downloads: Path, corpus: Path, mirror: str | None = None) -> None:
    r"""Fetch, verify and unpack the archives of a corpus of recordings, and list its utterances.

        python -m pipeline collect-recordings --dataset workflow/datasets/fsdd.yaml --downloads work/downloads \
            --corpus work/corpora/fsdd --mirror /data/mirror

    reads   the mirror, <downloads>/<file>, or the addresses of the dataset file
    writes  <corpus>/audio/<archive>/<member>   the files that its layout needs
            <corpus>/manifests/<split>.tsv      the utterances of each split

    A training utterance of a recording that is also in a dev or test set is left out. Files that are unpacked already
    are compared, and only what differs is written. Files of an earlier archive of the same name are removed.

    Args:
        dataset: Dataset file.
        downloads: Folder of fetched files.
        corpus: Folder of the corpus.
        mirror: Folder or URL that is tried first; variables such as `$MIRROR` are expanded.
    """
    record = load_one_of(dataset, RecordedDataset, "recordings")
    collect(record, download.fetch_all(record, downloads, download.expand_variables(mirror)), corpus)
    raw_text.write_raw_mark(corpus)


def collect(dataset: RecordedDataset, files: dict[str, Path], corpus: Path) -> None:
    """Unpack the archives of a `dataset`, `files` by source, and write the manifests of a `corpus`.

    Raises:
        UserError: An archive is damaged, has a member outside its folder, or has no utterance of a split.
    """
    layout = LAYOUTS[dataset.layout]
    wanted: dict[str, list[str]] = {}
    for part in (part for parts in dataset.splits.values() for part in parts):
        wanted.setdefault(part.source, []).append(part.members)
    for source, patterns in wanted.items():
        unpack(files[source], patterns, layout.suffixes, folder_of(corpus, source))
        register_output(folder_of(corpus, source))
    held_out: set[str] = set()
    for split in reversed(dataset.split_names):
        found = without_aliases(layout, list(utterances(dataset, split, files, corpus)), f"{dataset.name} {split}")
        kept = [utterance for utterance in found if split != "train" or layout.recording(utterance) not in held_out]
        held_out |= {layout.recording(utterance) for utterance in kept}
        if not kept:
            raise UserError(
                f"{dataset.name}: split {split} has no utterances; correct its `members` in the dataset file"
            )
        write_manifest(manifest_path(corpus, split), kept)
        hours, doubled = sum(utterance.seconds for utterance in kept) / 3600, len(found) - len(kept)
        log.info("%s %s: %d utterances, %.2f h; %d also in a test set", dataset.name, split, len(kept), hours, doubled)


def utterances(dataset: RecordedDataset, split: SplitName, files: dict[str, Path], corpus: Path) -> Iterator[Utterance]:
    """Yield the utterances of a `split` from the unpacked archives; see `collect`.

    Raises:
        UserError: A table or transcript names audio outside the archive's folder.
    """
    layout = LAYOUTS[dataset.layout]
    for part in dataset.splits[split]:
        table, folder = files[part.table] if part.table else None, folder_of(corpus, part.source)
        for utterance in layout.utterances(folder, part.members, dataset.domain, table):
            if Path(name := os.path.relpath(utterance.audio, folder)).parts[0] == os.pardir:
                raise UserError(f"{part.table or part.source}: names {shown(name)}, which is not in {part.source}")
            yield utterance


def without_aliases(layout: "Layout", found: list[Utterance], where: str) -> list[Utterance]:
    """Return `found` utterances of a `layout` without repeats, and log how many there were in `where`.

    An archive may have a folder and a link to it, which one pattern matches.
    """
    if not layout.named_once:
        return found
    kept = {(layout.recording(each), each.start, each.text): each for each in reversed(found)}
    if repeated := len(found) - len(kept):
        counted = count_of(repeated, "utterance is", "utterances are")
        log.warning("%s: %s in the archives under several names; each counts once", where, counted)
    return list(reversed(kept.values()))


def folder_of(corpus: Path, source: str) -> Path:
    """Return the folder of a `corpus` into which the archive `source` is unpacked."""
    return corpus / "audio" / source


def unpack(archive: Path, patterns: list[str], suffixes: tuple[str, ...], folder: Path) -> None:
    """Write the wanted members of an archive below a folder, under their names, and remove others of the suffixes.

    Args:
        archive: Fetched archive.
        patterns: Patterns of `fnmatch`, of which a member must match one.
        suffixes: Suffixes of names, of which a member must have one.
        folder: Folder for the members. Of several members of one name the last one counts.
    """

    def wanted(name: str) -> bool:
        return name.endswith(suffixes) and any(fnmatch(name, pattern) for pattern in patterns)

    unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    require_space(folder, archive.stat().st_size - unpacked, f"the recordings of {archive.name}")
    read: set[str] = set()
    for name, size, content in members(archive, wanted):
        path = folder / name
        if name in read:
            warn_of_repeat(archive.name, name)
        read.add(name)
        with write_errors(path):
            if (more := size - (path.stat().st_size if path.exists() else 0)) > 0:
                require_space(folder, more, f"{name} of {archive.name}")
            update(path, content)
    for path in folder.rglob("*"):
        if path.name.endswith(suffixes) and path.is_file() and path.relative_to(folder).as_posix() not in read:
            with write_errors(path):
                path.unlink()  # left by an earlier archive
    log.info("%s: %d files in %s", archive.name, len(read), folder)


def update(path: Path, content: IO[bytes]) -> None:
    """Give the file `path` this `content`, and write only what differs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "r+b" if path.exists() else "w+b") as file:
        while block := content.read(BLOCK):
            begin = file.tell()
            if file.read(len(block)) != block:
                file.seek(begin)
                file.write(block)
        if path.stat().st_size > file.tell():
            file.truncate()


UNPACK = "run the stage `collect-recordings` again"


class Layout(NamedTuple):
    """Layout of a published corpus: how utterances are found among its unpacked files."""

    suffixes: tuple[str, ...]
    utterances: Callable[[Path, str, str, Path | None], Iterator[Utterance]]
    named_once: bool

    def recording(self, utterance: Utterance) -> str:
        """Return the recording that an utterance belongs to."""
        return utterance.audio.name if self.named_once else str(utterance.audio)


def librispeech(folder: Path, members: str, domain: str, listing: Path | None) -> Iterator[Utterance]:
    """Yield utterances of <reader>/<chapter>/<reader>-<chapter>.trans.txt, with FLAC files beside it.

    Args:
        folder: Folder of the unpacked archive.
        members: Pattern of the transcripts' paths in it.
        domain: Domain of the text, for the manifest.
        listing: Unused.
    """
    for transcripts in matching_files(folder, members, ".trans.txt"):
        for line in lines_of(transcripts, UNPACK):
            name, _, text = line.partition(" ")
            audio = transcripts.with_name(f"{name}.flac")
            yield Utterance(audio, text, name.split("-")[0], domain, seconds_of(audio))


def tedlium(folder: Path, members: str, domain: str, listing: Path | None) -> Iterator[Utterance]:
    """Yield the transcribed segments of stm/<talk>.stm, with audio in sph/<talk>.sph; see `librispeech`.

    Raises:
        UserError: A line has no segment, a time is not a number, or a segment ends before it starts.
    """
    for transcripts in matching_files(folder, members, ".stm"):
        audio = transcripts.parents[1] / "sph" / f"{transcripts.stem}.sph"
        for number, line in enumerate(lines_of(transcripts, UNPACK), start=1):
            if is_comment(line) or not line.strip():
                continue
            fields = line.split(None, 6)
            if len(fields) < 6:
                raise UserError(f"{transcripts}: line {number}: no segment; fetch the archive again")
            if text := segment_text(line):
                start, end = (number_of(field, f"{transcripts}: line {number}") for field in fields[3:5])
                if end < start:
                    raise UserError(f"{transcripts}: line {number}: ends before it starts; correct the archive")
                yield Utterance(audio, text, fields[2], domain, end - start, start)


def tabular(folder: Path, members: str, domain: str, listing: Path | None) -> Iterator[Utterance]:
    """Yield utterances of the TSV file `listing` with columns path, speaker and transcript; see `librispeech`."""
    assert listing, "every part of this layout names a table"
    for row in table_rows(lines_of(listing, UNPACK), ("path", "speaker", "transcript"), str(listing)):
        path = posixpath.normpath(link_target("", row["path"]))  # spelt as the members of an archive
        if fnmatch(path, members):
            audio = folder / path
            yield Utterance(audio, row["transcript"], row["speaker"], domain, seconds_of(audio))


LAYOUTS = {
    "librispeech": Layout((".flac", ".trans.txt"), librispeech, named_once=True),
    "tedlium": Layout((".sph", ".stm"), tedlium, named_once=True),
    "table": Layout((".flac", ".wav"), tabular, named_once=False),
}


def matching_files(folder: Path, members: str, suffix: str) -> list[Path]:
    """Return files below `folder` with a `suffix` whose relative path matches the pattern `members`, sorted."""
    found = sorted(folder.rglob(f"*{suffix}"))
    return [path for path in found if fnmatch(path.relative_to(folder).as_posix(), members)]
