"""Manifests: the one format that lists every speech corpus, including those of users.

A manifest is a UTF-8 TSV file with a header. Its columns, in any order:

    audio     file, relative to the manifest's folder
    text      transcript
    speaker   name
    domain    of the text
    seconds   length of the utterance
    start     start in the file, in seconds; optional if every utterance is a file

Lines may end as on Windows, a byte order mark may come first, and empty lines are skipped.

`<corpus>/manifests/<split>.tsv` lists the collected or synthesised utterances.
"""

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.data.dataset import SplitName
from pipeline.data.text.text_files import lines_of, read_rows

log = logging.getLogger(__name__)
UNNAMED = "unnamed"
"""Speaker of recordings whose speaker is unknown."""
REQUIRED = ("audio", "text", "speaker", "domain", "seconds")
COLUMNS = (*REQUIRED, "start")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One line of a manifest; the audio file may be missing."""

    audio: Path
    text: str
    speaker: str
    domain: str
    seconds: float
    start: float = 0.0


def manifest_path(corpus: Path, split: str) -> Path:
    """Return the manifest of a `split` of a `corpus`."""
    return corpus / f"manifests/{split}.tsv"


def write_manifest(path: Path, utterances: Iterable[Utterance]) -> int:
    """Write `utterances`, tabs in texts as spaces, to `path`, from where their audio is named; return their number."""
    count, folder_from_here = 0, cache(partial(path_from, path.parent))
    with atomic_write(path) as file:
        file.write("\t".join(COLUMNS) + "\n")
        for utterance in utterances:
            count += 1
            fields = (
                str(folder_from_here(utterance.audio.parent) / utterance.audio.name),
                utterance.text.replace("\t", " "),
                utterance.speaker,
                utterance.domain,
                f"{utterance.seconds:.6f}",
                f"{utterance.start:.6f}",
            )
            file.write("\t".join(fields) + "\n")
    return count


def path_from(folder: Path, other: Path) -> Path:
    """Return the path of the `other` folder from `folder`, or its real path if a symbolic link is in the way."""
    found = Path(os.path.relpath(other, folder))
    return found if (folder / found).resolve() == other.resolve() else other.resolve()


def read_manifest(path: Path) -> Iterator[Utterance]:
    """Yield the utterances of a manifest in order.

    Raises:
        UserError: The file is missing, or a column is missing, unknown, or not a number, with its line.
    """
    lines = lines_of(path, f"a manifest lists {', '.join(REQUIRED)} of each utterance")
    (_, columns), *rows = read_rows(lines, str(path), logging.DEBUG) or [(1, [""])]
    check_header(path, columns)
    for number, fields in rows:
        if fields != [""]:
            yield utterance(path, number, columns, fields)


def check_header(path: Path, columns: list[str]) -> None:
    """Check the `columns` in the first line of the manifest `path`.

    Raises:
        UserError: A column is missing, unknown or repeated.
    """
    missing, unknown = set(REQUIRED) - set(columns), set(columns) - set(COLUMNS)
    if missing or unknown or len(set(columns)) != len(columns):
        raise UserError(
            f"{path}: its first line must name the columns {', '.join(REQUIRED)} and optionally start, "
            "separated by tabs; "
            f"missing: {', '.join(sorted(missing)) or 'none'}; unknown: {', '.join(sorted(unknown)) or 'none'}"
        )


def utterance(path: Path, number: int, columns: list[str], fields: list[str]) -> Utterance:
    """Return the utterance in the `fields` of line `number` of the manifest `path` with these `columns`.

    Raises:
        UserError: The number of fields is wrong, or a time is not a number.
    """
    where = f"{path}: line {number}"
    if len(fields) != len(columns):
        raise UserError(
            f"{where}: {count_of(len(fields), 'field')}, expected {len(columns)}; a text must not contain tabs"
        )
    values = dict(zip(columns, fields, strict=True))
    return Utterance(
        audio=path.parent / values["audio"],
        text=values["text"],
        speaker=values["speaker"],
        domain=values["domain"],
        seconds=number_of(values["seconds"], f"{where}: seconds"),
        start=number_of(values.get("start", "0"), f"{where}: start"),
    )


def number_of(text: str, where: str) -> float:
    """Return the seconds, a finite number of at least 0, in the `text` of a cell at `where`.

    Raises:
        UserError: The text is not a finite number of at least 0.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UserError(f"{where}: {text!r} is not a number of seconds")
    return value


EXAMPLES = 5
TRAIN: SplitName = "train"
Key = TypeVar("Key")

Place = tuple[str, int]
"""Real path of a file, and start of the utterance in microseconds."""


def place_of(utterance: Utterance) -> Place:
    """Return the place of an utterance, equal for repeats of it."""
    return os.path.realpath(utterance.audio), round(utterance.start * 1e6)


def shared_utterances(manifests: Mapping[SplitName, Path]) -> list[str]:
    """Return file, start in seconds and splits of each utterance that several splits share.

    Raises:
        UserError: A manifest is missing or faulty, or a training utterance is in another split too.
    """
    shared = in_several_splits(manifests, place_of)
    found = [f"{Path(file).name} at {start / 1e6:g} s: {', '.join(splits)}" for (file, start), splits in shared.items()]
    if seen := [entry for entry, splits in zip(found, shared.values(), strict=True) if TRAIN in splits]:
        raise UserError(
            f"{manifests[TRAIN]}: {count_of(len(seen), 'utterance is', 'utterances are')} in other splits too "
            f"({'; '.join(seen[:EXAMPLES])}); scores on training data mean nothing; remove them from one of the splits"
        )
    if found:
        log.warning(
            "%s in several splits: %s",
            count_of(len(found), "utterance is", "utterances are"),
            "; ".join(found[:EXAMPLES]),
        )
    return found


def shared_speakers(manifests: Mapping[SplitName, Path], refused: bool) -> list[str]:
    """Return name and splits of each speaker that several splits share, which may be `refused`.

    Raises:
        UserError: A speaker is shared although `refused`.
    """
    found = in_several_splits(manifests, lambda utterance: utterance.speaker)
    shared = [f"{speaker}: {', '.join(splits)}" for speaker, splits in found.items()]
    if shared and refused:
        raise UserError(
            f"{manifests[TRAIN]}: {count_of(len(shared), 'speaker is', 'speakers are')} in several splits "
            f"({'; '.join(shared[:EXAMPLES])}), and the dataset has disjoint_speakers; "
            "remove them from one of the splits"
        )
    return shared


def in_several_splits(
    manifests: Mapping[SplitName, Path], key_of: Callable[[Utterance], Key]
) -> dict[Key, list[SplitName]]:
    """Return the keys (`key_of` an utterance) that more than one of the `manifests` lists, with their splits."""
    splits_of: dict[Key, list[SplitName]] = {}
    for split, manifest in manifests.items():
        for key in dict.fromkeys(map(key_of, read_manifest(manifest))):
            splits_of.setdefault(key, []).append(split)
    return {key: splits for key, splits in splits_of.items() if len(splits) > 1}
