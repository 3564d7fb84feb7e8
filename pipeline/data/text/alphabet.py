"""Character ids of transcripts, the same for every speech corpus and character language model.

The alphabet has 26 letters, apostrophe, space, and the ends of a sentence; Cold Fusion does not list its own. One
fixed table lets any acoustic model be fused with any language model.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np

from pipeline.core.symbols import BOS, EOS, PAD, UNK

CHARACTERS = " '" + ascii_lowercase
FIRST = EOS + 1
"""Id of the first character; smaller ids are PAD, UNK, BOS and EOS."""
APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "`": "'"})
"""Translation of signs that stand for an apostrophe."""
SEPARATING = frozenset("-–—/_")
DROPPED = frozenset('.,;:?!"“”„«»()[]{}*')


class Alphabet:
    """Mapping between characters and ids, with the interface of `Subwords`."""

    def __len__(self) -> int:
        return FIRST + len(CHARACTERS)

    @property
    def digest(self) -> str:
        """SHA-256 of the table."""
        return hashlib.sha256(f"{PAD} {UNK} {BOS} {EOS} {CHARACTERS}".encode()).hexdigest()

    def flat(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Encode lines; other characters become UNK.

        Returns:
            Ids of all lines in a row, (characters,) uint8, and the length of each line, (lines,) int64.
        """
        ids = "".join(lines).encode("latin-1", "replace").translate(TABLE)
        return np.frombuffer(ids, np.uint8), np.array([len(line) for line in lines], dtype=np.int64)

    def decode(self, sentences: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> list[str]:
        """Return the text of each sentence; reserved ids are dropped."""
        return ["".join(CHARACTERS[int(i) - FIRST] for i in ids if int(i) >= FIRST) for ids in sentences]


IDS = {character: FIRST + place for place, character in enumerate(CHARACTERS)}
TITLES = {"mr": "mister", "mrs": "missus"}
TITLE = re.compile(r"\b(mrs?)\b\.?", re.IGNORECASE)
TABLE = bytes(IDS.get(chr(code), UNK) for code in range(256))
PLAIN = re.compile(r"[a-z]+(?:[' ][a-z]+)*")


def to_alphabet(text: str) -> tuple[str, str]:
    """Spell a text in the alphabet, without case, accents and punctuation.

    Dashes and runs of dots separate words, white space is collapsed, and Mr and Mrs are spelt out. Digits and signs
    such as `%` can be read in several ways: they are dropped, and the caller decides what to do.

    Returns:
        The spelling, and the dropped digits and signs.
    """
    text = TITLE.sub(lambda found: TITLES[found[1].lower()], text)
    if PLAIN.fullmatch(text):  # fast path: most lines of prepared text
        return text, ""
    plain = re.sub(r"\.\.+", " ", unicodedata.normalize("NFKD", text.translate(APOSTROPHES))).lower()
    kept, strange = [], set()
    for character in plain:
        if character in IDS:
            kept.append(character)
        elif character in SEPARATING or character.isspace():
            kept.append(" ")
        elif character not in DROPPED and not unicodedata.combining(character):
            strange.add(character)
    return " ".join(word for word in "".join(kept).split() if word.strip("'")), "".join(sorted(strange))
