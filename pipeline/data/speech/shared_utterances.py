"""Utterances that a corpus lists more than once, the same stretch of the same file, and speakers in several splits."""

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pipeline.core.errors import UserError
from pipeline.data.dataset import SplitName
from pipeline.data.speech.manifest import Utterance, read_manifest

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
