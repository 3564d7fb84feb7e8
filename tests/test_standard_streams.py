"""Programs report in one line that their output can't be written; they write UTF-8; torch's threads don't spin."""

import logging
import os
import re
import subprocess
import sys
from shlex import quote
from unittest import mock

import pytest

from pipeline.__main__ import as_lines, prepare
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from reprise.cli.decode import chunks_of_input, write_lines


def prints(text: str) -> str:
    """Return a command that prints a text as ours do, 99,999 times, and starts in a tenth of a second."""
    work = f"lambda: print({text!a} * 99_999)"
    code = f"import sys; from pipeline.__main__ import status_of; sys.exit(status_of({work}))"
    return f"{sys.executable} -c {quote(code)}"


def shell(command: str, **environment: str) -> subprocess.CompletedProcess:
    kept = {key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    variables = kept | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, env=variables, check=False)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (
            f"{sys.executable} -m reprise show weighted table2 > /dev/full",
            "error: standard output: No space left on device\n",
        ),
        (f"{prints('text')} >&-", "error: standard output is closed; redirect it with `> /dev/null`\n"),
    ],
    ids=["full", "closed"],
)
def test_an_output_that_cannot_be_written_ends_in_one_line(command, error):
    done = shell(command)
    assert done.returncode == 1 and re.fullmatch(error, done.stderr.decode())


@pytest.mark.parametrize("is_terminal", [True, False])
def test_decoded_lines_have_no_control_characters_on_a_terminal(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    write_lines(["a\x1b[31mb\x9b2J", "\u05e9\u200f c'\xa0est\tç"])
    first = r"a\x1b[31mb\x9b2J" if is_terminal else "a\x1b[31mb\x9b2J"
    assert capsys.readouterr().out == f"{first}\n\u05e9\u200f c'\xa0est\tç\n"


def test_closed_input_ends_in_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed; name a file"):
        next(chunks_of_input())


@pytest.mark.parametrize("end", ["| head -1", "2>&-"])
def test_a_reader_that_has_enough_and_a_closed_log_are_no_fault(end):
    more_than_a_pipe_holds = prints("a line\n")
    done = shell(f"set -o pipefail; {more_than_a_pipe_holds} {end}")
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"a line\n")


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_output_is_utf8_in_any_locale(variables):
    assert shell(prints("…"), **variables).stdout == "…".encode() * 99_999 + b"\n"


def test_a_name_that_is_not_utf_8_is_written_by_its_bytes():
    strict = {"PYTHONIOENCODING": "utf-8:strict"}  # as where the locale is en_US.UTF-8
    assert shell(prints(os.fsdecode(b"mod\xffel")), **strict).stdout == b"mod\xffel" * 99_999 + b"\n"


def test_an_error_and_a_log_hold_nothing_that_a_terminal_obeys():
    red = "\\x1b[31mred"
    done = shell(f"{sys.executable} -m reprise show --set $'\\x1b[31mred'")
    assert f"error: --set {red}: write KEY=VALUE" in done.stderr.decode()
    record = logging.makeLogRecord({"msg": "%s\n%s", "args": ("\x1b[31mred", "\x9b2J")})
    assert as_lines(record) and record.getMessage() == f"{red}\n\\x9b2J"


@pytest.mark.slow
def test_waiting_threads_yield_their_cores():
    """Reads what OpenMP prints about itself as torch loads it."""
    done = shell(f"{sys.executable} -m reprise translate nothing", OMP_DISPLAY_ENV="verbose")
    assert "GOMP_SPINCOUNT = '1000'" in done.stderr.decode()


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, "1000"), ({"OMP_WAIT_POLICY": "passive"}, None), ({"GOMP_SPINCOUNT": "7"}, "7")],
)
def test_the_user_may_configure_waiting_threads(given, spins):
    with mock.patch.dict(os.environ, given, clear=True):
        prepare()
        assert os.environ.get("GOMP_SPINCOUNT") == spins
