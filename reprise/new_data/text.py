"""Sentences and their translations: two files with parallel lines, or one file of two columns."""

import json
import logging
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.data.text.checks import check_script, check_untokenised, comparison_key
from pipeline.data.text.text_files import is_certain, read_rows
from pipeline.data.text.tokenisation import visible_text
from reprise.new_data import by_split, warn_of_same_file
from reprise.user_files import checked_path, lines_of, new_file, source_name

log = logging.getLogger(__name__)

LARGEST_VOCABULARY, MANY_PAIRS = (8000, 32000), 1_000_000
RESERVED = 5
"""Vocabulary entries beside characters: four special ids and the word-start marker."""
SAMPLE_LINES = 200_000
"""Lines that are read to choose the vocabulary size and to check the text."""
ENOUGH = 1000
"""Test sentences for which a difference of 1 BLEU is significant: its paired standard error is about 0.5."""
MARKUP = (".sgm", ".sgml", ".xml", ".tmx", ".xlf", ".xliff", ".html")
"""Endings of files whose lines are no sentences."""
WORD = re.compile(r"\w+")
BYTES_A_SUBWORD = 4.7
"""Average over the corpora of this project, for all languages; for trees, over words only."""
Pair = tuple[str, str]
Sides = tuple[Path, Path]


def template_values(name: str, languages: tuple[str, str], splits: dict[str, Sides], free: bool) -> dict[str, Any]:
    """Collect the values that the template of a dataset needs.

    Args:
        name: Name of the dataset.
        languages: Source and target language.
        splits: Source and target file of each split.
        free: Anyone may redistribute the files.

    Returns:
        YAML of each field of the template.

    Raises:
        UserError: Two files differ in their number of lines, or a dev or test line is empty.
    """
    # Names are unique across datasets, because fetched files share one folder.
    named = {
        path: source_name(name, f"{split}.{language}", path)
        for split, sides in splits.items()
        for path, language in zip(sides, languages, strict=True)
    }
    digests = {path: sha256_file(path) for path in named}
    sources = {
        source: {"path": checked_path(path), "sha256": digests[path], "redistributable": free}
        for path, source in named.items()
    }
    parts = {
        split: {"parts": [{"src": {"source": named[src]}, "tgt": {"source": named[tgt]}}]}
        for split, (src, tgt) in splits.items()
    }
    lines = {split: count_pairs(sides, split) for split, sides in splits.items()}
    for split in sorted({*splits} - {"train"}):
        path, lines_tgt = splits[split][1], [tgt for _, tgt in read_pairs(splits[split])]
        require_raw(path, lines_tgt, languages[1])
        check_script(lines_tgt, languages[1], str(path))
    for path in named:
        warn_of_quoted_lines(path)
    warn_of_same_file({split: digests[src] for split, (src, _) in splits.items()})
    warn_of_few(name, lines["test"])
    largest = LARGEST_VOCABULARY[lines["train"] >= MANY_PAIRS]
    return {
        "sources": indented(sources),
        "splits": indented(parts),
        "expected": indented({split: {"lines": number} for split, number in lines.items()}),
        "size": flow(
            pairs=[*lines.values()],
            src_subwords=subwords(splits["train"][0].stat().st_size, lines["train"]),
            tgt_subwords=subwords(splits["train"][1].stat().st_size, lines["train"]),
            raw_bytes=sum(path.stat().st_size for sides in splits.values() for path in sides),
        ),
        "vocab_size": min(largest, fitting_vocabulary(islice(read_pairs(splits["train"]), SAMPLE_LINES))),
    }


def warn_of_quoted_lines(path: Path) -> None:
    """Warn of the first line with the quotation marks of a spreadsheet, which are kept as text."""
    for number, line in enumerate(islice(lines_of(path), SAMPLE_LINES), start=1):
        if is_certain(line.strip()):
            log.warning("%s: line %d has the quotation marks of a spreadsheet; remove them", path, number)
            return


def warn_of_few(name: str, sentences: int) -> None:
    """Warn of a test set `name` with too few `sentences`."""
    if sentences < ENOUGH:
        least = math.sqrt(ENOUGH / sentences)
        log.warning(
            "%s: a test set of %d is small: only differences of about %.1f BLEU would be significant; "
            "with %s sentences, 1 BLEU is; --split or --test sets its size",
            *(name, sentences, least, f"{ENOUGH:,}"),
        )


def require_raw(path: Path, lines: Iterable[str], language: str, reads: str = "cat") -> None:
    """Check that `lines` in a `language` are not tokenised; the command `reads` prints these of the file `path`.

    Raises:
        UserError: The text is tokenised.
    """
    try:
        check_untokenised(path, list(islice(lines, SAMPLE_LINES)))
    except UserError as error:
        command = f"{reads} {shlex.quote(str(path))} | sacremoses -l {language} detokenize > RAW"
        raise UserError(f"{error}, or detokenise it: `{command}`") from None


def flow(**entries: Any) -> str:
    """Return a mapping on one line of YAML."""
    return f"{{{', '.join(f'{key}: {value}' for key, value in entries.items())}}}"


def subwords(size: int, lines: int) -> float:
    """Return an estimate of the subwords of an average line, for a text of `size` bytes in `lines`."""
    return max(1.0, round(size / lines / BYTES_A_SUBWORD, 1))


def indented(entries: dict[str, Any]) -> str:
    """Return a mapping in YAML, one line per entry, with JSON values."""
    return "\n".join(
        f"  {json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in entries.items()
    )


def read_pairs(sides: Sides) -> Iterator[Pair]:
    """Yield pairs of stripped lines.

    Raises:
        UserError: A file is missing, not UTF-8, has markup, or has fewer lines than the other.
    """
    for path in sides:
        if path.name.lower().endswith(MARKUP):
            raise UserError(f"{path}: has markup; write its sentences to a file of plain text, one per line")
    src, tgt = sides
    for number, (source, other) in enumerate(zip_longest(lines_of(src), lines_of(tgt)), start=1):
        if source is None or other is None:
            ended, longer = (src, tgt) if source is None else (tgt, src)
            fault = (
                f"ends before line {number}, but {longer} does not" if number > 1 else f"is empty, but {longer} is not"
            )
            raise UserError(f"{ended}: {fault}; they must have parallel lines")
        yield visible_text(source), visible_text(other)


def count_pairs(sides: Sides, split: str) -> int:
    """Return the number of pairs of a split, whose `sides` are its source and target file.

    Raises:
        UserError: There are none, or a dev or test line is empty.
    """
    lines = 0
    for lines, pair in enumerate(read_pairs(sides), start=1):
        if split != "train" and not all(pair):
            raise UserError(f"{sides[bool(pair[0])]}: line {lines} is empty; fill it in or remove the pair")
    if not lines:
        raise UserError(f"{sides[0]}: has no lines")
    return lines


def fitting_vocabulary(pairs: Iterator[Pair]) -> int:
    """Return a vocabulary size that byte-pair encoding reaches on this text: characters plus half the words."""
    words, characters = set[str](), set[str]()
    for side in (side for pair in pairs for side in pair):
        words.update(WORD.findall(side))
        characters.update(side)
    return len({*characters} - {" "}) + RESERVED + len(words) // 2


def read_columns(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file of two tab-separated columns, and warn of a first one that looks like a header.

    Raises:
        UserError: A line has another number of columns.
    """
    for row, (number, fields) in enumerate(read_rows(lines_of(path), str(path))):
        if len(fields) != 2:
            raise UserError(f"{path}: line {number}: {count_of(len(fields), 'column')}; write two, separated by a tab")
        if not row and all(map(WORD.fullmatch, fields)):
            log.warning(
                "%s: line %d is taken as a pair; if %r and %r name the columns, remove it", path, number, *fields
            )
        yield visible_text(fields[0]), visible_text(fields[1])


def split_pairs(
    pairs: Iterator[Pair], shares: Sequence[float], folder: Path, languages: Sequence[str]
) -> tuple[dict[str, Sides], int]:
    """Write `<folder>/<split>.<language>`.

    Pairs with the same source sentence (by `comparison_key`) go to one split. Pairs with an empty side are left out.

    Args:
        pairs: All pairs of sentences.
        shares: Shares of train, dev and test; they sum to 1.
        folder: Folder of the files.
        languages: Source and target language.

    Returns:
        The files of each split and the number of empty pairs.
    """
    by_source: dict[str, list[Pair]] = {}
    empty = 0
    for pair in pairs:
        if all(pair):
            by_source.setdefault(comparison_key(pair[0]), []).append(pair)
        else:
            empty += 1
    files: dict[str, Sides] = {}
    for split, texts in by_split(by_source, shares, "source sentences").items():
        files[split] = folder / f"{split}.{languages[0]}", folder / f"{split}.{languages[1]}"
        for side, path in enumerate(files[split]):
            with new_file(path) as new, atomic_write(new) as file:
                file.writelines(f"{pair[side]}\n" for text in texts for pair in by_source[text])
    return files, empty
