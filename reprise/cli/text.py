"""Translate or parse text, a line each, in the order given; progress of long inputs goes to standard error.

    reprise translate attention/base/wmt14-en-de talk.en > talk.de
    echo "A dog sleeps." | reprise translate model/ --decoding beam=8
    reprise translate model/ talk.en --decoding length_normalisation=length,alpha=1 --ctranslate2 int8

Without a FILE, lines are read from standard input as they come, and what is made of them is flushed at once.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipeline.core.errors import UserError
from reprise.opening import add_model_arguments, opened
from reprise.own_files import lines_of, not_text

LINES_AT_ONCE = 20_000
BYTES_AT_ONCE = 1 << 20
LONGEST_LINE = 10_000
"""Characters: some 1,500 words. What a model's attention takes of memory grows by the square: gigabytes beyond."""
NUMBERS = ("float32", "int8", "int16", "bfloat16", "float16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="text in UTF-8; default: standard input")
    parser.add_argument(
        "--ctranslate2", choices=NUMBERS, help="search by CTranslate2, in such numbers: plain Transformers alone"
    )


def run(args: argparse.Namespace) -> None:
    for path in args.files:
        if not path.exists() or path.is_dir():
            raise UserError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
    model = opened(args)
    if args.ctranslate2:
        from reprise.ctranslate2_search import ctranslate2_search  # an extra

        model = replace(model, search=ctranslate2_search(model, args.ctranslate2))
    work = getattr(model, args.stage)
    for lines in chunks_of_files(args.files) if args.files else chunks_of_input():
        sys.stdout.write("".join(f"{line}\n" for line in work(lines)))
        sys.stdout.flush()


def chunks_of_files(paths: list[Path]) -> Iterator[list[str]]:
    """Lines of the files, many at once, so that like lengths are decoded together."""
    for path in paths:
        numbered = enumerate(lines_of(path), start=1)
        yield from chunks(short_enough(line.removesuffix("\n"), f"{path}, line {number}") for number, line in numbered)


def chunks_of_input() -> Iterator[list[str]]:
    """Whole lines of standard input, as many as are there already: one from a keyboard, many from a pipe."""
    rest, read = b"", 0
    while new := os.read(sys.stdin.fileno(), BYTES_AT_ONCE):
        *lines, rest = (rest + new).split(b"\n")
        yield from decoded(lines, read)
        read += len(lines)
    yield from decoded([rest] if rest else [], read)


def decoded(lines: list[bytes], read: int) -> Iterator[list[str]]:
    """read: how many lines were before these."""
    numbered = enumerate(lines, start=read + 1)
    yield from chunks(text_of(line, f"standard input, line {number}") for number, line in numbered)


def chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Many at once; those before one that can't be read, then its UserError."""
    good: list[str] = []
    try:
        for line in lines:
            good.append(line)
            if len(good) == LINES_AT_ONCE:
                yield good
                good = []
    except UserError:
        if good:
            yield good
        raise
    if good:
        yield good


def text_of(line: bytes, where: str) -> str:
    """Raises UserError when it isn't UTF-8, or is too long."""
    try:
        return short_enough(line.decode(), where)
    except UnicodeDecodeError as error:
        raise not_text(where, error) from error


def short_enough(line: str, where: str) -> str:
    """The line. Raises UserError when it is no sentence, nor a few."""
    if len(line) > LONGEST_LINE:
        raise UserError(f"{where}: {len(line):,} characters; {LONGEST_LINE:,} are read at most: a sentence a line")
    return line
