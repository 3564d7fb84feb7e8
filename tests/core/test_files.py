"""Files are complete or absent; a write error is one line; leftovers of killed processes are removed."""

import errno
import hashlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core import digests, files
from pipeline.core.digests import checking_inputs
from pipeline.core.errors import UserError
from pipeline.core.files import append_line, atomic_write, complete_lines, note_path, set_aside
from pipeline.workflow.file_checks import check_file


@pytest.fixture
def events(monkeypatch):
    """Return what is synced and renamed, in order: a folder's name, or a file's content on disk at that time."""
    seen, fsync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        seen.append(path.name if path.is_dir() else path.read_bytes())
        fsync(descriptor)

    def renamed(source, target):
        seen.append(f"renamed to {os.path.basename(target)}")
        replace(source, target)

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr("os.replace", renamed)
    return seen


def random_text() -> str:
    return "".join(random.choices("aä漢\n", k=random.randrange(1, 50_000)))


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_atomic_write_syncs_the_file_then_renames_it(tmp_path, events, mode):
    """Whenever the power goes, the file is whole or not there; no other file is left."""
    text = random_text()
    with atomic_write(tmp_path / "folder/file", mode) as handle:
        handle.write(text if mode == "w" else text.encode())
    assert events == [text.encode(), "renamed to file", "folder"]
    assert (tmp_path / "folder/file").read_bytes() == text.encode() and os.listdir(tmp_path / "folder") == ["file"]


def test_torn_last_line_is_skipped_and_replaced_by_the_next(tmp_path):
    path = tmp_path / "lines"
    for text, expected in (("", []), ("one\n", [b"one"]), ("one\ntw", [b"one"]), ("o", [])):
        path.write_text(text)
        assert complete_lines(path) == expected
        append_line(path, b"new\n")
        assert complete_lines(path) == [*expected, b"new"]


def test_line_is_whole_though_the_system_takes_a_part(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    monkeypatch.setattr(files.Disk, "write", lambda handle, content: super(files.Disk, handle).write(content[:3]))
    append_line(path, b"a longer line\n")
    assert path.read_bytes() == b"a longer line\n"


def test_write_error_names_the_remedy_for_its_errno(tmp_path):
    advice = {errno.ENOSPC: "free some space or choose", errno.EROFS: "make its folder writable or choose"}
    advice[errno.ESTALE] = "check its disk, then run the same command again, or choose"
    for number, remedy in advice.items():
        with pytest.raises(UserError, match=f"; {remedy}"), files.write_errors(tmp_path / "file"):
            raise OSError(number, os.strerror(number))


DISK = files.Disk


def test_an_error_of_somebody_else_is_not_blamed_on_the_disk(tmp_path):
    with pytest.raises(ConnectionResetError, match="by peer"), atomic_write(tmp_path / "file") as handle:
        handle.write("x")
        raise ConnectionResetError("by peer")
    with pytest.raises(FileNotFoundError, match="elsewhere"), atomic_write(tmp_path / "file") as handle:
        handle.write((tmp_path / "elsewhere").read_text())
    assert not os.listdir(tmp_path)


def test_temporary_file_of_a_killed_write_is_removed_by_the_next(tmp_path):
    if (child := os.fork()) == 0:
        try:
            with atomic_write(tmp_path / "big"):
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    files.remove_orphans.cache_clear()
    with atomic_write(tmp_path / "other") as handle:
        handle.write("x")
    assert os.listdir(tmp_path) == ["other"]


def test_sweep_removes_only_abandoned_files_and_folders(tmp_path):
    here, old = os.uname().nodename, time.time() - files.ORPHAN_AFTER_S - 10
    kept = [f".a.{here}.{os.getpid()}.tmp", ".b.elsewhere.1.tmp", ".c.tmp", "d.elsewhere.1.tmp"]
    (tmp_path / ".f.elsewhere.1.tmp").mkdir()
    for name in (*kept, ".e.elsewhere.1.tmp", ".f.elsewhere.1.tmp"):
        (tmp_path / name).touch()
        if not name.startswith(".b"):
            os.utime(tmp_path / name, (old, old))
    files.remove_orphans.cache_clear()
    files.remove_orphans(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


@pytest.fixture
def abandoned(tmp_path):
    """A part file of a process that is not there."""
    path = tmp_path / f".a.{os.uname().nodename}.{2**22 + 1}.tmp"
    path.touch()
    files.remove_orphans.cache_clear()
    return path


def test_temporary_files_of_other_users_are_not_removed(abandoned, monkeypatch):
    """Simulates /proc mounted with `hidepid`, as on many clusters."""
    monkeypatch.setattr(os, "getuid", lambda: abandoned.stat().st_uid + 1)
    files.remove_orphans(abandoned.parent)
    assert abandoned.exists()


def test_part_file_that_cannot_be_swept_blocks_no_writer(tmp_path, abandoned, monkeypatch):
    """File that another user left in a folder that is shared by the sticky bit."""

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path == abandoned:
            raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "unlink", refused)
    with atomic_write(tmp_path / "b") as handle:
        handle.write("x")
    assert (tmp_path / "b").read_text() == "x"


def test_noted_digest_of_an_output_is_dropped_when_rewritten(tmp_path):
    path, text = tmp_path / "file", random_text()
    with digests.recording_digests(), atomic_write(path) as handle:
        handle.write(text)
    assert digests.noted_digest(path) == hashlib.sha256(text.encode()).hexdigest() == digests.digest_of(path)
    append_line(path, b"more\n")
    assert digests.noted_digest(path) is None
    digests.write_note(path)
    with atomic_write(path) as handle:
        handle.write(text)
    assert digests.noted_digest(path) is None
    digests.write_note(path)
    set_aside(path)
    assert digests.noted_digest(path) is None and digests.noted_files(tmp_path) == []


def test_failed_stage_records_no_digest(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(ValueError), digests.recording_digests(), atomic_write(path):
        raise ValueError
    with pytest.raises(ValueError), digests.recording_digests():
        path.touch()
        files.register_output(path)
        raise ValueError
    assert digests.noted_digest(path) is None


def test_note_is_written_atomically_with_fsync(tmp_path, events):
    path = tmp_path / "file"
    path.write_bytes(content := random.randbytes(100))
    digests.write_note(path)
    written = f"{hashlib.sha256(content).hexdigest()} {path.stat().st_mtime_ns}\n"
    assert events == [written.encode(), "renamed to file", digests.note_path(path).parent.name]
    assert digests.read_note(path) == digests.Note(digests.digest_of(path), path.stat().st_mtime_ns)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_stage_fails_when_its_note_cannot_be_written(number, tmp_path, monkeypatch):
    def refuse(path, wanted, mode="wb"):
        if ".digests" in path.parts:
            raise OSError(number, os.strerror(number))
        return DISK(path, wanted, mode)

    monkeypatch.setattr(files, "Disk", refuse)
    refused = pytest.raises(UserError, match=rf"can't write .*\.digests/file: {os.strerror(number)}")
    with refused, digests.recording_digests(), atomic_write(tmp_path / "file") as handle:
        handle.write("x")
    assert not os.listdir(tmp_path / ".digests")


def damaged_notes(whole: bytes) -> Iterator[bytes]:
    """Every cut of a note within its digest, and notes with one byte that no digest has."""
    yield from (whole[:size] for size in range(64))
    yield from (whole[:size] for size in range(65, len(whole)))
    for _ in range(50):
        content = bytearray(whole)
        content[random.randrange(64)] = random.choice(sorted(set(range(256)) - set(b"0123456789abcdef")))
        yield bytes(content)
    yield from (b"\n", whole + whole, b"\xff\xfe", bytes(len(whole)))


def test_cut_or_altered_note_counts_as_damage(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    digests.write_note(path)
    whole = note_path(path).read_bytes()
    for content in damaged_notes(whole):
        note_path(path).write_bytes(content)
        with pytest.raises(digests.DamagedNoteError, match=r"\.digests/file: is damaged.*verify --repair"):
            digests.noted_digest(path)
        with checking_inputs(), pytest.raises(digests.DamagedNoteError):
            open(path).close()
        found = check_file(path)
        assert found.state == "damaged" and ".digests/file is damaged" in found.fault
    note_path(path).write_bytes(whole[:64])  # as earlier versions wrote it
    assert digests.noted_digest(path) == whole[:64].decode() and check_file(path).state == "good"


def test_the_digest_of_a_folder_depends_on_every_name_and_byte(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.flac").write_bytes(random.randbytes(100))
    before = digests.digest_of(tmp_path)
    (tmp_path / "1.flac").rename(tmp_path / "4.flac")
    renamed = digests.digest_of(tmp_path)
    (tmp_path / "4.flac").rename(tmp_path / "1.flac")
    assert digests.digest_of(tmp_path) == before != renamed
    content = bytearray((tmp_path / "2.flac").read_bytes())
    content[random.randrange(100)] ^= 1
    (tmp_path / "2.flac").write_bytes(content)
    assert digests.digest_of(tmp_path) != before
