"""One question for all: how seldom Slurm is asked, and what is made of its answers."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launching import PROJECT

from pipeline.cluster.queue import Queue, grown


@pytest.fixture
def slurm_says(tmp_path, monkeypatch):
    """A squeue whose answer the test sets, and which counts how often it is asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    squeue = folder / "squeue"
    squeue.write_text(f"#!/bin/sh\necho x >> {folder}/calls\ncat {folder}/answer\n[ ! -e {folder}/broken ]\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    class Squeue:
        @staticmethod
        def answers(*lines: str) -> None:
            (folder / "answer").write_text("".join(line + "\n" for line in lines))

        @staticmethod
        def breaks(broken: bool) -> None:
            (folder / "broken").touch() if broken else (folder / "broken").unlink()

        @staticmethod
        def calls() -> int:
            return (folder / "calls").read_text().count("x") if (folder / "calls").exists() else 0

    Squeue.answers()
    return Squeue


def test_many_readers_cost_one_query(tmp_path, slurm_says):
    slurm_says.answers("7|RUNNING|None|n1|some|name")
    queues = [Queue(tmp_path, 60.0) for _ in range(20)]
    found = [queue.look_up("7", newer_than=0) for queue in queues]
    assert {(job.state, job.nodes, job.name) for job in found} == {("RUNNING", "n1", "some|name")}
    assert slurm_says.calls() == 1


def test_twenty_processes_at_once_cost_one_query(tmp_path, slurm_says):
    slurm_says.answers("7|RUNNING|None|n1|name")
    program = (
        "import sys, time; from pathlib import Path; from pipeline.cluster.queue import Queue\n"
        "queue = Queue(Path(sys.argv[1]), 60.0)\n"
        "while queue.look_up('7', 0) is None: time.sleep(0.1)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=PROJECT) for _ in range(20)]
    assert [process.wait(60) for process in processes] == [0] * 20
    assert slurm_says.calls() == 1


def test_old_snapshot_says_nothing_of_a_job_submitted_since(tmp_path, slurm_says):
    queue = Queue(tmp_path, 0.3)
    assert queue.jobs(newer_than=0) == []
    submitted = time.time()
    slurm_says.answers("8|PENDING|Priority||name")
    assert queue.look_up("8", newer_than=submitted) is None
    time.sleep(0.5)  # longer than an interval that has grown once
    assert queue.look_up("8", newer_than=submitted).state == "PENDING"


def test_unknown_job_is_gone_and_over(tmp_path, slurm_says):
    slurm_says.answers("8|PENDING|Priority||name")
    job = Queue(tmp_path, 60.0).look_up("9", newer_than=0)
    assert job.state == "GONE"
    assert job.is_over


def test_silent_slurm_is_asked_again_only_after_the_interval(tmp_path, slurm_says):
    queue = Queue(tmp_path, 0.3)
    slurm_says.breaks(True)
    assert [queue.jobs(newer_than=0) for _ in range(5)] == [None] * 5
    assert slurm_says.calls() == 1
    slurm_says.breaks(False)
    time.sleep(0.35)
    assert queue.jobs(newer_than=0) == []


def test_interval_grows_while_nothing_changes_and_shrinks_for_news(tmp_path, slurm_says):
    queue = Queue(tmp_path, 0.1)

    def renewed_interval() -> float:
        snapshot = json.loads(queue.path.read_text()) if queue.path.exists() else {"interval": 0.1}
        time.sleep(snapshot["interval"])
        queue.jobs(newer_than=0)
        return json.loads(queue.path.read_text())["interval"]

    slurm_says.answers("7|RUNNING|None|n1|name")
    intervals = [renewed_interval() for _ in range(7)]
    assert intervals == sorted(intervals)
    assert intervals[0] == pytest.approx(0.1)
    assert intervals[-1] == pytest.approx(0.3)
    slurm_says.answers("7|COMPLETED|None|n1|name")
    assert renewed_interval() == pytest.approx(0.1)


@pytest.mark.parametrize("shortest", [0.1, 1.0, 60.0, 500.0])
def test_interval_never_falls_below_the_shortest_and_ends_within_minjobage(shortest):
    interval = shortest
    for _ in range(50):
        interval = grown(interval, shortest)
    assert shortest <= interval <= max(180.0, shortest)


def test_snapshot_of_a_crash_is_replaced(tmp_path, slurm_says):
    queue = Queue(tmp_path, 60.0)
    Path(queue.path).write_text('{"asked": 12')
    assert queue.jobs(newer_than=0) == []
