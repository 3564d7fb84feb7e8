"""Encoded corpora are hashed before use, once while they do not change."""

import os
import random

import numpy as np
import pytest
from made_records import parallel_corpus, parallel_split

from pipeline.core.errors import UserError
from pipeline.data import encoded_files
from pipeline.data.encoded_files import encoded_stores, require_whole, stores_digest
from pipeline.data.sequence_store import write_tokens


@pytest.fixture
def encoded(tmp_path):
    for split in ("train", "dev"):
        for side in ("src", "tgt"):
            with write_tokens(tmp_path / f"{split}.{side}", 1000) as store:
                lengths = np.random.default_rng().integers(1, 30, 50)
                store.append(np.random.default_rng().integers(1, 1000, lengths.sum()), lengths)
    splits = {"train": parallel_split(), "dev": parallel_split()}
    digest = stores_digest(encoded_stores(tmp_path, "parallel", splits))
    parallel_corpus(1000, splits=splits, digest=digest).write(tmp_path / "corpus.json")
    return tmp_path


def test_zeroed_bytes_are_refused_with_a_remedy(encoded):
    path = random.choice([path for path in encoded.iterdir() if path.suffix in (".tokens", ".offsets")])
    content = bytearray(path.read_bytes())
    first = random.randrange(len(content) - 8)
    content[first : first + 8] = bytes(8) if any(content[first : first + 8]) else b"\x01" * 8
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"damaged.*; run `reprise verify --repair`"):
        require_whole(encoded)
    path.unlink()
    with pytest.raises(UserError, match=rf"{path.name}: no such file; run `reprise verify --repair`"):
        require_whole(encoded)


def test_files_are_hashed_again_only_when_one_changed(encoded, monkeypatch):
    hashed = []
    monkeypatch.setattr(encoded_files, "sha256_file", lambda path: hashed.append(path) or real(path))
    require_whole(encoded)
    assert len(hashed) == 8
    require_whole(encoded)
    assert len(hashed) == 8
    os.utime(encoded / "dev.src.tokens")
    require_whole(encoded)
    assert len(hashed) == 16


real = encoded_files.sha256_file


def test_a_folder_that_may_not_be_written_is_hashed_each_time(encoded, monkeypatch):
    def refuse(self, path):
        raise UserError("can't write")

    monkeypatch.setattr(encoded_files.VerifiedCorpus, "write", refuse)
    require_whole(encoded)
    require_whole(encoded)
    assert not (encoded / ".verified.json").exists()
