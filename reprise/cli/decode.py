"""Commands that translate and parse text and transcribe audio files, one output line each, in order."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.yaml_file import CONTROL
from reprise.opening import ModelOptions
from reprise.user_files import lines_of

if TYPE_CHECKING:
    from reprise.model import Model

LINES_AT_ONCE = 20_000
BYTES_AT_ONCE = 1 << 20
LONGEST_LINE = 10_000
"""Characters; no sentence has more, and tokenising a whole book takes long."""
FILES_AT_ONCE = 32
STANDARD_INPUT = Path("-")
"""Name of standard input among files, as in other programs."""
Run = Annotated[str, Argument(metavar="RUN")]
TextFiles = Annotated[tuple[Path, ...], Argument(metavar="FILE")]
ComputeType = Literal["float32", "int8", "int16", "bfloat16", "float16"]


class Chunk(NamedTuple):
    """Lines that are decoded together, and the input that they come from, of which `before` came before them."""

    lines: list[str]
    source: str
    before: int

    def place(self, number: int) -> str:
        """Return the place in the input of line `number` of the chunk, from 1."""
        return f"{self.source}, line {self.before + number}"


def translate(
    model: Run, files: TextFiles = (), *, ctranslate2: ComputeType | None = None, options: ModelOptions
) -> None:
    """Translate text, line by line.

        reprise translate attention/base/wmt14-en-de talk.en > talk.de
        echo "A dog sleeps." | reprise translate model/ --decoding beam=8
        reprise translate model/ talk.en --decoding length_normalisation=length,alpha=1 --ctranslate2 int8

    Without files, lines are read from standard input as they come, and their translations are flushed at once. The
    progress of long inputs goes to standard error.

    Args:
        model: paper/system/dataset/seed, a run's folder, or a packed model's.
        files: Text in UTF-8; `-`, the default, is standard input.
        ctranslate2: Search with CTranslate2, in numbers of this type; plain Transformers only.
        options: How to decode, and the settings of the project.
    """
    for chunk, opened in inputs(model, files, ctranslate2, options):
        write_lines(opened.translate(chunk.lines, chunk.place))


def parse(model: Run, files: TextFiles = (), *, ctranslate2: ComputeType | None = None, options: ModelOptions) -> None:
    """Parse text, line by line, with words separated by spaces.

        reprise parse attention/parsing/wsj sentences.txt > trees.txt

    Without files, lines are read from standard input as they come, and their trees are flushed at once.

    Args:
        model: paper/system/dataset/seed, a run's folder, or a packed model's.
        files: Text in UTF-8; `-`, the default, is standard input.
        ctranslate2: Search with CTranslate2, in numbers of this type; plain Transformers only.
        options: How to decode, and the settings of the project.
    """
    for chunk, opened in inputs(model, files, ctranslate2, options):
        write_lines(opened.parse(chunk.lines, chunk.place))


def transcribe(
    model: Run, files: Annotated[tuple[Path, ...], Argument(metavar="AUDIO")], *, options: ModelOptions
) -> None:
    """Transcribe audio files, one line per file.

        reprise transcribe coldfusion/ctc/source/1 speech.wav talk.flac

    Reads WAV, FLAC or OGG, of any sampling rate, mono or stereo. A model of a corpus with `speaker_cmvn` assumes that
    all files of a call have the same speaker: pass all recordings of a speaker in one call.

    Args:
        model: paper/system/dataset/seed, a run's folder, or a packed model's.
        files: Audio files.
        options: How to decode, and the settings of the project.
    """
    from reprise.model_input import read_sound

    require_files(files)
    opened = options.open(model)
    opened.require("speech", "transcribe")
    at_once = len(files) if opened.normalises_by_speaker else FILES_AT_ONCE
    for first in range(0, len(files), at_once):
        sounds = {
            f"{number}: {path}": read_sound(path) for number, path in enumerate(files[first:][:at_once], first + 1)
        }
        for line in opened.transcribe_all(sounds):
            print(line, flush=True)


def inputs(
    model: str, files: tuple[Path, ...], compute_type: ComputeType | None, options: ModelOptions
) -> Iterator[tuple[Chunk, "Model"]]:
    """Open a model, and read chunks of lines for it.

    Args:
        model: `paper/system/dataset/seed`, a run's folder, or a packed model's.
        files: Text files; `-` means standard input, and so do none.
        compute_type: Type of CTranslate2's numbers; None means our own search.
        options: How to decode, and the settings of the project.

    Yields:
        Lines without their ends, and the model.

    Raises:
        UserError: A file or the model can't be read.
    """
    files = files or (STANDARD_INPUT,)
    require_files(tuple(path for path in files if path != STANDARD_INPUT))
    opened = options.open(model)
    if compute_type:
        from reprise.ctranslate2 import ctranslate2_search  # an extra

        opened = replace(opened, search=ctranslate2_search(opened, compute_type))
    for path in files:
        for chunk in chunks_of_input() if path == STANDARD_INPUT else chunks_of_file(path):
            yield chunk, opened


def require_files(paths: tuple[Path, ...]) -> None:
    """Check that all `paths` are files, before a model is loaded or the first one is read.

    Raises:
        UserError: One is missing or a folder.
    """
    for path in paths:
        if not path.exists() or path.is_dir():
            raise UserError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")


def write_lines(lines: list[str]) -> None:
    """Write lines to standard output, and flush.

    On a terminal control characters are escaped, because a stranger's model may write sequences that a terminal obeys.
    """
    text = "".join(f"{line}\n" for line in lines)
    if sys.stdout.isatty():
        text = CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)
    sys.stdout.write(text)
    sys.stdout.flush()


def chunks_of_file(path: Path) -> Iterator[Chunk]:
    """Yield the lines of a file in large chunks, so that lines of similar length are decoded together."""
    numbered = enumerate(lines_of(path), start=1)
    lines = (checked(line.removesuffix("\n"), f"{path}, line {number}") for number, line in numbered)
    yield from chunks(lines, str(path))


def chunks_of_input() -> Iterator[Chunk]:
    """Yield the whole lines that standard input has ready: one from a keyboard, many from a pipe.

    Raises:
        UserError: It is closed, or a line can't be read.
    """
    if sys.stdin is None:
        raise UserError("standard input is closed; name a file, or redirect one with `< FILE`")
    rest, read = b"", 0
    while new := os.read(sys.stdin.fileno(), BYTES_AT_ONCE):
        *lines, rest = (rest + new).split(b"\n")
        yield from decode_lines(lines, read)
        read += len(lines)
    yield from decode_lines([rest] if rest else [], read)


def decode_lines(lines: list[bytes], read: int) -> Iterator[Chunk]:
    """Yield the lines of standard input, of which `read` came before these `lines`, as UTF-8 in chunks."""
    numbered = enumerate(lines, start=read + 1)
    source = "standard input"
    yield from chunks((text_of(line, f"{source}, line {number}") for number, line in numbered), source, read)


def chunks(lines: Iterator[str], source: str, before: int = 0) -> Iterator[Chunk]:
    """Group lines into chunks of up to `LINES_AT_ONCE`.

    Args:
        lines: Lines; reading one may raise UserError.
        source: Name of the input, for messages.
        before: Number of its lines that came before these.

    Yields:
        The chunks. Lines before a faulty one are yielded before its error is raised.

    Raises:
        UserError: A line can't be read.
    """
    good: list[str] = []
    try:
        for line in lines:
            good.append(line)
            if len(good) == LINES_AT_ONCE:
                yield Chunk(good, source, before)
                before += len(good)
                good = []
    except UserError:
        if good:
            yield Chunk(good, source, before)
        raise
    if good:
        yield Chunk(good, source, before)


def text_of(line: bytes, where: str) -> str:
    """Return a `line` without its end, read from `where`, decoded as UTF-8.

    Raises:
        UserError: It is not UTF-8 or too long.
    """
    try:
        return checked(line.decode(), where)
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 ({error.reason} at byte {error.start}); convert it first") from error


def checked(line: str, where: str) -> str:
    """Return the `line` from `where` if it is not too long for a sentence.

    Raises:
        UserError: It has more than `LONGEST_LINE` characters.
    """
    if len(line) > LONGEST_LINE:
        raise UserError(f"{where}: {len(line):,} characters; the limit is {LONGEST_LINE:,}; write a sentence per line")
    return line
