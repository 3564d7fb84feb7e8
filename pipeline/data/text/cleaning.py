"""Cleaning and tokenisation of chunks of sentence pairs, as pure functions."""

from collections import Counter
from dataclasses import dataclass, field

from pipeline.data.dataset import Cleaning, CorpusRecord
from pipeline.data.text.tokenisation import Tokenisation

RawPair = tuple[bytes, bytes]


class BadPairError(Exception):
    """A pair that can't be used; the message is the reason under which it is counted."""


@dataclass
class PreparedChunk:
    """Result of a chunk of pairs; texts are joined lines, source first."""

    pairs: int
    text: tuple[str, str] = ("", "")
    tokens: tuple[str, str] = ("", "")
    words: tuple[int, int] = (0, 0)
    rejected: list[tuple[int, str]] = field(default_factory=list)  # (index in the chunk, reason)
    repaired: Counter = field(default_factory=Counter)


def prepare_chunk(pairs: list[RawPair], dataset: CorpusRecord, drop_outliers: bool) -> PreparedChunk:
    """Clean and tokenise raw lines of both sides; `drop_outliers` applies the dataset's limits on length and ratio."""
    done = PreparedChunk(len(pairs))
    how = Tokenisation.of(dataset)
    kept = []
    for place, pair in enumerate(pairs):
        try:
            text = [decode(side) for side in pair]
            src, tgt = (tokenise_line(*side, how) for side in zip(text, dataset.languages, strict=True))
            words = how.words(src), how.words(tgt)
            check_pair(*words, dataset.cleaning if drop_outliers else None)
        except BadPairError as fault:
            done.rejected.append((place, str(fault)))
            continue
        if any(b"\r" in side for side in pair):
            done.repaired["carriage return"] += 1
        kept.append((*text, src, tgt))
        done.words = done.words[0] + words[0], done.words[1] + words[1]
    columns = [list(column) for column in zip(*kept, strict=True)] or [[]] * 4
    done.text, done.tokens = join_lines(columns[:2]), join_lines(columns[2:])
    return done


def decode(line: bytes) -> str:
    """Return a raw line, without its line feed, as stripped text with carriage returns as spaces.

    Raises:
        BadPairError: It is not UTF-8, or blank.
    """
    try:  # each file of a split may begin with a byte order mark
        text = line.decode("utf-8-sig").replace("\r", " ").strip()
    except UnicodeDecodeError as error:
        raise BadPairError("invalid UTF-8") from error
    if not text:
        raise BadPairError("empty")
    return text


def tokenise_line(text: str, language: str, how: Tokenisation) -> str:
    """Return the tokens of the cleaned `text` of a line in a `language`, tokenised `how` its dataset says.

    Raises:
        BadPairError: No token is left, e.g. of a line of control characters.
    """
    tokens = how.tokens(text, language)
    if not tokens:
        raise BadPairError("empty")
    return tokens


def check_pair(src_words: int, tgt_words: int, limits: Cleaning | None) -> None:
    """Check `src_words`, `tgt_words` and their ratio against `limits`; None accepts any pair.

    Raises:
        BadPairError: A limit is exceeded.
    """
    if limits is None:
        return
    longer, shorter = max(src_words, tgt_words), min(src_words, tgt_words)
    if longer > limits.max_tokens:
        raise BadPairError("too long")
    if longer > limits.max_ratio * shorter:
        raise BadPairError("length ratio")


def join_lines(columns: list[list[str]]) -> tuple[str, str]:
    """Join the lines of both sides."""
    src, tgt = ("".join(f"{line}\n" for line in column) for column in columns)
    return src, tgt
