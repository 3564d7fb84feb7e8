"""Raw text of a dataset: sentences of the grammar, or lines of fetched files, one a line of raw/<split>.en."""

import csv
import gzip
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from random import Random
from typing import IO

from pipeline.data.archives import DAMAGE, members
from pipeline.data.dataset import FetchedText, GrammarText, SplitName, TextPart
from pipeline.errors import UserError

CLITIC = re.compile(r" '(?=(?:d|ll|m|re|s|t|ve)\b)")
NOT_SPOKEN = re.compile(r"\([^ )]*\)|\{[^ }]*\}|<sil>")
"""Variants of a pronunciation, noises and silence in TED-LIUM's transcripts."""
UNTRANSCRIBED = "ignore_time_segment_in_scoring"
DRAWN_FIRST: tuple[SplitName, ...] = ("test", "dev", "train")


def grammar_lines(text: GrammarText) -> Iterator[tuple[SplitName, str]]:
    """(split, sentence): of each domain the test set first, then dev, then train, no sentence twice."""
    from pipeline.grammar.corpus import endless, next_unseen  # reads the lexicon, which fetched text needs not

    for domain in text.domains:
        seen: dict[str, set[str]] = {"en": set()}
        for split in DRAWN_FIRST:
            stream = endless(domain, Random(f"grammar/{domain}/{text.seed}/{split}"), held_out=split == "test")
            for _ in range(text.sizes[split]):
                yield split, next_unseen(stream, seen).en


def fetched_lines(text: FetchedText, files: dict[str, Path]) -> Iterator[tuple[SplitName, str]]:
    """(split, line), split after split. files: fetched files by source.

    Raises:
        UserError: a file is damaged, or has no member or no line of those that are named.
    """
    for split, parts in text.splits.items():
        for part in parts:
            found = 0
            chosen = islice(lines_of(part, files[part.source]), part.first - 1, None, part.every)
            for line in islice(chosen, part.lines):
                found += 1
                yield split, line
            if not found:
                raise UserError(
                    f"{files[part.source]}: has no line {part.first} in {part.member or 'it'}; fetch it again, or "
                    "correct the dataset file"
                )


def lines_of(part: TextPart, path: Path) -> Iterator[str]:
    """Sentences of the file, or of all members that its pattern fits, in the order of the archive."""
    try:
        if part.member is None:
            with open(path, "rb") as stream:
                yield from sentences(part, path.name, stream)
            return
        for name, _, content in members(path):
            if fnmatch(name, part.member):
                yield from sentences(part, name, content)
    except DAMAGE as error:
        raise UserError(f"{path}: damaged ({error}); remove it and fetch it again") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 ({error.reason}); fetch it again") from error


def sentences(part: TextPart, name: str, stream: IO[bytes]) -> Iterator[str]:
    plain = gzip.GzipFile(fileobj=stream) if name.endswith(".gz") else stream
    lines = (line.decode("utf-8").removesuffix("\n") for line in plain)
    match part.layout:
        case "plain":
            yield from lines
        case "transcripts":
            yield from (line.partition(" ")[2] for line in lines)
        case "stm":
            yield from (text for line in lines if (text := segment_text(line)))
        case "tedlium":
            yield from (joined_clitics(line.removesuffix("</s>")) for line in lines)


def table(lines: Iterable[str], wanted: Iterable[str], where: str) -> Iterator[dict[str, str]]:
    """Rows of a TSV file with a header. Raises UserError when it has not the columns wanted."""
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    if missing := set(wanted) - set(rows.fieldnames or ()):
        raise UserError(f"{where}: has no column {', '.join(sorted(missing))}; is it the right file?")
    yield from rows


def segment_text(line: str) -> str:
    """What is said in a segment of an .stm file, after its six fields; empty where nobody wrote it down."""
    text = "".join(line.split(None, 6)[6:]).strip()
    return "" if text == UNTRANSCRIBED else joined_clitics(NOT_SPOKEN.sub(" ", text))


def joined_clitics(text: str) -> str:
    """`it 's` as `it's`."""
    return CLITIC.sub("'", text)
