"""Utterances that a corpus lists more than once, the same stretch of the same file, and speakers in several splits."""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.data.dataset import SplitName
from pipeline.data.speech.manifest import Utterance, read_manifest
from pipeline.errors import UserError

log = logging.getLogger(__name__)

EXAMPLES = 5
TRAIN: SplitName = "train"

Place = tuple[str, int]
"""File, links followed, and where the utterance begins, in microseconds."""


def place_of(utterance: Utterance) -> Place:
    return os.path.realpath(utterance.audio), round(utterance.start * 1e6)


@dataclass(frozen=True)
class Shared:
    """What several splits list: the splits of each place, in order."""

    splits_of: dict[Place, list[SplitName]]

    def examples(self, places: Iterable[Place]) -> list[str]:
        """The first few, in words."""
        return [
            f"{Path(file).name} at {start / 1e6:g} s: {', '.join(self.splits_of[file, start])}"
            for (file, start), _ in zip(places, range(EXAMPLES), strict=False)
        ]


def shared_utterances(manifests: Mapping[SplitName, Path]) -> Shared:
    """What is in several splits.

    Raises:
        UserError: a manifest is missing or faulty, or a training utterance is in another split too.
    """
    splits_of: dict[Place, list[SplitName]] = {}
    for split, manifest in manifests.items():
        for place in dict.fromkeys(map(place_of, read_manifest(manifest))):
            splits_of.setdefault(place, []).append(split)
    shared = Shared({place: splits for place, splits in splits_of.items() if len(splits) > 1})
    if seen := [place for place, splits in shared.splits_of.items() if TRAIN in splits]:
        raise UserError(
            f"{manifests[TRAIN]}: {len(seen)} utterances are in other splits too ({'; '.join(shared.examples(seen))}); "
            "a set that is trained on measures nothing, take them out of one of the two"
        )
    if shared.splits_of:
        log.warning(
            "%d utterances are in several splits: %s",
            *(len(shared.splits_of), "; ".join(shared.examples(shared.splits_of))),
        )
    return shared


def shared_speakers(manifests: Mapping[SplitName, Path], refused: bool) -> list[str]:
    """Speakers in several splits, each with these. Raises UserError when there are any and that is `refused`."""
    splits_of: dict[str, list[SplitName]] = {}
    for split, manifest in manifests.items():
        for speaker in dict.fromkeys(one.speaker for one in read_manifest(manifest)):
            splits_of.setdefault(speaker, []).append(split)
    shared = [f"{speaker}: {', '.join(splits)}" for speaker, splits in splits_of.items() if len(splits) > 1]
    if shared and refused:
        raise UserError(
            f"{manifests[TRAIN]}: {len(shared)} speakers are in several splits ({'; '.join(shared[:EXAMPLES])}), and "
            "the dataset has disjoint_speakers; take them out of one of the two"
        )
    return shared
