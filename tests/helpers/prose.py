"""Rules for plain English: banned words, and the length of sentences."""

import re

BANNED = re.compile(
    r"\b(anew|in the place of|by heart|of before|of then|of now|whoever|who drives|told|said|tells?(?! apart)|"
    r"tr(?:y|ies|ied) again|goes? on (?:again|with)|what is given|take[sn]? up again|persevere[sd]?|"
    r"(?:GPU|graphics) cards?|matrix products?|products? of matrices)\b",
    re.IGNORECASE,
)
LONGEST_SENTENCE = 32


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences of three words or more."""
    found = re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[0-9])", " ".join(text.split()))
    return [sentence for sentence in found if len(sentence.split()) > 2]


def long_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph that have too many words."""
    return [sentence for sentence in split_sentences(text) if len(sentence.split()) > LONGEST_SENTENCE]
