"""Sentences in several splits of a corpus, on which a score partly measures memory."""

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pipeline.data.text.text_files import lines_of

log = logging.getLogger(__name__)

TRAIN = "train"
ALIKE = dict.fromkeys("‘’‚‛ʼ`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑‒–—−", "-")
"""Plain forms of the shapes of quotes and dashes."""
UNSEEN = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff"
"""Characters without a visible mark."""
FORM = re.compile(f"[{''.join(ALIKE)}{UNSEEN}]")


def comparison_key(sentence: str) -> str:
    """Return a key that is equal for sentences which differ in form alone.

    Form is white space, invisible characters, Unicode form (NFKC), case, and the shape of quotes and dashes.

    Returns:
        The key, without any white space.
    """
    key = sentence.lower()
    if not key.isascii():
        key = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", sentence).casefold())
    return "".join(FORM.sub(lambda found: ALIKE.get(found[0], ""), key).split())


def shared_sentences(what: str, splits: Mapping[str, Path]) -> dict[str, int]:
    """Count and log the distinct sentences that two splits share, compared by `comparison_key`.

    Held-out sets are kept in memory; training data is streamed.

    Args:
        what: Dataset and side, for the log.
        splits: File of prepared sentences of each split, one per line.

    Returns:
        The number for each pair of splits that share any, under a key such as `dev and train`.
    """
    held_out = {split: distinct(path) for split, path in splits.items() if split != TRAIN}
    shared: Counter[str] = Counter()
    for number, (split, sentences) in enumerate(held_out.items()):
        for other in list(held_out)[:number]:
            shared[f"{other} and {split}"] = len(sentences & held_out[other])
    if TRAIN in splits:
        unseen = {split: set(sentences) for split, sentences in held_out.items()}
        for line in map(comparison_key, lines_of(splits[TRAIN], "run `prepare` again")):
            for split, sentences in unseen.items():
                if line in sentences:
                    sentences.remove(line)
                    shared[f"{split} and {TRAIN}"] += 1
    found = {pair: count for pair, count in shared.items() if count}
    for pair, count in found.items():
        log.warning("%s: %d sentences are in both %s", what, count, pair)
    return found


def distinct(path: Path) -> set[str]:
    """Return the distinct sentences of a file by their `comparison_key`."""
    return set(map(comparison_key, lines_of(path, "run `prepare` again")))
