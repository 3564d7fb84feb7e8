"""A copied input gets its modification time back only if its content matches the recorded digest."""

import os
import random
import time

import pytest

from pipeline.core.digests import digest_of, write_note
from pipeline.core.files import note_path
from pipeline.workflow.times import restore


@pytest.fixture
def copied(tmp_path):
    """An input that was made some time ago, and whose copy is newer than what was made of it."""
    path = tmp_path / "input"
    path.write_bytes(random.randbytes(random.randrange(1000)))
    made_ns = time.time_ns() - random.randrange(10**9, 10**12)
    os.utime(path, ns=(made_ns, made_ns))
    write_note(path)
    os.utime(path)
    return path, made_ns


def test_unchanged_input_gets_its_time_back(copied):
    path, made_ns = copied
    before = digest_of(path)
    assert restore(path, made_ns + 1)
    assert path.stat().st_mtime_ns == made_ns and digest_of(path) == before
    assert not restore(path, made_ns + 1)


def test_changed_input_keeps_its_time(copied):
    path, made_ns = copied
    path.write_bytes(path.read_bytes() + b"x")
    before = path.stat().st_mtime_ns
    assert not restore(path, made_ns + 1) and path.stat().st_mtime_ns == before


def test_input_made_after_its_product_keeps_its_time(copied):
    path, made_ns = copied
    before = path.stat().st_mtime_ns
    assert not restore(path, made_ns - 1) and path.stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"0" * 64], ids=["missing", "empty", "binary", "old form"])
def test_input_without_a_whole_note_keeps_its_time(copied, content):
    path, made_ns = copied
    note_path(path).unlink()
    if content is not None:
        note_path(path).write_bytes(content)
    before = path.stat().st_mtime_ns
    assert not restore(path, made_ns + 1) and path.stat().st_mtime_ns == before


def test_older_input_is_not_even_read(copied, monkeypatch):
    path, _ = copied
    monkeypatch.setattr("builtins.open", None)
    assert not restore(path, path.stat().st_mtime_ns) and not restore(path, None)
