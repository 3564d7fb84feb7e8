"""Symbols of the models: the alphabet of transcripts, and trained subword and word vocabularies.

The alphabet, the same for every speech corpus and character language model, has 26 letters, apostrophe, space, and the
ends of a sentence; Cold Fusion does not list its own. One fixed table lets any acoustic model be fused with any
language model.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import sentencepiece

from pipeline.core.errors import UserError, shown
from pipeline.core.records.corpus import read_corpus
from pipeline.models.settings import BOS, EOS, PAD, UNK

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


MODEL = "subwords.model"
"""Model of both sides, or of the source side, in the folder of a corpus."""
TGT_MODEL = "subwords.tgt.model"
"""Model of the target side, if it has its own."""


UNKNOWN_WORD = "<unk>"
LINE_BREAK = re.compile(r"[\0\n]")
WORD_START = "\u2581"
"""sentencepiece's mark of an entry that begins a word."""


STAND_INS = {"\x00": "\ufdd0", "\u2581": "\ufdd1", "\u2585": "\ufdd5", "\x1f": "\ufddf"}
"""Unicode noncharacters for the characters that sentencepiece reserves, and skips or changes in text."""
RESERVED = str.maketrans(STAND_INS)
RESTORED = str.maketrans({stand_in: character for character, stand_in in STAND_INS.items()})


def escape_reserved(line: str) -> str:
    """Replace the characters that sentencepiece reserves by stand-ins."""
    return line.translate(RESERVED)


def unescape_reserved(line: str) -> str:
    """Replace stand-ins by the original characters."""
    return line.translate(RESTORED)


class Subwords:
    """A trained sentencepiece model for tokenised text, words separated by single spaces.

    In a vocabulary of whole words each unknown word is one UNK, which decodes to `<unk>`; sentencepiece itself would
    merge neighbouring unknown words.

    Raises:
        UserError: The file is missing, is not a sentencepiece model, has other reserved ids, or has a piece that breaks
            lines.
    """

    def __init__(self, path: Path):
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise UserError(f"{path}: no such subword model; run the stage `subwords` first") from error
        try:
            self.model = sentencepiece.SentencePieceProcessor()
            self.model.LoadFromSerializedProto(content)
            pieces = [self.model.id_to_piece(number) for number in range(len(self))]
        except Exception as error:  # undocumented, e.g. UnicodeDecodeError for a piece that is not UTF-8
            raise UserError(f"{path}: not a sentencepiece model; remove it and run `subwords` again") from error
        ids = (self.model.pad_id(), self.model.unk_id(), self.model.bos_id(), self.model.eos_id())
        if ids != (PAD, UNK, BOS, EOS):
            raise UserError(
                f"{path}: pad, unk, bos, eos are {ids}, not {(PAD, UNK, BOS, EOS)}; train it with the stage `subwords`"
            )
        if broken := next((piece for piece in pieces if LINE_BREAK.search(piece)), None):
            raise UserError(
                f"{path}: the piece {shown(broken)} breaks lines; train the model with the stage `subwords`"
            )
        pieces = pieces[EOS + 1 :]
        whole = all(piece.startswith(WORD_START) for piece in pieces)
        self.words = [unescape_reserved(piece.removeprefix(WORD_START)) for piece in pieces] if whole else None

    def __len__(self) -> int:
        return self.model.vocab_size()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of each line, without BOS and EOS."""
        if self.words is not None:
            words = (escape_reserved(line).split(" ") for line in lines)
            return [self.model.piece_to_id([WORD_START + word for word in line]) for line in words]
        return self.model.encode([escape_reserved(line) for line in lines], num_threads=1)

    def decode(self, sentences: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> list[str]:
        """Return the tokenised text of each sentence; reserved ids except UNK are dropped.

        sentencepiece surrounds an UNK by spaces; in these sentences tokens are separated by single spaces again.
        """
        ids = [list(map(int, sentence)) for sentence in sentences]
        if self.words is not None:
            table = {UNK: UNKNOWN_WORD} | dict(enumerate(self.words, start=EOS + 1))
            return [" ".join(table[number] for number in sentence if number in table) for sentence in ids]
        lines = [unescape_reserved(line) for line in self.model.decode(ids, num_threads=1)]
        return [
            " ".join(filter(None, line.split(" "))) if UNK in sentence else line
            for line, sentence in zip(lines, ids, strict=True)
        ]


def load_vocabularies(corpus: Path) -> tuple[Subwords, Subwords]:
    """Load source and target subwords of a corpus; both are the same object if the sides share them."""
    src = Subwords(corpus / MODEL)
    return src, Subwords(corpus / TGT_MODEL) if (corpus / TGT_MODEL).exists() else src


def vocabularies(corpus_folder: Path) -> tuple[Subwords | None, Subwords | Alphabet]:
    """Return source and target symbols of an encoded corpus; the source is None for speech and text alone."""
    if read_corpus(corpus_folder).kind == "parallel":
        return load_vocabularies(Path(corpus_folder).parent)
    return None, Alphabet()
