"""Jobs as processes of this machine, with shell commands instead of trainings."""

import socket
import subprocess
import time

import pytest

from pipeline.cluster import local
from pipeline.cluster.job_process import JobOrder
from pipeline.cluster.local import LocalJobs, free_port
from pipeline.cluster.state import read_submission


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Starts one process for each command."""
    made = []

    def start(*commands: str) -> LocalJobs:
        monkeypatch.setattr(
            LocalJobs, "_start", lambda self, rank, port: subprocess.Popen(["bash", "-c", commands[rank]])
        )
        made.append(LocalJobs(tmp_path, JobOrder("", str(tmp_path), "key", 0, "code"), len(commands), 1))
        made[-1].job = made[-1].submit()
        return made[-1]

    yield start
    for job in made:
        for process in job.processes:
            process.kill()
            process.wait()


def ended(jobs):
    end = time.monotonic() + 30
    while (found := jobs.look_up(jobs.job)).state == "RUNNING":
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


@pytest.mark.parametrize(
    ("commands", "state", "reason"),
    [
        (["true", "true"], "COMPLETED", ""),
        (["true", "exit 3"], "FAILED", "exit code 3"),
        (["exit 75"], "CANCELLED", "asked to stop"),
        (["kill -9 $$"], "FAILED", "signal 9"),
        (["exit 4", "sleep 60"], "FAILED", "exit code 4"),
    ],
)
def test_local_processes_end_like_a_slurm_job_when_one_dies(jobs, commands, state, reason):
    started = jobs(*commands)
    found = ended(started)
    assert (found.state, found.reason, found.job) == (state, reason, str(started.processes[0].pid))
    assert all(process.poll() is not None for process in started.processes) and found.is_over


def test_running_local_job_is_recorded_and_not_over(jobs, tmp_path):
    started = jobs("sleep 60", "true")
    started.processes[1].wait()
    assert started.look_up(started.job).state == "RUNNING"
    note = read_submission(tmp_path)
    assert (note.job, note.launcher, note.key, note.code) == (started.job, "local", "key", "code")
    assert started.adopt() is None


def test_processes_are_asked_to_stop_and_ended_when_they_do_not(jobs, monkeypatch, caplog):
    monkeypatch.setattr(local, "STOP_WITHIN_S", 0.2)
    ready = "echo; while true; do sleep 0.01; done"
    started = jobs("trap 'exit 75' TERM; " + ready, "trap '' TERM; " + ready)
    time.sleep(0.5)
    started.release(started.job)
    assert [process.wait() for process in started.processes] == [75, -9]
    assert "run the same command again" in caplog.text
    caplog.clear()
    started.release(started.job)
    assert not caplog.text


def test_a_free_port_can_be_listened_on():
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()
