"""Files that a job in Slurm's queue needs or will write are neither freed nor repaired, and the job is named."""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from fabricated import touch
from programs import install
from real_project import project_at

from pipeline.core.artifacts import RunId
from pipeline.core.provenance import ROOT
from pipeline.core.records.jobs import Failure, StartLine, Submission, record_event
from pipeline.workflow.graph import Graph
from pipeline.workflow.live_work import LiveWork
from reprise.__main__ import main
from reprise.cli.free import unneeded

OLD = Path("smoke/runs/attention/base/grammar-smoke-en-de/seed1-0123abcd")
"""A run with former settings."""


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """Let squeue print a line, or fail; None leaves this machine without one."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/nowhere")

    def answer(line: str | None) -> None:
        (tmp_path / "bin/squeue").unlink(missing_ok=True)
        if line is not None:
            install(tmp_path / "bin/squeue", f"#!/bin/sh\n{line if line == 'exit 1' else f'echo {line!r}'}\n")

    return answer


@pytest.fixture
def old(tmp_path) -> Path:
    touch(tmp_path / "work" / OLD / "checkpoints/step-1.resume.safetensors")
    return tmp_path / "work" / OLD


def submit(folder: Path, job: str | None = "7", **known: int) -> None:
    record_event(folder, Submission(key="toy", launcher="slurm", job=job, name="toy-1", code="toy", **known))


def offered(old: Path) -> set[str]:
    """Return the places, below the work folder, of what could be freed."""
    work = old.parents[len(OLD.parts) - 1]
    return {str(item.place.relative_to(work)) for item in unneeded(Graph(project_at(work)))}


SILENT = "Slurm does not say whether job 7 has ended"


@pytest.mark.parametrize(
    ("line", "who"),
    [
        ("7|PENDING|Priority||toy-1", "job 7 waits: other jobs come first"),
        ("7|RUNNING|None|n1|toy-1", "job 7 is running on n1"),
        ("8|PENDING|Priority||toy-1", "job 8 waits: other jobs come first"),
        ("exit 1", SILENT),
        (None, SILENT),
        ("7|CANCELLED|None||toy-1", ""),
        ("8|PENDING|Priority||toy-2", ""),
    ],
    ids=["pending", "running", "same name", "no answer", "no squeue", "cancelled", "another"],
)
def test_free_keeps_a_run_that_a_job_on_slurm_may_need(old, squeue, caplog, line, who):
    squeue(line)
    submit(old)
    assert offered(old) == (set() if who else {str(OLD)})
    kept = [message for message in caplog.messages if "is kept" in message]
    assert kept == ([f"{old} is kept: {who}"] if who else [])


@pytest.mark.parametrize(
    ("outcome", "is_kept"), [("done", False), ("failed", False), ("taken over", False), ("stopped", True)]
)
def test_without_an_answer_the_end_that_a_job_recorded_counts(old, squeue, outcome, is_kept):
    """After a stop it may be requeued."""
    squeue(None)
    submit(old)
    event = StartLine(event="stop", job="7", restart=0, node="n1", pid=1, outcome=outcome)
    record_event(old, event)
    assert offered(old) == (set() if is_kept else {str(OLD)})


def test_without_an_answer_a_recorded_failure_ends_its_own_job(old, squeue):
    squeue(None)
    record_event(old, Failure(key="toy", job="7", node="n1", rank=0, error="toy", traceback=None))
    submit(old, "7")
    assert offered(old) == {str(OLD)}
    submit(old, "8")
    assert offered(old) == set()


def test_job_of_another_user_keeps_its_run_until_its_end(old, squeue):
    """The queue is asked for jobs of this user only."""
    squeue("8|RUNNING|None|n1|mine")
    submit(old, user=os.getuid() + 1)
    assert offered(old) == set()
    assert LiveWork(old.parents[5]).reason(old) == SILENT.replace("7", f"7 of user {os.getuid() + 1}")
    record_event(old, StartLine(event="stop", job="7", restart=0, node="n1", pid=1, outcome="done"))
    assert offered(old) == {str(OLD)}


def test_a_pending_decoding_keeps_its_run(old, squeue):
    squeue("9|PENDING|Resources||decode")
    submit(old / "jobs/decode-final", "9")
    assert offered(old) == set()


def test_free_keeps_what_a_pending_job_reads(old, squeue, tmp_path):
    """A corpus and a run with former settings, which its settings name."""
    squeue("7|PENDING|Resources||toy-1")
    submit(old)
    work = tmp_path / "work"
    read = [work / "corpora/grammar-smoke-en-de-0123abcd", old.with_name("seed2-0123abcd")]
    others = [work / "corpora/grammar-smoke-en-de-4567abcd", old.with_name("seed2-4567abcd")]
    for folder in (*read, *others):
        touch(folder / "model.safetensors")
    text = yaml.safe_dump({"corpus": f"{read[0]}/encoded", "initial": str(read[1])})
    touch(old / "run.yaml", text)
    assert offered(old) == {str(folder.relative_to(work)) for folder in others}


def test_slurm_is_not_asked_about_runs_that_were_never_submitted(old, monkeypatch):
    monkeypatch.setattr(shutil, "which", pytest.fail)
    record_event(old, Submission(key="toy", launcher="local", job="7", name="", code="toy"))
    assert offered(old) == {str(OLD)}


@pytest.fixture
def run(tmp_path) -> Path:
    """A run with the current settings, which a job was submitted for."""
    folder = project_at(tmp_path / "work").layout.run(RunId("attention", "base", "grammar-smoke-en-de", 1))
    submit(folder)
    return folder


def repair(run: Path) -> int:
    settings = ["--set", "scale=smoke", "--set", f"work={run.parents[5]}", "--set", "seeds=1"]
    return main(["verify", "--root", str(ROOT), "--repair", *settings])


@pytest.mark.parametrize(("line", "who"), [("7|PENDING|Priority||toy-1", "job 7 waits: other"), ("exit 1", SILENT)])
def test_a_job_in_the_queue_forbids_a_repair(run, squeue, capsys, line, who):
    squeue(line)
    assert repair(run) == 1
    assert f"not repaired: {run}: {who}" in capsys.readouterr().err


def test_without_squeue_a_repair_leaves_the_training_alone(run, squeue, caplog):
    squeue(None)
    torn = touch(run / "cost.json", "{")
    assert repair(run) == 0 and torn.exists()
    assert f"{run}: the training was not checked: {SILENT}" in caplog.messages
    touch(run / "done.json", "{}")
    assert LiveWork(run.parents[5]).reason(run) == ""
