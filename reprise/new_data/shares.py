"""What falls to train, dev and test, where one corpus is to be split.

Decided by a digest of what must not be in two splits (a sentence, a speaker): the order of the file does not matter.
"""

import hashlib
from collections.abc import Collection, Sequence

from pipeline.core.errors import UserError

SPLITS = ("train", "dev", "test")


def read_shares(text: str) -> list[float]:
    """`0.98/0.01/0.01`. Raises UserError for what is not three shares that sum to 1."""
    try:
        shares = [float(share) for share in text.split("/")]
    except ValueError:
        shares = []
    if len(shares) != len(SPLITS) or min(shares) <= 0 or not abs(sum(shares) - 1) <= 1e-6:
        raise UserError(f"--split {text}: three shares that sum to 1, such as 0.98/0.01/0.01")
    return shares


def by_split(keys: Collection[str], shares: Sequence[float], what: str) -> dict[str, list[str]]:
    """Distinct keys by split, in the order of digests, at least one to each. Raises UserError for fewer than three."""
    ranked = sorted(set(keys), key=lambda key: hashlib.sha256(key.encode()).digest())
    if len(ranked) < len(SPLITS):
        raise UserError(f"{len(ranked)} distinct {what} are too few to be split in three")
    dev, test = (max(1, round(share * len(ranked))) for share in shares[1:])
    return {"train": ranked[dev + test :], "dev": ranked[:dev], "test": ranked[dev : dev + test]}
