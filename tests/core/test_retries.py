"""Transient disk errors cost a pause, permanent ones end in one line, and altered content is not read."""

import errno
import random
from unittest.mock import Mock

import pytest

from pipeline.core import retries
from pipeline.core.digests import checking_inputs, recording_digests
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write, note_path, set_aside
from pipeline.core.retries import LASTING, LastingError, retry_stage


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    monkeypatch.setattr(retries, "PAUSES_S", (0.0, 0.0))


class Work:
    """Fails so many times, by an error that lies behind another one or not."""

    def __init__(self, number: int, times: int, wrapped: bool = False):
        self.error, self.left, self.wrapped, self.calls = OSError(number, "as errno says", "file"), times, wrapped, 0

    def __call__(self) -> None:
        self.calls += 1
        self.left -= 1
        if self.left >= 0 and self.wrapped:
            raise UserError("file: can't be read") from self.error
        if self.left >= 0:
            raise self.error


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_transient_error_is_retried(number, wrapped):
    work = Work(number, random.choice([1, 2]), wrapped)
    retry_stage(work)
    assert work.left == -1


def test_every_errno_ends_in_one_line_with_file_and_cause():
    for number in errno.errorcode:
        work = Work(number, 99)
        with pytest.raises(UserError, match=r"^file: as errno says; nothing was removed.*run the same command again$"):
            retry_stage(work)
        assert work.calls == (1 if number in LASTING else 3), errno.errorcode[number]


def test_refusals_last_and_faults_of_networks_and_disks_pass():
    lasting = {PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError}
    passing = {InterruptedError, BlockingIOError, TimeoutError, ConnectionResetError, ConnectionRefusedError}
    found = {number: type(OSError(number, "")) for number in errno.errorcode}
    assert all(number in LASTING for number, kind in found.items() if kind in lasting)
    assert not any(number in LASTING for number, kind in found.items() if kind in passing)
    assert {errno.ENOSPC, errno.EDQUOT, errno.EROFS} <= LASTING
    assert not {errno.EIO, errno.ESTALE, errno.EREMOTEIO, errno.EBUSY, errno.ENOMEM, errno.ENOTCONN} & LASTING


def test_who_persevered_in_vain_is_not_asked_again():
    work = Work(errno.EIO, 99)
    with pytest.raises(LastingError):
        retry_stage(lambda: retry_stage(work))
    assert work.calls == 3


@pytest.mark.parametrize("error", [UserError("wrong setting"), ValueError("a fault of the program")])
def test_other_errors_are_nobodys_to_persevere_in(error):
    work = Mock(side_effect=error)
    with pytest.raises(type(error), match=str(error)):
        retry_stage(work)
    assert work.call_count == 1


@pytest.fixture
def written(tmp_path):
    with recording_digests(), atomic_write(tmp_path / "text") as handle:
        handle.write("what was written\n")
    return tmp_path / "text"


def test_a_file_that_was_altered_is_not_read(written):
    written.write_bytes(written.read_bytes()[:-3])
    with checking_inputs():
        for _ in range(2):  # a caller that continues in spite of it gets the error again
            with pytest.raises(UserError, match=r"text: is damaged.*verify --repair.*\.digests/text"):
                open(written).close()


def test_input_check_passes_intact_unnoted_and_outside_files(written):
    with checking_inputs():
        assert written.read_text() == "what was written\n"
    written.write_text("my own")
    assert written.read_text() == "my own"
    note_path(written).unlink()
    with checking_inputs():
        assert written.read_text() == "my own"
        assert set_aside(written).read_text() == "my own"


def test_stage_reads_the_file_that_it_rewrote(written):
    with checking_inputs(), recording_digests():
        with atomic_write(written) as handle:
            handle.write("something else")
        assert written.read_text() == "something else"
