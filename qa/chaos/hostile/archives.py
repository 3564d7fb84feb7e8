"""Archives unlike any that a sane program writes, and the functions that read them."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

from pipeline.data.dataset import TextPart
from pipeline.data.fetch.archives import members, unpack
from pipeline.data.speech.collect_recordings import unpack as unpack_recordings
from pipeline.data.speech.collect_text import part_content
from qa.chaos.damage import DAMAGES
from reprise.portable import unpack as unpack_model

GOOD = [
    "corpus/train.en",
    "corpus\\train.en",
    "./corpus/./train.en",
    "corpus/a/b.txt",
    "c",
    "u\u0308",
    "corpus/._train.en",
]
BAD = ["corpus/train.en/", "__MACOSX/corpus/._train.en", "../escape", "corpus/../../escape", "..\\escape", "C:\\escape"]
BAD += [
    "/tmp/escape-of-the-hostile-suite",
    "",
    ".",
    "a" * 300,
    "n/" * 300,
    "new\nline",
    "\x1b[31mred",
    "\udcff\udcfe",
    "con",
]


def name(rng: random.Random) -> str:
    return rng.choice(GOOD if rng.random() < 0.9 else BAD)


NUMBERS = [
    "0",
    "-1",
    "1e9",
    "nan",
    "",
    "x",
    "99999999999999",
    "9" * 400,
    "0x10",
    "\u0663",
    "1,2",
    "1,2,3",
    "0,99999999999999",
]
KEYS = ["size", "path", "linkpath", "mtime", "uid", "hdrcharset", "comment"]
SPARSE = ["GNU.sparse.map", "GNU.sparse.size", "GNU.sparse.realsize", "GNU.sparse.major", "GNU.sparse.minor"]
SPARSE += ["GNU.sparse.numblocks", "GNU.sparse.offset", "GNU.sparse.numbytes", "GNU.sparse.name"]
TYPES = [tarfile.REGTYPE] * 6 + [tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
TYPES += [tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE, b"Z"]


def content(rng: random.Random) -> bytes:
    kinds: list[Callable[[], bytes]] = [
        lambda: rng.randbytes(rng.randrange(2000)),
        lambda: bytes(rng.randrange(100_000)),
        lambda: b"a line\n" * rng.randrange(100),
        lambda: b"9" * rng.randrange(10_000),
        lambda: gzip.compress(bytes(1 << 20)),
    ]
    return rng.choice(kinds)()


def tar_entry(rng: random.Random) -> bytes:
    entry = tarfile.TarInfo(name(rng))
    body = content(rng)
    entry.type, entry.linkname, entry.size = rng.choice(TYPES), name(rng), len(body)
    keys = rng.choice([[], [], KEYS, SPARSE, KEYS + SPARSE])
    entry.pax_headers = {key: rng.choice(NUMBERS) for key in rng.sample(keys, min(len(keys), rng.randrange(4)))}
    form = tarfile.PAX_FORMAT if entry.pax_headers else rng.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    header = bytearray(entry.tobuf(form, errors="surrogateescape"))
    if rng.random() < 0.1:
        header[rng.randrange(len(header))] ^= 1 << rng.randrange(8)
    return bytes(header) + body + bytes(-len(body) % 512)


def tar(rng: random.Random) -> bytes:
    entries = b"".join(tar_entry(rng) for _ in range(rng.randrange(8)))
    compress = rng.choice([bytes, gzip.compress, bz2.compress, lzma.compress])
    return compress(entries + bytes(rng.choice([0, 512, 1024, 10240])))


def zipped(rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for _ in range(rng.randrange(8)):
            entry = zipfile.ZipInfo("x")
            entry.filename = name(rng).encode(errors="replace").decode()
            entry.compress_type = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
            entry.external_attr = rng.choice([0o100644, 0o120777, 0o040755, 0o020644]) << 16
            with archive.open(entry, "w") as file:
                file.write(rng.choice([content(rng), name(rng).encode(errors="replace")]))
    found = bytearray(buffer.getvalue())
    for _ in range(rng.choice([0, 0, 1, 5])):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def archive(rng: random.Random) -> bytes:
    found = rng.choice([tar, tar, zipped])(rng)
    return rng.choice([*DAMAGES.values()])(found, rng) if found and rng.random() < 0.2 else found


def read_everywhere(path: Path, folder: Path) -> list[Callable[[], object]]:
    """Read an archive in each way that the project has."""
    return [
        lambda: [stream.read(1 << 20) for name, _, stream in members(path, lambda name: fnmatch(name, "*"))],
        lambda: unpack(path, "a", {"corpus/train.en"}, folder / "wanted"),
        lambda: unpack_recordings(path, ["*"], ("",), folder / "recordings"),
        lambda: unpack_model(path, folder / "models"),
        lambda: sum(1 for _ in part_content(TextPart(source="a", member="*", layout="plain"), path, folder / "text")),
    ]
