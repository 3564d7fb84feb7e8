"""Encoded corpora and their stores: round trips, damage, hashing before use, and copies on a local disk."""

import os
import random
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from made_records import parallel_corpus, parallel_split

from pipeline.core.errors import UserError
from pipeline.data import encoded_files, staging
from pipeline.data.encoded_files import encoded_stores, require_whole, stores_digest, token_files
from pipeline.data.sequence_store import TokenStore, token_type, write_tokens
from pipeline.data.staging import copy_of, file_system, stage_in, staged_path


@pytest.fixture
def encoded(tmp_path):
    rng = np.random.default_rng()
    for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
        lengths = rng.integers(1, 30, 50)
        with write_tokens(tmp_path / name, 1000) as store:
            store.append(rng.integers(1, 1000, lengths.sum()), lengths)
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
    hashed, real = [], encoded_files.sha256_file
    monkeypatch.setattr(encoded_files, "sha256_file", lambda path: hashed.append(path) or real(path))
    for expected in (8, 8):
        require_whole(encoded)
        assert len(hashed) == expected
    os.utime(encoded / "dev.src.tokens")
    require_whole(encoded)
    assert len(hashed) == 16


def test_a_folder_that_may_not_be_written_is_hashed_each_time(encoded, monkeypatch):
    monkeypatch.setattr(encoded_files.VerifiedCorpus, "write", Mock(side_effect=UserError("can't write")))
    for _ in range(2):
        require_whole(encoded)
    assert not (encoded / ".verified.json").exists()


@pytest.fixture
def sentences(seed):
    generator = np.random.default_rng(seed)
    return [generator.integers(4, 60000, generator.integers(0, 9)).tolist() for _ in range(20)]


def write_store(folder: Path, sentences: list[list[int]], vocab_size: int = 1 << 16) -> Path:
    """Write sentences in two parts, and return the stem of their files."""
    with write_tokens(folder / "train.src", vocab_size) as writer:
        for part in (sentences[:7], sentences[7:]):
            writer.append(np.array([i for s in part for i in s]), [len(s) for s in part])
    return folder / "train.src"


@pytest.mark.parametrize("vocab_size", [1 << 16, (1 << 16) + 1])
def test_sentences_round_trip_in_the_narrowest_integer_type(tmp_path, sentences, vocab_size):
    found = TokenStore(write_store(tmp_path, sentences, vocab_size))
    assert len(found) == len(sentences)
    assert [found[i].tolist() for i in range(len(found))] == sentences
    assert found.lengths().tolist() == [len(s) for s in sentences]
    assert found.values.dtype == token_type(vocab_size) == np.dtype("<u2" if vocab_size == 1 << 16 else "<u4")


@pytest.mark.parametrize(("first", "last"), [(None, 3), (2, None), (2, 3), (None, None)])
def test_rows_are_padded_and_framed(tmp_path, sentences, seed, first, last):
    indices = np.random.default_rng(seed).permutation(len(sentences))[:6]
    before, after = ([] if frame is None else [frame] for frame in (first, last))
    framed = [before + sentences[i] + after for i in indices]
    longest = max(map(len, framed))
    rows = TokenStore(write_store(tmp_path, sentences)).padded(indices, first, last, pad=0)
    assert rows.dtype == np.int64 and rows.shape == (6, longest)
    assert rows.tolist() == [row + [0] * (longest - len(row)) for row in framed]


@pytest.mark.parametrize("name", ["train.src.tokens", "train.src.offsets"])
def test_missing_and_cut_files_are_named(tmp_path, sentences, name):
    path = write_store(tmp_path, sentences).with_name(name)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=name):
        TokenStore(path.with_name("train.src"))
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: no such file"):
        TokenStore(path.with_name("train.src"))


def test_a_failed_write_leaves_no_store(tmp_path):
    with pytest.raises(ZeroDivisionError), write_tokens(tmp_path / "train.src", 100) as store:
        store.append(np.array([5, 6]), [2])
        raise ZeroDivisionError
    assert not any(tmp_path.iterdir())


def test_an_empty_split_is_readable(tmp_path):
    with write_tokens(tmp_path / "train.src", 100):
        pass
    assert len(TokenStore(tmp_path / "train.src")) == 0


@pytest.fixture
def far(tmp_path, monkeypatch):
    """Return a folder that counts as a network disk, beside a temporary folder on a local disk."""
    folder, near = tmp_path / "far", tmp_path / "near"
    folder.mkdir()
    near.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(near))
    monkeypatch.setattr(staging, "file_system", lambda path: "lustre" if folder in Path(path).parents else "ext4")
    return folder


@pytest.fixture
def stem(far):
    generator = np.random.default_rng(1)
    with write_tokens(far / "train.src", 100) as store:
        store.append(generator.integers(0, 100, 60), [10, 20, 30])
    return far / "train.src"


def rows(stem) -> list[list[int]]:
    store = TokenStore(stem)
    return [store[index].tolist() for index in range(len(store))]


def test_a_store_is_read_from_its_copy_and_is_the_same(stem):
    before = rows(stem)
    stage_in(token_files(stem))
    copies = [staged_path(path) for path in token_files(stem)]
    assert all("near" in copy.parts for copy in copies)
    assert [copy.read_bytes() for copy in copies] == [path.read_bytes() for path in token_files(stem)]
    assert Path(TokenStore(stem).values.filename) == copies[0]
    assert rows(stem) == before


def test_a_copy_of_what_a_file_was_before_is_not_read(stem):
    stage_in(token_files(stem))
    with write_tokens(stem, 100) as store:
        store.append(np.arange(5), [5])
    assert rows(stem) == [[0, 1, 2, 3, 4]]


def test_a_copy_that_is_there_is_not_made_again(stem):
    stage_in(token_files(stem))
    copy = copy_of(token_files(stem)[0])
    written = copy.stat().st_mtime_ns
    stage_in(token_files(stem))
    assert copy.stat().st_mtime_ns == written


def test_store_is_read_in_place_if_the_disk_is_full(stem, monkeypatch):
    passed = []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 0, 100))
    monkeypatch.setattr(staging, "read_through", passed.append)
    stage_in(token_files(stem))
    assert passed == list(token_files(stem))
    assert [staged_path(path) for path in token_files(stem)] == list(token_files(stem))


def test_failed_copy_leaves_no_file_and_store_is_read_in_place(stem, monkeypatch):
    def fill_up(source, target):
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", fill_up)
    stage_in(token_files(stem))
    assert staged_path(token_files(stem)[0]) == token_files(stem)[0]
    assert not [path for path in (stem.parents[1] / "near").rglob("*") if path.is_file()]


def test_staging_copies_nothing_on_a_local_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "unused"))
    (tmp_path / "file").write_text("here")
    stage_in([tmp_path / "file"])
    assert staged_path(tmp_path / "file") == tmp_path / "file"


def test_the_type_of_a_file_system_is_that_of_the_nearest_mount():
    assert file_system(Path("/proc/self/status")) == "proc"
    assert file_system(Path(os.sep)) != "proc"


def test_mounts_are_known_by_any_name(tmp_path, monkeypatch):
    """proc(5) writes a space as an octal number and other bytes as they are, here Latin-1."""
    listed = os.fsencode(tmp_path)
    rows = [b"server:/a " + listed + rb"/my\040disk nfs4 rw 0 0", b"b " + listed + b"/d\xe9j\xe0 lustre rw 0 0"]
    rows.append(b"c /c fuse.\xe9 rw 0 0")
    (tmp_path / "mounts").write_bytes(b"\n".join(rows))
    monkeypatch.setattr(staging, "MOUNTS", tmp_path / "mounts")
    assert file_system(tmp_path / "my disk/file") == "nfs4"
    assert file_system(tmp_path / os.fsdecode(b"d\xe9j\xe0/file")) == "lustre"
    assert file_system(tmp_path / "my") == ""
    (odd := tmp_path / os.fsdecode(b"\xe9")).write_text("x")
    assert copy_of(odd).name == odd.name
