"""Several processes append events of a job at once; a stage as a job runs once, and again if a file is lost."""

import errno
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from pipeline.__main__ import main
from pipeline.cluster import state as commands
from pipeline.cluster.state import is_done, job_key, perform_command, read_failure, read_starts, record_command
from pipeline.cluster.wait import LogTail
from pipeline.core import retries
from pipeline.core.errors import UserError
from pipeline.core.records.jobs import (
    Done,
    Failure,
    Retry,
    RunClaim,
    StartLine,
    Submission,
    last_event,
    read_events,
    record_event,
    remove_damaged_lines,
)
from pipeline.workflow.file_checks import check_file

WRITERS, EVENTS = 4, 60
APPEND = f"""
import sys
from pathlib import Path
from pipeline.core.records.jobs import StartLine, record_event
for number in range({EVENTS}):
    node = "n" * (number * 97 % 4000)
    line = StartLine(event="start", time=1.0, job=sys.argv[2], restart=number, node=node, pid=1)
    record_event(Path(sys.argv[1]), line)
"""


def failure(key: str, error: str) -> Failure:
    return Failure(key=key, job="7", node="n1", rank=0, time=1.0, error=error, traceback=None)


def test_events_of_processes_that_write_at_once_are_all_kept(tmp_path):
    (tmp_path / "state.jsonl").write_text('{"event": "start", "ti')  # of a killed process
    command = [sys.executable, "-c", APPEND, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(job)]) for job in range(WRITERS)]
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    found = read_starts(tmp_path)
    for job in range(WRITERS):
        assert [line.restart for line in found if line.job == str(job)] == list(range(EVENTS))
    assert len(found) == WRITERS * EVENTS


def test_failure_counts_until_the_next_start_or_retry(tmp_path):
    current: dict[str, Failure] = {}
    start = StartLine(event="start", time=1.0, job="7", restart=0, node="n1", pid=1, checkpoint=0)
    for number in range(200):
        key = random.choice(["a", "b"])
        event = random.choice(
            [
                failure(key, str(number)),
                start,
                start.model_copy(update={"event": "stop", "checkpoint": None, "outcome": "failed"}),
                Retry(time=1.0),
                RunClaim(host="n1", pid=1, job="7", time=1.0, token=str(number)),
                Submission(key=key, launcher="slurm", job=None, name="toy", time=1.0, code="toy"),
            ]
        )
        record_event(tmp_path, event)
        if isinstance(event, Failure):
            current[event.key] = event
            newest = event
        elif event.event in ("start", "retry"):
            current.clear()
        assert {name: found for name in "ab" if (found := read_failure(tmp_path, name))} == current
        assert read_failure(tmp_path) == (newest if current else None)


def test_repair_of_events_keeps_whole_lines_and_a_copy(tmp_path):
    path, kept = tmp_path / "state.jsonl", []
    for number in range(60):
        record_event(tmp_path, claim := RunClaim(host="n1", pid=1, job="7", time=1.0, token=f"{number}é"))
        line = bytearray(path.read_bytes().splitlines(keepends=True)[-1])
        if random.random() < 0.3:
            begin, end = sorted(random.sample(range(len(line) - 1), 2))
            line[begin:end] = random.choice([bytes(end - begin), b"\xff", b"\r"])
        else:
            kept.append(claim)
        path.write_bytes(b"".join([*path.read_bytes().splitlines(keepends=True)[:-1], line]))
    path.write_bytes(damaged := path.read_bytes() + b'{"event": "cl')
    assert check_file(path).state == "damaged"
    aside = remove_damaged_lines(path)
    assert aside.name == "state.jsonl.damaged" and aside.read_bytes() == damaged
    assert read_events(tmp_path) == kept and check_file(path).state == "good"


@pytest.mark.parametrize("call", ["os.listdir", "io.open"])
def test_state_is_read_again_when_the_disk_fails_once(call, tmp_path, monkeypatch):
    """A launcher reads them for days."""
    claim = RunClaim(host="n1", pid=1, job="7", time=1.0, token="a")
    record_event(tmp_path, claim)
    Done(key="k").write(tmp_path / "done.json")
    (tmp_path / "log").write_text("a line\n")
    left = fail_once(call, monkeypatch)
    assert is_done(tmp_path, "k") and not [*left]
    left = fail_once(call, monkeypatch)
    assert last_event(RunClaim, tmp_path) == claim and not [*left]
    left = fail_once(call, monkeypatch)
    reader = LogTail(tmp_path / "log", from_start=True)
    assert [*reader.new_lines()] == [] and not [*left]
    assert [*reader.new_lines()] == ["a line"]


def fail_once(call: str, monkeypatch) -> Iterator[OSError]:
    """Let the next `call` of the system fail, and return its error until then."""
    faults, real = iter([OSError(errno.ESTALE, "Stale file handle")]), {"os.listdir": os.listdir, "io.open": open}[call]

    def replaced(*arguments):
        for fault in faults:
            raise fault
        return real(*arguments)

    for name in (call, *(["builtins.open"] if call == "io.open" else [])):
        monkeypatch.setattr(name, replaced)
    return faults


def test_events_that_no_disk_gives_back_are_none(tmp_path, monkeypatch):
    record_event(tmp_path, Retry(time=1.0))
    monkeypatch.setattr(retries, "READ_PAUSES_S", (0.0,))
    for name in ("builtins.open", "io.open"):
        monkeypatch.setattr(name, Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    assert last_event(Retry, tmp_path) is None


@pytest.fixture
def order(tmp_path):
    """Orders the same stage of one input and one output."""
    read, made = tmp_path / "read.json", tmp_path / "made.yaml"
    read.write_text("{}")

    def order(*more: str) -> str:
        record_command(tmp_path / "job", ["prepare", str(read), str(made), *more], [made])
        return job_key(tmp_path / "job")

    order.folder, order.read, order.made = tmp_path / "job", read, made
    return order


@pytest.mark.parametrize(
    ("change", "more", "is_same", "is_complete"),
    [
        (lambda order: None, [], True, True),
        (lambda order: None, ["--more"], False, False),
        (lambda order: order.read.write_text("{ }"), [], False, False),
        (lambda order: order.made.unlink(), [], True, False),
    ],
    ids=["nothing", "arguments", "input", "output"],
)
def test_command_is_done_until_files_or_arguments_change(order, monkeypatch, change, more, is_same, is_complete):
    perform, key = Mock(side_effect=lambda _: order.made.write_text("made")), order()
    monkeypatch.setattr(commands, "perform", perform)
    perform_command(order.folder)
    change(order)
    assert (order(*more) == key) == is_same
    assert is_done(order.folder, order(*more)) == is_complete and perform.call_count == 1


def test_arguments_longer_than_a_file_name_change_the_key(order):
    assert order('{"setting": "' + 300 * "x" + '"}') != order('{"setting": "' + 300 * "y" + '"}')


def test_a_stage_that_makes_nothing_is_no_success(order, monkeypatch):
    order()
    monkeypatch.setattr(commands, "perform", lambda arguments: None)
    with pytest.raises(UserError, match=r"^[\w-]+: ended without writing"):
        perform_command(order.folder)
    assert not (order.folder / "done.json").exists()


def test_local_launch_reports_the_error_of_its_stage(tmp_path, capsys):
    missing = tmp_path / "missing.json"
    job = ["launch", "--folder", str(tmp_path / "job"), "--makes", str(tmp_path / "out"), "--"]
    assert main([*job, "generate", "--dataset", str(missing), "--corpus", str(tmp_path / "out")]) == 1
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "job").exists()


def test_launch_refuses_a_folder_or_a_stage_alone(tmp_path, capsys):
    assert main(["launch", "--folder", str(tmp_path)]) == 1
    assert "name the stage after `--`" in capsys.readouterr().err
    assert main(["launch", "--run", str(tmp_path), "--", "prepare"]) == 1
    assert "use --folder" in capsys.readouterr().err
