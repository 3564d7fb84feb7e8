"""A corpus on a network disk is copied to the local disk if there is room, and else read once in order."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.data import encoded_files
from pipeline.data.encoded_files import copy_of, file_system, nearest, stage, token_files
from pipeline.data.sequence_store import TokenStore, write_tokens


@pytest.fixture
def far(tmp_path, monkeypatch):
    """Return a folder that counts as a network disk, beside a temporary folder on a local disk."""
    folder, near = tmp_path / "far", tmp_path / "near"
    folder.mkdir()
    near.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(near))
    monkeypatch.setattr(encoded_files, "file_system", lambda path: "lustre" if folder in Path(path).parents else "ext4")
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
    stage(token_files(stem))
    copies = [nearest(path) for path in token_files(stem)]
    assert all("near" in copy.parts for copy in copies)
    assert [copy.read_bytes() for copy in copies] == [path.read_bytes() for path in token_files(stem)]
    assert Path(TokenStore(stem).values.filename) == copies[0]
    assert rows(stem) == before


def test_a_copy_of_what_a_file_was_before_is_not_read(stem):
    stage(token_files(stem))
    with write_tokens(stem, 100) as store:
        store.append(np.arange(5), [5])
    assert rows(stem) == [[0, 1, 2, 3, 4]]


def test_a_copy_that_is_there_is_not_made_again(stem):
    stage(token_files(stem))
    copy = copy_of(token_files(stem)[0])
    written = copy.stat().st_mtime_ns
    stage(token_files(stem))
    assert copy.stat().st_mtime_ns == written


def test_store_is_read_in_place_if_the_disk_is_full(stem, monkeypatch):
    passed = []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 0, 100))
    monkeypatch.setattr(encoded_files, "read_through", passed.append)
    stage(token_files(stem))
    assert passed == list(token_files(stem))
    assert [nearest(path) for path in token_files(stem)] == list(token_files(stem))


def test_failed_copy_leaves_no_file_and_store_is_read_in_place(stem, monkeypatch):
    def fill_up(source, target):
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", fill_up)
    stage(token_files(stem))
    assert nearest(token_files(stem)[0]) == token_files(stem)[0]
    assert not [path for path in (stem.parents[1] / "near").rglob("*") if path.is_file()]


def test_staging_copies_nothing_on_a_local_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "unused"))
    (tmp_path / "file").write_text("here")
    stage([tmp_path / "file"])
    assert nearest(tmp_path / "file") == tmp_path / "file"


def test_the_type_of_a_file_system_is_that_of_the_nearest_mount():
    assert file_system(Path("/proc/self/status")) == "proc"
    assert file_system(Path(os.sep)) != "proc"
