"""The launcher and its jobs without a cluster: processes of this machine, some with shell commands as work."""

import signal
import subprocess
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import toy_job
from launching import weights_digest
from time_limit import until
from tracing import outcomes, set_pace, workers_one_after_the_other

from pipeline.cluster import local
from pipeline.cluster.job_process import JobOrder
from pipeline.cluster.local import LocalJobs
from pipeline.cluster.state import newest_checkpoint, read_submission
from pipeline.cluster.wait import Waiter
from pipeline.core.json_csv import read_json


def test_failure_shows_the_jobs_traceback_and_is_not_retried(new_run, launch):
    run = new_run(steps=30, pace_s=0.01)
    (run / "fail-at").write_text("7")
    launcher = launch(run)
    assert launcher.wait() == 1
    assert "ValueError: the toy fails at step 7" in launcher.text()
    assert "count_steps" in launcher.text() and launcher.text().count("Traceback") == 1
    assert outcomes(run) == ["failed"]
    (run / "fail-at").unlink()
    launch(run).succeed()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["Ctrl-C", "closed terminal"])
def test_interrupt_saves_a_checkpoint_and_the_next_start_resumes(new_run, launch, number):
    run = new_run(steps=100, pace_s=0.5)
    launcher = launch(run)
    until(lambda: (run / "steps.jsonl").exists(), "first step")
    launcher.kill(number)
    assert launcher.wait() == 128 + number
    set_pace(run, 0)
    assert "run the same command again" in launcher.text()
    assert 0 < newest_checkpoint(run) < 100
    launch(run).succeed()
    assert weights_digest(run) == toy_job.expected_digest(100)
    assert outcomes(run) == ["stopped", "done"]


def test_launcher_under_nohup_survives_its_terminal(new_run, launch):
    run = new_run(steps=100, pace_s=0.5)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does; processes inherit it
    try:
        launcher = launch(run)
    finally:
        signal.signal(signal.SIGHUP, before)
    until(lambda: (run / "steps.jsonl").exists(), "first step")
    launcher.kill(signal.SIGHUP)
    set_pace(run, 0)
    launcher.succeed()
    assert outcomes(run) == ["done"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_run_is_taken_over_by_a_later_launcher(new_run, launch, is_killed):
    """The job of a killed launcher outlives it."""
    run = new_run(steps=100, pace_s=0.5)
    former = launch(run)
    until(lambda: (run / "steps.jsonl").exists(), "first step")
    if is_killed:
        former.kill(signal.SIGKILL)
    later = launch(run)
    if is_killed:
        until(lambda: outcomes(run), "the end of the former process")
    else:
        assert former.wait() == 1 and "has taken this run over" in former.text()
    set_pace(run, 0)
    later.succeed()
    assert weights_digest(run) == toy_job.expected_digest(100)
    assert outcomes(run) == ["taken over", "done"] and workers_one_after_the_other(run)


def test_several_tasks_get_the_variables_of_torch_distributed(new_run, launch):
    run = new_run(steps=10)
    launch(run, "--tasks", "3", function="toy_job:tell_rank").succeed()
    ranks = [read_json(run / f"rank-{rank}.json") for rank in range(3)]
    assert [(each["RANK"], each["WORLD_SIZE"]) for each in ranks] == [("0", "3"), ("1", "3"), ("2", "3")]
    assert len({(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in ranks}) == 1


def test_slurm_launcher_without_slurm_is_refused(new_run, launch, tmp_path, monkeypatch):
    run = new_run(steps=10)
    monkeypatch.setenv("PATH", str(tmp_path))
    launcher = launch(run, "--launcher", "slurm", cold=True)
    assert launcher.wait() == 1
    assert "no sbatch on this machine; omit --profile slurm, or use a login node of Slurm" in launcher.text()


def test_local_launch_without_a_requested_gpu_is_an_error(new_run, launch):
    launcher = launch(new_run(steps=3), "--gpus", "1", CUDA_VISIBLE_DEVICES="")
    assert launcher.wait() == 1
    assert "this machine failed its check: no GPU is visible" in launcher.text()
    assert "excluded" not in launcher.text()


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
    until(lambda: jobs.look_up(jobs.job).state != "RUNNING", "the end of all processes")
    return jobs.look_up(jobs.job)


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


def test_processes_may_save_after_another_was_asked_to_stop(jobs, tmp_path):
    """All of them stop after the same step, and the first one saves."""
    saving = f"trap 'touch {tmp_path}/saved; exit 75' TERM; touch {tmp_path}/ready; while true; do sleep 0.01; done"
    found = ended(jobs(saving, f"while [ ! -e {tmp_path}/ready ]; do sleep 0.01; done; exit 75"))
    assert (found.state, found.reason) == ("CANCELLED", "asked to stop") and (tmp_path / "saved").exists()


def test_running_local_job_is_recorded_and_not_over(jobs, tmp_path):
    started = jobs("sleep 60", "true")
    started.processes[1].wait()
    assert started.look_up(started.job).state == "RUNNING"
    note = read_submission(tmp_path)
    assert (note.job, note.launcher, note.key, note.code) == (started.job, "local", "key", "code")
    assert started.adopt() is None


def test_interrupt_of_a_start_stops_the_processes_begun(tmp_path, monkeypatch):
    """It comes before the second of them is known."""
    begun = []

    def start(jobs: LocalJobs, rank: int, port: str) -> subprocess.Popen:
        if rank:
            raise KeyboardInterrupt
        begun.append(subprocess.Popen(["sleep", "60"]))
        return begun[-1]

    monkeypatch.setattr(LocalJobs, "_start", start)
    waiter = Waiter(tmp_path, "key", LocalJobs(tmp_path, JobOrder("", str(tmp_path), "key", 0, "code"), 2, 1))
    with pytest.raises(KeyboardInterrupt):
        waiter.wait()
    waiter.detach()
    assert [process.poll() for process in begun] == [-signal.SIGTERM]


@pytest.mark.parametrize(("trap", "within_s", "code"), [("exit 75", 20.0, 75), ("", 0.2, -signal.SIGKILL)])
def test_processes_are_asked_to_stop_and_ended_when_they_do_not(
    jobs, tmp_path, monkeypatch, caplog, trap, within_s, code
):
    monkeypatch.setattr(local, "STOP_WITHIN_S", within_s)
    started = jobs(*(f"trap '{trap}' TERM; touch {tmp_path}/{name}; while sleep 0.01; do :; done" for name in "ab"))
    until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists(), "traps")
    started.release(started.job)
    assert [process.wait() for process in started.processes] == [code, code]
    assert "run the same command again" in caplog.text
    caplog.clear()
    started.release(started.job)
    assert not caplog.text


def test_processes_that_do_not_stop_share_one_limit(tmp_path, monkeypatch):
    """The clock goes on by the time that a process is waited for."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(local.time, "monotonic", lambda: clock.now)

    def wait(seconds: float):
        clock.now += seconds
        raise subprocess.TimeoutExpired("training", seconds)

    jobs = LocalJobs(tmp_path, JobOrder("", str(tmp_path), "key", 0, "code"), 3, 1)
    jobs.processes = [Mock(**{"poll.return_value": None, "wait.side_effect": wait}) for _ in range(3)]
    jobs.release("7")
    assert clock.now == local.STOP_WITHIN_S
    assert all(process.kill.called for process in jobs.processes)
