"""Dataset files for data of a user, with the paths, checksums and sizes of the data.

text.py: sentences and their translations; trees.py: a treebank; recordings.py: audio with transcripts. Here one corpus
is split into train, dev and test: a digest of the key that must not be in two splits (a sentence, a speaker) decides,
not the order of the file.
"""

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from pipeline.core.errors import UserError

log = logging.getLogger(__name__)
SPLITS = ("train", "dev", "test")


def read_shares(text: str) -> list[float]:
    """Return the numbers of a text such as `0.98/0.01/0.01`.

    Raises:
        UserError: The text is not three positive shares that sum to 1.
    """
    try:
        shares = [float(share) for share in text.split("/")]
    except ValueError:
        shares = []
    if len(shares) != len(SPLITS) or min(shares) <= 0 or not abs(sum(shares) - 1) <= 1e-6:
        raise UserError(f"--split {text}: must be three shares that sum to 1, such as 0.98/0.01/0.01")
    return shares


def ranked_keys(keys: Collection[str], what: str) -> list[str]:
    """Return distinct `keys` in the order of their digests; `what` they are is for the error.

    Raises:
        UserError: There are fewer than three.
    """
    ranked = sorted(set(keys), key=lambda key: hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())
    if len(ranked) < len(SPLITS):
        raise UserError(
            f"{len(ranked)} distinct {what} are too few for train, dev and test; give more of them, at least three"
        )
    return ranked


def warn_of_same_file(digests: Mapping[str, str]) -> None:
    """Warn of splits that are one file.

    Args:
        digests: Digest of the source file or treebank of each split.
    """
    for one, other in combinations(SPLITS, 2):
        if digests[one] == digests[other]:
            log.warning("%s and %s are the same file, so scores on %s mean little", one, other, other)


def by_split(keys: Collection[str], shares: Sequence[float], what: str) -> dict[str, list[str]]:
    """Return at least one distinct key for each split, drawn by their digests in `shares` (see `by_weight`).

    Raises:
        UserError: There are fewer than three.
    """
    ranked = ranked_keys(keys, what)
    dev, test = (min(max(1, round(share * len(ranked))), len(ranked) - 2) for share in shares[1:])
    test = min(test, len(ranked) - dev - 1)
    return {"train": ranked[dev + test :], "dev": ranked[:dev], "test": ranked[dev : dev + test]}


def by_weight(weights: Mapping[str, float], shares: Sequence[float], what: str) -> dict[str, list[str]]:
    """Return the keys of each split, at least one, so that the sums of their weights come near the shares.

    The heaviest keys are placed first, each where most is missing; equals in the order of their digests.

    Args:
        weights: Weight of each key, such as the seconds of a speaker.
        shares: Shares of train, dev and test; they sum to 1.
        what: What the keys are, for the error.

    Raises:
        UserError: There are fewer than three keys.
    """
    remaining = sorted(ranked_keys(weights, what), key=lambda key: -weights[key])
    missing = {split: share * sum(weights.values()) for split, share in zip(SPLITS, shares, strict=True)}
    found: dict[str, list[str]] = {split: [] for split in SPLITS}
    while remaining:
        empty = [split for split in SPLITS if not found[split]]
        key = remaining.pop(0)
        # Each split needs a key: the last keys go to empty splits.
        split = max(empty if len(remaining) < len(empty) else SPLITS, key=lambda split: missing[split])
        found[split].append(key)
        missing[split] -= weights[key]
    return found
