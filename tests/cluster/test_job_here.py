"""One start of a job leaves an exit code, a record of the start and, if another start would fail again, the cause."""

import errno
import os
import signal
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from tracing import outcomes

from pipeline.cluster import job_process, state
from pipeline.cluster.job_process import Exit, JobOrder, attempt
from pipeline.cluster.node_check import UnfitNode
from pipeline.cluster.queue import Queue
from pipeline.cluster.slurm import SlurmJobs
from pipeline.cluster.state import read_failure, unfit_nodes
from pipeline.cluster.wait import Waiter
from pipeline.core import provenance
from pipeline.core.errors import LostPeer, UnreadableError, UserError
from pipeline.core.json_csv import write_json
from pipeline.training.ownership import TakenOver
from pipeline.workflow.runs import is_locked

KEY, WORK = "the run's key", "test_job_here:work"
calls: list = []
does: list = []


def work(run):
    """Run the function named by `does` as the function of a job."""
    calls.append((run, is_locked(run)))
    does[0]()


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "job_key", lambda run: KEY)
    monkeypatch.setattr(job_process, "code_digest", lambda: "this code")
    monkeypatch.setattr(job_process, "check_node", lambda *_: None)
    for name in ("RANK", "WORLD_SIZE", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    calls.clear()
    does[:] = [lambda: None]
    return tmp_path


def order(run, key: str = KEY, code: str = "this code") -> JobOrder:
    return JobOrder(WORK, str(run), key, 0, code)


@pytest.mark.parametrize(
    ("error", "code", "outcome", "said"),
    [
        (None, Exit.DONE, "done", None),
        (UserError("no corpus; make it"), Exit.FAILED, "failed", ("no corpus; make it", None)),
        (ValueError("odd"), Exit.FAILED, "failed", ("ValueError: odd", "does[0]()")),
        (RuntimeError("Connection reset by peer"), Exit.FAILED, "failed", ("RuntimeError: Connection", "does[0]()")),
        (TakenOver(), Exit.TAKEN_OVER, "taken over", None),
        (SystemExit(75), Exit.STOPPED, "stopped", None),
        (SystemExit(130), Exit.STOPPED, "stopped", None),
        (SystemExit(129), Exit.FAILED, "stopped", ("SystemExit: 129", "does[0]()")),
    ],
)
def test_attempt_returns_a_code_and_records_outcome_and_failure(run, error, code, outcome, said):
    does[:] = [Mock(side_effect=error)]
    assert attempt(order(run)) is code
    assert calls == [(run, True)] and not is_locked(run)
    assert outcomes(run) == [outcome]
    failure = read_failure(run, KEY)
    assert (failure is not None) is (said is not None)
    if said:
        words, trace = said
        assert failure.error.startswith(words) and failure.key == KEY
        assert failure.traceback is None if trace is None else trace in failure.traceback


@pytest.mark.parametrize("lost", [RuntimeError("Connection reset by peer"), LostPeer("another process hangs")])
def test_task_ended_by_a_lost_peer_records_no_failure(run, monkeypatch, lost):
    monkeypatch.setenv("WORLD_SIZE", "2")
    does[:] = [Mock(side_effect=lost)]
    assert attempt(order(run)) is Exit.FAILED and read_failure(run, KEY) is None
    does[:] = [Mock(side_effect=RuntimeError("an odd shape"))]
    assert attempt(order(run)) is Exit.FAILED and read_failure(run, KEY) is not None


@pytest.mark.parametrize(
    ("number", "size", "is_recorded"),
    [(errno.ESTALE, "2", False), (errno.ENOSPC, "2", True), (errno.EACCES, "1", True)],
)
def test_file_error_that_passes_is_no_failure_of_several_tasks(run, monkeypatch, number, size, is_recorded):
    """One task alone retries them itself."""
    monkeypatch.setenv("WORLD_SIZE", size)
    does[:] = [Mock(side_effect=OSError(number, os.strerror(number), "a file"))]
    assert attempt(order(run)) is Exit.FAILED and (read_failure(run, KEY) is not None) is is_recorded


def test_the_key_is_read_again_when_the_disk_fails_once(run, monkeypatch):
    monkeypatch.setattr(state, "job_key", Mock(side_effect=[OSError(errno.ESTALE, "Stale file handle"), KEY]))
    assert attempt(order(run)) is Exit.DONE and outcomes(run) == ["done"]


def test_the_first_task_alone_owns_the_run_and_notes_its_start(run, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert attempt(order(run)) is Exit.DONE
    assert calls == [(run, False)] and not outcomes(run)
    write_json(run / "done.json", {"key": KEY})  # the first task ends at once, and would never answer the others
    assert attempt(order(run)) is Exit.DONE and len(calls) == 1


def test_changed_run_is_taken_over_and_changed_code_is_logged(run, caplog):
    assert attempt(order(run, key="of an older one")) is Exit.TAKEN_OVER and not calls
    assert attempt(order(run)) is Exit.DONE and "code changed" not in caplog.text
    assert attempt(order(run, code="older code")) is Exit.DONE and "the code changed" in caplog.text
    assert len(calls) == 2


def test_finished_work_is_skipped_and_old_failures_are_cleared(run):
    does[:] = [Mock(side_effect=UserError("once"))]
    attempt(order(run))
    does[:] = [lambda: calls.append(read_failure(run))]
    assert attempt(order(run)) is Exit.DONE and calls[-1] is None
    write_json(run / "done.json", {"key": KEY})
    before = len(calls)
    assert attempt(order(run)) is Exit.DONE and len(calls) == before


@pytest.mark.parametrize("is_done", [False, True])
def test_import_happens_within_the_recorded_start(run, monkeypatch, is_done):
    (run / "slow_module.py").write_text("raise SystemExit(75)  # as the handler of a preemption does\n")
    monkeypatch.syspath_prepend(str(run))
    if is_done:
        write_json(run / "done.json", {"key": KEY})
    assert attempt(replace(order(run), function="slow_module:work")) is (Exit.DONE if is_done else Exit.STOPPED)
    assert outcomes(run) == ([] if is_done else ["stopped"])


def test_unfit_node_is_recorded_and_work_does_not_start(run, monkeypatch):
    monkeypatch.setattr(job_process, "check_node", Mock(side_effect=UnfitNode("a card is missing")))
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    assert attempt(order(run)) is Exit.UNFIT_NODE and not calls
    assert [(node.node, node.reason, node.job) for node in unfit_nodes(run)] == [("n7", "a card is missing", "42")]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_hanging_check_ends_the_process_without_a_record_too(run, monkeypatch, hangs):
    """The record is on the disk that hangs."""
    ended, never = [], threading.Event()
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(job_process, "check_node", lambda folder, gpu, report: report("no answer"))
    monkeypatch.setattr(job_process, "RECORDED_WITHIN_S", 0.2 if hangs else 60.0)
    if hangs:
        monkeypatch.setattr(state, "record_unfit_node", lambda *_: never.wait())
    attempt(order(run))
    never.set()
    assert ended == [Exit.UNFIT_NODE] and [node.reason for node in unfit_nodes(run)] == ["no answer"] * (not hangs)


@pytest.fixture
def requeued(run, monkeypatch) -> list[str]:
    """The jobs that were requeued."""
    jobs: list[str] = []
    monkeypatch.setattr(job_process, "request_requeue", jobs.append)
    monkeypatch.setattr(signal, "signal", Mock())
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    return jobs


def test_only_a_training_that_is_not_done_is_requeued(run, requeued):
    """The time limit may come while the job decodes."""
    assert job_process.requeue(order(run)) is Exit.STOPPED and requeued == ["42"]
    write_json(run / "done.json", {"key": KEY})
    assert job_process.requeue(order(run)) is Exit.STOPPED and requeued == ["42"]


@pytest.mark.parametrize("error", [UnreadableError("no answer"), OSError(errno.EIO, "Input/output error")])
@pytest.mark.parametrize("reads", ["is_done", "newest_checkpoint"])
def test_a_job_is_requeued_though_its_disk_fails(run, requeued, monkeypatch, reads, error):
    """A read is repeated for seconds, in which Slurm may send SIGTERM."""

    def fail(*_):
        ignored = {call.args for call in signal.signal.mock_calls}
        assert ignored == {(signal.SIGTERM, signal.SIG_IGN), (signal.SIGUSR2, signal.SIG_IGN)}
        raise error

    monkeypatch.setattr(state, reads, fail)
    assert job_process.requeue(order(run)) is Exit.STOPPED and requeued == ["42"]
    assert read_failure(run) is None


@pytest.mark.parametrize(("executor", "exported"), [("slurm", 1), ("local", 0), (None, 0)])
def test_ranks_come_from_submitit_on_slurm_else_environment(monkeypatch, executor, exported):
    asked = []
    told = SimpleNamespace(export=lambda **how: asked.append(how))
    monkeypatch.setitem(sys.modules, "submitit.helpers", SimpleNamespace(TorchDistributedEnvironment=lambda: told))
    monkeypatch.setenv("SUBMITIT_EXECUTOR", executor) if executor else monkeypatch.delenv(
        "SUBMITIT_EXECUTOR", raising=False
    )
    job_process.export_distributed()
    assert asked == [{"set_cuda_visible_devices": False, "overwrite": True}] * exported


@pytest.mark.parametrize(("nodes", "address"), [("1", "127.0.0.1"), ("2", "n1")])
def test_tasks_of_one_node_meet_without_its_name(monkeypatch, nodes, address):
    """`n1` stands for a name that Slurm knows and no resolver."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "0")
    facts = {"JOB_ID": "7", "JOB_NUM_NODES": nodes, "JOB_NODELIST": f"n[1-{nodes}]", "NTASKS": "2", "PROCID": "0"}
    for name, value in {**facts, "LOCALID": "0", "NODEID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    job_process.export_distributed()
    assert (os.environ["MASTER_ADDR"], os.environ["WORLD_SIZE"]) == (address, "2")


def test_detach_says_nothing_was_submitted_or_how_to_cancel(run, caplog):
    waiter = Waiter(run, KEY, SlurmJobs(run, order(run), None, Queue(0.0, run)))
    waiter.detach()
    assert caplog.messages == [f"{run}: nothing was submitted"]
    waiter.jobs._record(None)  # sbatch may have been answered
    waiter.detach()
    assert "a job that it has in the queue continues without this launcher; " in caplog.messages[-1]
    assert f"`scancel --name={waiter.jobs.name}` cancels it" in caplog.messages[-1]
    waiter.job = "42"
    waiter.detach()
    assert "`scancel 42` cancels it" in caplog.messages[-1]


def test_code_digest_changes_with_modules_and_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    package = tmp_path / "pipeline"
    digests = [provenance.code_digest()]
    for name, text in (("a.py", "1"), ("a.py", "2"), ("sub/b.csv", "2"), ("sub/c.txt", "2"), ("notes.md", "x")):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
        digests.append(provenance.code_digest())
    (package / "a.py").rename(package / "d.py")
    digests.append(provenance.code_digest())
    assert len(set(digests)) == len(digests) - 1 and digests[-3] == digests[-2]
