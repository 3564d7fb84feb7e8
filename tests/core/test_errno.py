"""For every error number of a system call, a file is complete or unchanged, and the user reads one line."""

import errno
import importlib.util
import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from pipeline.__main__ import status_of
from pipeline.cluster import node_check
from pipeline.core import files
from pipeline.core.errors import UserError
from pipeline.data.fetch import archives
from pipeline.data.speech import collect_recordings
from reprise.user_files import whole_folder

NUMBERS = sorted(errno.errorcode)


class Refusals:
    """The calls that fail from now on, and the error number of each."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def ask(self, call: str) -> None:
        if number := self.number.get(call):
            raise OSError(number, os.strerror(number))

    def before(self, call: str, real: Callable) -> Callable:
        """Return `real`, preceded by the failure that is ordered for `call`."""

        def answer(*arguments, **keywords):
            self.ask(call)
            return real(*arguments, **keywords)

        return answer


@pytest.fixture
def refusals() -> Refusals:
    return Refusals()


def faulty_io(refusals):
    """Return a class of files whose calls fail as ordered."""

    class FaultyIO(io.FileIO):
        def __init__(self, path, mode):
            refusals.ask("open")
            super().__init__(path, mode)

        def write(self, content):
            refusals.ask("write")
            return super().write(content)

        def close(self):
            is_open = not self.closed
            super().close()
            if is_open:
                refusals.ask("close")

    return FaultyIO


@pytest.fixture
def faulty(refusals, monkeypatch):
    """The module of files, imported again over a FileIO and an `os` whose calls fail as ordered."""
    monkeypatch.setattr(io, "FileIO", faulty_io(refusals))
    monkeypatch.setattr(os, "fsync", lambda descriptor: refusals.ask("fsync"))
    monkeypatch.setattr(os, "replace", refusals.before("replace", os.replace))
    monkeypatch.setattr(Path, "mkdir", refusals.before("mkdir", Path.mkdir))
    spec = importlib.util.spec_from_file_location("faulty_files", files.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fsync", "close", "replace"])
def test_atomic_write_survives_every_errno(call, faulty, refusals, tmp_path):
    path = tmp_path / "file"
    for number in NUMBERS:
        path.write_text("old")
        refusals.number = {call: number}
        try:
            with faulty.atomic_write(path) as handle:
                handle.write("new" * 5000)
        except UserError as error:
            assert "\n" not in str(error) and os.strerror(number) in str(error)
            assert path.read_text() == "old"
        else:
            assert (call, number) == ("close", errno.EINTR) and path.read_text() == "new" * 5000
        assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["open", "write", "close"])
def test_append_line_survives_every_errno(call, faulty, refusals, tmp_path):
    path = tmp_path / "lines"
    for number in NUMBERS:
        path.write_bytes(b"one\n")
        refusals.number = {call: number}
        try:
            faulty.append_line(path, b"two\n")
        except UserError as error:
            assert "\n" not in str(error) and os.strerror(number) in str(error)
        else:
            assert (call, number) == ("close", errno.EINTR)
        assert faulty.complete_lines(path) in ([b"one"], [b"one", b"two"])


@pytest.mark.parametrize("unpack", [archives.unpack, collect_recordings.unpack])
def test_unpacking_reports_every_errno_in_one_line(unpack, monkeypatch, tmp_path):
    archive, folder = tmp_path / "a.zip", tmp_path / "out"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("x", "content")
    arguments = ("a", {"x"}) if unpack is archives.unpack else (["*"], ("",))
    for number in NUMBERS:
        refuse = Mock(side_effect=OSError(number, os.strerror(number)))
        for module in (archives, collect_recordings):
            monkeypatch.setattr(module, "open", refuse, raising=False)
        with pytest.raises(UserError, match=re.escape(f"can't write {folder}")) as refusal:
            unpack(archive, *arguments, folder)
        assert "\n" not in str(refusal.value) and os.strerror(number) in str(refusal.value)


@pytest.mark.parametrize("call", ["open", "write", "fsync", "close", "unlink"])
def test_node_check_reports_every_errno_and_leaves_no_file(call, refusals, monkeypatch, tmp_path):
    def unlink(path, missing_ok=False, real=Path.unlink):
        if not missing_ok:
            refusals.ask("unlink")
        real(path, missing_ok)

    monkeypatch.setattr(node_check, "open", faulty_io(refusals), raising=False)
    monkeypatch.setattr(os, "fsync", lambda descriptor: refusals.ask("fsync"))
    monkeypatch.setattr(Path, "unlink", unlink)
    for number in NUMBERS:
        refusals.number = {call: number}
        if number == errno.EINTR and call in ("open", "write", "fsync"):
            continue  # Python repeats these calls itself
        if (call, number) == ("close", errno.EINTR):
            node_check.check_folder(tmp_path)
        else:
            is_full = number in (errno.ENOSPC, errno.EDQUOT)  # which is no fault of the node
            with pytest.raises(UserError if is_full else node_check.UnfitNode) as refusal:
                node_check.check_folder(tmp_path)
            assert "\n" not in str(refusal.value) and os.strerror(number) in str(refusal.value)
            assert ("; free some" in str(refusal.value)) == is_full
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize("call", ["mkdtemp", "copyfile", "replace"])
def test_packing_reports_every_errno_and_leaves_nothing(call, refusals, monkeypatch, tmp_path):
    """All files of a packed or exported model are written below `whole_folder`."""
    (source := tmp_path / "subwords.model").write_bytes(b"pieces")
    (place := tmp_path / "place").mkdir()
    for owner, name in ((tempfile, "mkdtemp"), (shutil, "copyfile"), (os, "replace")):
        monkeypatch.setattr(owner, name, refusals.before(name, getattr(owner, name)))
    for number in NUMBERS:
        refusals.number = {call: number}
        is_missing = (call, number) == ("copyfile", errno.ENOENT)
        with pytest.raises(FileNotFoundError if is_missing else UserError) as refusal, whole_folder(place / "m") as new:
            shutil.copyfile(source, new / source.name)
        assert "\n" not in str(refusal.value) and os.strerror(number) in str(refusal.value)
        assert not os.listdir(place)


def test_command_ends_in_one_line_for_every_errno(capsys):
    for number in NUMBERS:
        work = Mock(side_effect=OSError(number, os.strerror(number), "a/file"))
        assert status_of(work) == (0 if number in (errno.EPIPE, errno.ESHUTDOWN) else 1)
        said = capsys.readouterr().err
        assert said in ("", f"error: a/file: {os.strerror(number)}\n")


def test_argument_that_is_not_utf8_ends_in_one_line(capsys):
    assert status_of(lambda: "a\udcff".encode()) == 1
    assert capsys.readouterr().err == "error: a\\udcff: is not UTF-8; rename it, or write it in UTF-8\n"


def test_fault_of_the_program_keeps_its_traceback():
    with pytest.raises(UnicodeEncodeError):
        status_of(lambda: "\xe9".encode("ascii"))
