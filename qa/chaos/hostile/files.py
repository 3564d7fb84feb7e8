"""Altered files, and the functions that read them."""

import gzip
import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.data.dataset import Source, TextPart
from pipeline.data.dataset.parallel import Side
from pipeline.data.fetch.collect_trees import read_trees
from pipeline.data.fetch.download import fetch
from pipeline.data.fetch.raw_text import read_side
from pipeline.data.speech.collect_text import part_content, table_rows
from pipeline.data.text.text_files import lines_of
from qa.chaos.damage import DAMAGES
from reprise.portable import SUMS_FILE, open_packed

TEXTS: dict[str, bytes] = {
    "a.sgm": b"".join(b'<seg id="%d"> line %d . </seg>\n' % (n, n) for n in range(200)),
    "a.xml": b'<?xml version="1.0" encoding="utf-8"?><x><doc id="d"><src><seg>a b</seg></src>'
    b'<ref translator="A"><seg>c d</seg></ref></doc></x>',
    "a.txt": "one line\nÜ 你好\n".encode() * 200,
    "a.txt.gz": gzip.compress(b"one line\n" * 2000),
    "a.mrg": b"( (S (NP (PRP We)) (VP (VBP agree)) (. .)) )\n" * 200,
    "a.tsv": b"path\tspeaker\ttranscript\na.flac\tx\tWORD\n" * 100,
    "a.stm": b"talk 1 speaker 0.0 1.0 <o,f0,male> word(2) {noise}\n" * 200,
}


def flipped(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def repeated(content: bytes, rng: random.Random) -> bytes:
    """Repeat a piece very often."""
    first = rng.randrange(len(content))
    piece = content[first : first + rng.randrange(1, 12)]
    return content[:first] + piece * rng.choice([2, 1000, 100_000]) + content[first:]


def swapped(content: bytes, rng: random.Random) -> bytes:
    cut = rng.randrange(len(content))
    return content[cut:] + content[:cut]


def numbered(content: bytes, rng: random.Random) -> bytes:
    """Replace a digit by a number."""
    places = [place for place, byte in enumerate(content[:100_000]) if 48 <= byte < 58] or [0]
    place = rng.choice(places)
    return content[:place] + rng.choice([b"-1", b"9" * 30, b"nan", b"1e999", b"null", b"[]"]) + content[place + 1 :]


ALTERATIONS = [*DAMAGES.values(), flipped, flipped, repeated, swapped, numbered]


def altered(content: bytes, rng: random.Random) -> bytes:
    """Return the content with one to three alterations, never unchanged."""
    found = content
    while found == content:
        for _ in range(rng.randrange(1, 4)):
            found = rng.choice(ALTERATIONS)(found, rng) if found else b"x"
    return found


def text_case(rng: random.Random, folder: Path) -> list[Callable[[], object]]:
    """An altered text is refused or read; an altered download is always refused."""
    name = rng.choice([*TEXTS])
    path = folder / name
    path.write_bytes(altered(TEXTS[name], rng))
    source = Source(path=str(path), sha256=hashlib.sha256(TEXTS[name]).hexdigest())
    readers: dict[str, Callable[[], object]] = {
        "sgm": lambda: sum(1 for _ in read_side(Side(source=name), path)),
        "xml": lambda: sum(1 for _ in read_side(Side(source=name, translator="A"), path)),
        "txt": lambda: sum(1 for _ in lines_of(path, "write it again")),
        "gz": lambda: sum(1 for _ in read_side(Side(source=name), path)),
        "mrg": lambda: sum(1 for _ in read_trees([path])),
        "tsv": lambda: list(table_rows(lines_of(path, "write it again"), ("path", "speaker"), str(path))),
        "stm": lambda: sum(1 for _ in part_content(TextPart(source=name, layout="stm"), path, folder)),
    }
    return [readers[name.rpartition(".")[2]], lambda: must_refuse(lambda: fetch(name, source, folder / "d", None))]


def model_case(rng: random.Random, model: Path, folder: Path) -> list[Callable[[], object]]:
    """A model with an altered file is refused; with new sums over it, it is refused or translates."""
    from packed_model import write_sums

    packed = folder / "model"
    shutil.copytree(model, packed)
    path = rng.choice(sorted(packed.iterdir()))
    path.write_bytes(altered(path.read_bytes(), rng))

    def with_new_sums() -> None:
        if path.name != SUMS_FILE:
            write_sums(packed)
        open_packed(packed, "beam=1", threads=1).translate(["abcd efgh"])

    if path.name == SUMS_FILE:
        return [with_new_sums]
    return [lambda: must_refuse(lambda: open_packed(packed, threads=1)), with_new_sums]


def must_refuse(work: Callable[[], object]) -> None:
    """Check that altered files are refused.

    Raises:
        AssertionError: `work` accepts an altered file.
    """
    try:
        work()
    except UserError:
        return
    raise AssertionError("an altered file was not noticed")
