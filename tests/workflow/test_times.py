"""A copied input gets its modification time back only if its content matches the recorded digest."""

import os
import random
import time
from pathlib import Path

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


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize(
    ("change", "artifact_ns"),
    [
        pytest.param(rewrite, 1, id="changed"),
        pytest.param(lambda path: None, -1, id="made after its artifact"),
        pytest.param(lambda path: note_path(path).unlink(), 1, id="without a note"),
        pytest.param(lambda path: note_path(path).write_bytes(b""), 1, id="empty note"),
        pytest.param(lambda path: note_path(path).write_bytes(b"\xff"), 1, id="binary note"),
        pytest.param(lambda path: note_path(path).write_bytes(b"0" * 64), 1, id="old form of a note"),
    ],
)
def test_other_input_keeps_its_time(copied, change, artifact_ns):
    path, made_ns = copied
    change(path)
    before = path.stat().st_mtime_ns
    assert not restore(path, made_ns + artifact_ns) and path.stat().st_mtime_ns == before


def test_older_input_is_not_even_read(copied, monkeypatch):
    path, _ = copied
    monkeypatch.setattr("builtins.open", None)
    assert not restore(path, path.stat().st_mtime_ns) and not restore(path, None)
