"""The characters that speech is transcribed in, one id each: the same for every speech corpus and language model.

26 letters, apostrophe, space, and the ends of a sentence; Cold Fusion does not say which it has. One fixed table lets
any acoustic model be fused with any language model.
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
"""Id of the first character; below it are PAD, UNK, BOS and EOS."""
SAID_ALIKE = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "`": "'"})
"""Signs that stand for an apostrophe."""
SEPARATING = frozenset("-–—/_")
DROPPED = frozenset('.,;:?!"“”„«»()[]{}*')


class Alphabet:
    """Characters to ids and back, with the interface of `Subwords`."""

    def __len__(self) -> int:
        return FIRST + len(CHARACTERS)

    @property
    def digest(self) -> str:
        """SHA-256 of the table."""
        return hashlib.sha256(f"{PAD} {UNK} {BOS} {EOS} {CHARACTERS}".encode()).hexdigest()

    def flat(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of all lines in a row, (characters,) uint8, and the characters of each line; UNK for others."""
        ids = "".join(lines).encode("latin-1", "replace").translate(TABLE)
        return np.frombuffer(ids, np.uint8), np.array([len(line) for line in lines], dtype=np.int64)

    def decode(self, sentences: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> list[str]:
        """Text of each sentence; reserved ids leave no trace."""
        return ["".join(CHARACTERS[int(i) - FIRST] for i in ids if int(i) >= FIRST) for ids in sentences]


IDS = {character: FIRST + place for place, character in enumerate(CHARACTERS)}
TITLES = {"mr": "mister", "mrs": "missus"}
TITLE = re.compile(r"\b(mrs?)\b\.?", re.IGNORECASE)
TABLE = bytes(IDS.get(chr(code), UNK) for code in range(256))
PLAIN = re.compile(r"[a-z]+(?:[' ][a-z]+)*")


def spelt(text: str) -> tuple[str, str]:
    """(text in the alphabet's characters, those that have no place in it).

    Letters lose case and accents, dashes and dots in a row separate words, other punctuation goes; white space is
    collapsed; Mr and Mrs are written as they are said. Digits and signs such as `%` are read aloud in more than one
    way: they stay out, and who calls decides.
    """
    text = TITLE.sub(lambda found: TITLES[found[1].lower()], text)
    if PLAIN.fullmatch(text):  # most lines of a prepared text: nothing to do
        return text, ""
    plain = re.sub(r"\.\.+", " ", unicodedata.normalize("NFKD", text.translate(SAID_ALIKE))).lower()
    kept, strange = [], set()
    for character in plain:
        if character in IDS:
            kept.append(character)
        elif character in SEPARATING or character.isspace():
            kept.append(" ")
        elif character not in DROPPED and not unicodedata.combining(character):
            strange.add(character)
    return " ".join(word for word in "".join(kept).split() if word.strip("'")), "".join(sorted(strange))
