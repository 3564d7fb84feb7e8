"""The one format in which every speech corpus is listed, and in which a user lists his own.

A manifest is a TSV file, UTF-8, with a header. Its columns, in any order:

    audio     file, relative to the manifest's folder
    text      what is said
    speaker   name
    domain    of the text
    seconds   length of the utterance
    start     where it begins in the file, in seconds; the column may be left out where every utterance is a file

Lines may end as on Windows, a byte order mark may come first, and empty lines are passed over.

`<corpus>/manifests/<split>.tsv` lists what was collected or read aloud.
"""

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.data.dataset import SplitName
from pipeline.data.text.text_files import lines_of, read_rows

UNNAMED = "unnamed"
"""Speaker of recordings of which nobody said who speaks."""
REQUIRED = ("audio", "text", "speaker", "domain", "seconds")
COLUMNS = (*REQUIRED, "start")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One line. `audio` is an existing or missing file, in place."""

    audio: Path
    text: str
    speaker: str
    domain: str
    seconds: float
    start: float = 0.0


def manifest_path(corpus: Path, split: str) -> Path:
    return corpus / f"manifests/{split}.tsv"


def write_manifest(path: Path, utterances: Iterable[Utterance]) -> int:
    """Write a manifest, paths relative to its folder; returns how many utterances it lists."""
    count = 0
    with atomic_write(path) as file:
        file.write("\t".join(COLUMNS) + "\n")
        for one in utterances:
            count += 1
            audio = os.path.relpath(one.audio, path.parent)
            fields = (audio, one.text, one.speaker, one.domain, f"{one.seconds:.6f}", f"{one.start:.6f}")
            file.write("\t".join(fields) + "\n")
    return count


def read_manifest(path: Path) -> Iterator[Utterance]:
    """Utterances in order.

    Raises:
        UserError: the file is missing or no manifest: a column is missing, unknown or no number, by line.
    """
    lines = lines_of(path, f"a manifest lists {', '.join(REQUIRED)} of each utterance")
    (_, columns), *rows = read_rows(lines, str(path), logging.DEBUG) or [(1, [""])]
    check_header(path, columns)
    for number, fields in rows:
        if fields != [""]:
            yield utterance(path, number, columns, fields)


def check_header(path: Path, columns: list[str]) -> None:
    """Raise UserError for columns that are missing, unknown or double."""
    missing, unknown = set(REQUIRED) - set(columns), set(columns) - set(COLUMNS)
    if missing or unknown or len(set(columns)) != len(columns):
        raise UserError(
            f"{path}: its first line must name the columns {', '.join(REQUIRED)} and perhaps start, by tabs; "
            f"missing: {', '.join(sorted(missing)) or 'none'}; unknown: {', '.join(sorted(unknown)) or 'none'}"
        )


def utterance(path: Path, number: int, columns: list[str], fields: list[str]) -> Utterance:
    where = f"{path}: line {number}"
    if len(fields) != len(columns):
        raise UserError(f"{where}: {len(fields)} fields, expected {len(columns)}; a text must not hold tabs")
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
    """A number that is not negative. Raises UserError for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UserError(f"{where}: {text!r} is no number of seconds")
    return value


log = logging.getLogger(__name__)

EXAMPLES = 5
TRAIN: SplitName = "train"
Key = TypeVar("Key")

Place = tuple[str, int]
"""File, links followed, and where the utterance begins, in microseconds."""


def place_of(utterance: Utterance) -> Place:
    return os.path.realpath(utterance.audio), round(utterance.start * 1e6)


def shared_utterances(manifests: Mapping[SplitName, Path]) -> list[str]:
    """What is in several splits, in words.

    Raises:
        UserError: a manifest is missing or faulty, or a training utterance is in another split too.
    """
    shared = in_several_splits(manifests, place_of)
    found = [f"{Path(file).name} at {start / 1e6:g} s: {', '.join(splits)}" for (file, start), splits in shared.items()]
    if seen := [one for one, splits in zip(found, shared.values(), strict=True) if TRAIN in splits]:
        raise UserError(
            f"{manifests[TRAIN]}: {len(seen)} utterances are in other splits too ({'; '.join(seen[:EXAMPLES])}); "
            "a set that is trained on measures nothing, take them out of one of the two"
        )
    if found:
        log.warning("%d utterances are in several splits: %s", len(found), "; ".join(found[:EXAMPLES]))
    return found


def shared_speakers(manifests: Mapping[SplitName, Path], refused: bool) -> list[str]:
    """Speakers in several splits, each with these. Raises UserError when there are any and that is `refused`."""
    found = in_several_splits(manifests, lambda one: one.speaker)
    shared = [f"{speaker}: {', '.join(splits)}" for speaker, splits in found.items()]
    if shared and refused:
        raise UserError(
            f"{manifests[TRAIN]}: {len(shared)} speakers are in several splits ({'; '.join(shared[:EXAMPLES])}), and "
            "the dataset has disjoint_speakers; take them out of one of the two"
        )
    return shared


def in_several_splits(
    manifests: Mapping[SplitName, Path], key_of: Callable[[Utterance], Key]
) -> dict[Key, list[SplitName]]:
    """The splits, in order, of what more than one of them lists."""
    splits_of: dict[Key, list[SplitName]] = {}
    for split, manifest in manifests.items():
        for key in dict.fromkeys(map(key_of, read_manifest(manifest))):
            splits_of.setdefault(key, []).append(split)
    return {key: splits for key, splits in splits_of.items() if len(splits) > 1}
