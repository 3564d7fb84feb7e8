"""Sentences that several splits of a corpus have: what is measured on them is partly what was learnt by heart."""

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)

TRAIN = "train"


def shared_sentences(dataset: str, splits: Mapping[str, Path]) -> dict[str, int]:
    """Of each two splits that share any, as `dev and train`, the number of distinct sentences; told in the log.

    Held-out sets are kept in memory, training data are read past.

    Args:
        splits: file of prepared sentences, a line each, of each split.
    """
    held_out = {split: distinct(path) for split, path in splits.items() if split != TRAIN}
    shared: Counter[str] = Counter()
    for number, (split, sentences) in enumerate(held_out.items()):
        for other in list(held_out)[:number]:
            shared[f"{other} and {split}"] = len(sentences & held_out[other])
    if TRAIN in splits:
        unseen = {split: set(sentences) for split, sentences in held_out.items()}
        with open(splits[TRAIN], "rb") as lines:
            for line in lines:
                for split, sentences in unseen.items():
                    if line in sentences:
                        sentences.remove(line)
                        shared[f"{split} and {TRAIN}"] += 1
    found = {pair: count for pair, count in shared.items() if count}
    for pair, count in found.items():
        log.warning("%s: %d sentences are in both %s", dataset, count, pair)
    return found


def distinct(path: Path) -> set[bytes]:
    with open(path, "rb") as lines:
        return set(lines)
