"""Faults at system calls happen as ordered; and the chaos suite's first cases, by a seed. `make chaos` does more."""

import errno
import math
import os
import subprocess
import sys

import pytest
from fabricated import touch

from qa.chaos.__main__ import path_without_git, run, table
from qa.chaos.cases import FAILURES
from qa.chaos.injection import EVER, KILL, SHORT, Fault, Injector
from qa.chaos.world import TEXT

SEED, CASES = int(os.environ.get("REPRISE_CHAOS_SEED", "1795341649")), 24
"""The same cases each time, however slow the machine; `make chaos` draws others."""
READ_TWICE = "import os; [print(os.read(os.open('work/file', os.O_RDONLY), 6)) for _ in range(2)]"


@pytest.mark.parametrize(
    ("fault", "written", "status"),
    [
        (None, [b"123456", b"123456"], 0),
        (Fault("read", SHORT, 2), [b"123456", b"123"], 0),
        (Fault("read", errno.EIO, 2), [b"123456"], 1),
        (Fault("open to read", errno.ESTALE, 1, EVER), [], 1),
        (Fault("read", KILL, 1), [], -9),
    ],
    ids=str,
)
def test_a_fault_befalls_the_call_that_it_is_meant_for(tmp_path, fault, written, status):
    touch(tmp_path / "work/file", "12345678")
    injector = Injector(tmp_path)
    injector.arm((tmp_path / "work", tmp_path / "results"), fault)
    place = {"cwd": tmp_path, "env": injector.environment()}
    done = subprocess.run([sys.executable, "-uc", READ_TWICE], **place, capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(content) for content in written]
    assert done.returncode == status
    if fault and fault.action > 0:
        assert os.strerror(fault.action) in done.stderr


@pytest.mark.qa
def test_faulted_stage_ends_in_the_same_bytes_or_one_clear_line(tmp_path, monkeypatch):
    print(f"SEED={SEED}")
    monkeypatch.setenv("PATH", path_without_git(tmp_path))
    ends = run(tmp_path, SEED, range(1, CASES + 1), math.inf, TEXT)
    print(table(ends))
    assert len(ends) == CASES
    assert not [f"{case}: {end.verdict}: {end.why}" for case, end in ends if end.verdict in FAILURES]
