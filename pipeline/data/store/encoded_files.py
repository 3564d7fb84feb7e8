"""Files of an encoded corpus, and the check that they have not changed."""

import contextlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.files import read_errors
from pipeline.core.records.corpus import Kind, read_corpus
from pipeline.core.records.preparation import VerifiedCorpus
from pipeline.core.records.record import read_note
from pipeline.core.retries import retry_read
from pipeline.data.store.sequence_store import NOISE_STEM, frame_files, token_files


def encoded_stores(encoded: Path, kind: Kind, splits: Iterable[str]) -> list[tuple[Path, Path]]:
    """Return the files of each store of an encoded corpus, without its record.

    Args:
        encoded: Folder of the encoded corpus.
        kind: Kind of the corpus.
        splits: Names of the splits.
    """
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
        states = {name: (one.st_size, one.st_mtime_ns) for name, one in found.items()}
        verified = VerifiedCorpus(digest=record.digest, files=states)
        note = encoded / ".verified.json"
        if not stores or read_note(VerifiedCorpus, note) == verified:
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
