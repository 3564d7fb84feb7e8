"""Files of an encoded corpus: their names, and the check that they have not changed."""

import contextlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.files import read_errors
from pipeline.core.records.corpus import Kind, VerifiedCorpus, read_corpus
from pipeline.core.retries import retry_read

NOISE_STEM = "noise"
"""Stem of the store of noises in the folder of an encoded speech corpus."""


def token_files(stem: Path) -> tuple[Path, Path]:
    """Return the files of ids and of offsets."""
    return stem.with_name(stem.name + ".tokens"), stem.with_name(stem.name + ".offsets")


def frame_files(stem: Path) -> tuple[Path, Path]:
    """Return the files of frames and of offsets."""
    return stem.with_name(stem.name + ".frames"), stem.with_name(stem.name + ".frames.offsets")


def encoded_stores(encoded: Path, kind: Kind, splits: Iterable[str]) -> list[tuple[Path, Path]]:
    """Return the files of each store of the `encoded` corpus of a `kind` with some `splits`, without its record."""
    splits = list(splits)
    sides = ("src", "tgt") if kind == "parallel" else ("tgt",)
    frames = (*splits, NOISE_STEM) if kind == "speech" and splits else ()
    tokens = [token_files(encoded / f"{split}.{side}") for split in splits for side in sides]
    return tokens + [frame_files(encoded / stem) for stem in frames]


def training_stores(encoded: Path) -> list[tuple[Path, Path]]:
    """Return the files that training reads at random."""
    return encoded_stores(encoded, read_corpus(encoded).kind, ["train"])


def require_whole(encoded: Path) -> None:
    """Check the digest of an encoded corpus once; a note holds while sizes and modification times stay.

    Raises:
        UserError: A file is missing, changed or unreadable.
    """
    record = read_corpus(encoded)
    stores = encoded_stores(encoded, record.kind, record.splits)
    with read_errors(REPAIR):
        found = {path.name: path.stat() for store in stores for path in store}
        states = {name: (status.st_size, status.st_mtime_ns) for name, status in found.items()}
        verified = VerifiedCorpus(digest=record.digest, files=states)
        note = encoded / ".verified.json"
        if not stores or VerifiedCorpus.read_if_valid(note) == verified:
            return
        digest = stores_digest(stores)
    if digest != record.digest:
        raise UserError(f"{encoded}: damaged, its files are not those that were encoded; {REPAIR}")
    with contextlib.suppress(UserError):  # a read-only folder is hashed again next time
        verified.write(note)


def stores_digest(stores: Iterable[tuple[Path, Path]]) -> str:
    """Return the digest of all files of some stores, as the record of an encoded corpus holds it.

    Raises:
        UserError: A file cannot be read.
    """
    files = [path for store in stores for path in store]
    return sha256_json({path.name: retry_read(path, partial(sha256_file, path)) for path in files})
