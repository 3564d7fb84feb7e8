"""The files of an encoded corpus, and whether they are still what was written."""

import contextlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pipeline.core.advice import REPAIR
from pipeline.core.errors import UserError
from pipeline.core.files import reading
from pipeline.core.patience import patiently
from pipeline.core.records.corpus import Kind, read_corpus
from pipeline.core.records.preparation import VerifiedCorpus
from pipeline.core.records.record import read_note
from pipeline.core.sha256 import sha256_file, sha256_json
from pipeline.data.store.sequence_store import NOISE_STEM, frame_files, token_files


def encoded_stores(encoded: Path, kind: Kind, splits: Iterable[str]) -> list[tuple[Path, Path]]:
    """What a corpus of some splits consists of, beside its record."""
    splits = list(splits)
    sides = ("src", "tgt") if kind == "parallel" else ("tgt",)
    frames = (*splits, NOISE_STEM) if kind == "speech" and splits else ()
    tokens = [token_files(encoded / f"{split}.{side}") for split in splits for side in sides]
    return tokens + [frame_files(encoded / stem) for stem in frames]


def training_stores(encoded: Path) -> list[tuple[Path, Path]]:
    """What is read all over, again and again."""
    return encoded_stores(encoded, read_corpus(encoded).kind, ["train"])


def require_whole(encoded: Path) -> None:
    """Hash what training and decoding will read, once: a note holds as long as sizes and times stay.

    Raises:
        UserError: a file is missing, altered, or can't be read.
    """
    record = read_corpus(encoded)
    stores = encoded_stores(encoded, record.kind, record.splits)
    with reading(REPAIR):
        found = {path.name: path.stat() for store in stores for path in store}
        states = {name: (one.st_size, one.st_mtime_ns) for name, one in found.items()}
        verified = VerifiedCorpus(digest=record.digest, files=states)
        note = encoded / ".verified.json"
        if not stores or read_note(VerifiedCorpus, note) == verified:
            return
        digest = stores_digest(stores)
    if digest != record.digest:
        raise UserError(f"{encoded}: damaged, its files are not what was encoded; {REPAIR}")
    with contextlib.suppress(UserError):  # in a folder that may not be written it is hashed again next time
        verified.write(note)


def stores_digest(stores: Iterable[tuple[Path, Path]]) -> str:
    """Of all files of the stores of an encoded corpus, as its record says it. Raises UserError as `patiently` does."""
    files = [path for store in stores for path in store]
    return sha256_json({path.name: patiently(path, partial(sha256_file, path)) for path in files})
