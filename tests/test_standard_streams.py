"""Programs report in one line that their output can't be written; they write UTF-8; torch's threads don't spin."""

import hashlib
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.__main__ import as_lines
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from reprise.cli.decode import chunks_of_input

SHOW = f"{sys.executable} -m reprise show weighted table2"


def shell(command: str, **environment: str) -> subprocess.CompletedProcess:
    kept = {key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    variables = kept | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, env=variables, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("> /dev/full", r"error: what \S+\.py, line \d+, reads or writes: No space left on device\n"),
        (">&-", "error: standard output is closed; redirect it with `> /dev/null`\n"),
    ],
)
def test_an_output_that_cannot_be_written_ends_in_one_line(end, error):
    done = shell(f"{SHOW} {end}")
    assert done.returncode == 1 and re.fullmatch(error, done.stderr.decode())


def test_closed_input_ends_in_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed; name a file"):
        next(chunks_of_input())


@pytest.mark.slow
@pytest.mark.parametrize("end", ["| head -1", "2>&-"])
def test_a_reader_that_has_enough_and_a_closed_log_are_no_fault(end):
    done = shell(f"set -o pipefail; {SHOW} {end}")
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}])
def test_output_is_utf8_in_any_locale(variables):
    assert "…" in shell(SHOW, **variables).stdout.decode("utf-8")


@pytest.mark.slow
def test_a_name_that_is_not_utf_8_is_written_by_its_bytes(tmp_path):
    model = os.fsencode(tmp_path) + b"/mod\xffel"
    os.mkdir(model)
    sums = [f"{hashlib.sha256(b'').hexdigest()}  {name}\n" for name in ("model.json", "model.safetensors")]
    for name, text in {b"model.json": "", b"model.safetensors": "", b"SHA256SUMS": "".join(sums)}.items():
        Path(os.fsdecode(model + b"/" + name)).write_text(text)
    strict = {"PYTHONIOENCODING": "utf-8:strict"}  # as where the locale is en_US.UTF-8
    done = shell(f"{sys.executable} -m reprise unpack {tmp_path}/mod*el", **strict)
    assert done.stdout == model + b": 2 files are as they were packed\n", done.stderr


def test_an_error_and_a_log_hold_nothing_that_a_terminal_obeys():
    red = "\\x1b[31mred"
    done = shell(f"{sys.executable} -m reprise show --set $'\\x1b[31mred'")
    assert f"error: --set {red}: write KEY=VALUE" in done.stderr.decode()
    record = logging.makeLogRecord({"msg": "%s\n%s", "args": ("\x1b[31mred", "\x9b2J")})
    assert as_lines(record) and record.getMessage() == f"{red}\n\\x9b2J"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "given", "spins"),
    [
        ("pipeline", {}, "1000"),
        ("reprise", {}, "1000"),
        ("pipeline", {"OMP_WAIT_POLICY": "passive"}, "0"),
        ("reprise", {"GOMP_SPINCOUNT": "7"}, "7"),
    ],
)
def test_waiting_threads_yield_their_cores_unless_configured(program, given, spins):
    """Reads what OpenMP prints about itself as torch loads it."""
    done = shell(f"{sys.executable} -m {program} translate nothing", OMP_DISPLAY_ENV="verbose", **given)
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr.decode()
