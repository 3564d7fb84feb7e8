"""A job on the cluster, besides its work."""

import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest
import torch
from launching import PROJECT
from programs import install
from time_limit import until

from pipeline.cluster.job_process import fruitless_starts, request_requeue
from pipeline.cluster.node_check import UnfitNode, check_gpu, check_node
from pipeline.cluster.state import newest_checkpoint, record_unfit_node, unfit_nodes
from pipeline.core.records.jobs import StartLine, Submission, record_event


@pytest.mark.parametrize(
    ("found", "newest", "fruitless"),
    [([0], 0, 1), ([0, 0, 0], 0, 3), ([0, 0, 0], 20, 0), ([0, 20, 20], 20, 2), ([0, 20, 20], 40, 0), ([], 0, 0)],
)
def test_starts_are_fruitless_until_there_is_a_newer_checkpoint(tmp_path, found, newest, fruitless):
    for step in found:
        line = StartLine(event="start", time=1.0, job="1", restart=0, node="n1", pid=1, checkpoint=step)
        record_event(tmp_path, line)
        record_event(tmp_path, line.model_copy(update={"event": "stop", "checkpoint": None}))
    (tmp_path / "checkpoints").mkdir()
    if newest:
        (tmp_path / "checkpoints" / f"step-{newest}.resume.safetensors").touch()
    assert newest_checkpoint(tmp_path) == newest
    assert fruitless_starts(tmp_path) == fruitless


def test_starts_that_decoded_or_ended_in_time_are_fruitful(tmp_path):
    line = StartLine(event="start", time=1.0, job="1", restart=0, node="n1", pid=1, checkpoint=0)
    for outcome in ("done", "stopped", "stopped"):
        record_event(tmp_path, line)
        record_event(tmp_path, line.model_copy(update={"event": "stop", "checkpoint": None, "outcome": outcome}))
    assert fruitless_starts(tmp_path) == 2
    (tmp_path / "final").mkdir()
    (tmp_path / "final/outputs.json.part").touch()  # later than all of them began
    assert fruitless_starts(tmp_path) == 0


WARNING, END = int(signal.SIGUSR2), int(signal.SIGTERM)


@pytest.mark.parametrize(("sent", "later"), [([], False), ([WARNING], True), ([END], False), ([WARNING, END], False)])
def test_only_a_warning_without_an_end_requests_requeue(sent, later):
    """Run in a process of its own: the record is of the whole process."""
    program = (
        "import os, signal, sys; from pipeline.cluster.job_process import SignalRecord\n"
        "record = SignalRecord()\n"
        "for number in (signal.SIGTERM, signal.SIGUSR2): signal.signal(number, lambda *_: None)\n"
        f"for number in {sent}: os.kill(os.getpid(), number)\n"
        f"sys.exit(record.requests_requeue is not {later})\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=PROJECT).returncode == 0


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (None, "can't be requeued (scontrol: No such file or directory): a launcher that still waits for it"),
        ("exit 1", "can't be requeued (Slurm refuses it): a launcher that still waits for it submits another job;"),
        ("exit 0", "is requeued"),
    ],
    ids=["no scontrol", "refused", "requeued"],
)
def test_a_job_says_whether_it_is_requeued_in_one_line(tmp_path, monkeypatch, caplog, program, said):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    if program:
        install(tmp_path / "scontrol", f'#!/bin/sh\n[ "$*" = "requeue 7" ] && {program}\n')
    request_requeue("7")
    assert len(caplog.messages) == 1 and said in caplog.text


def test_folder_that_hangs_is_reported_from_outside(tmp_path, monkeypatch):
    reported = []
    monkeypatch.setattr("pipeline.cluster.node_check.BROKEN_S", 0.1)
    monkeypatch.setattr("pipeline.cluster.node_check.check_folder", lambda folder: until(lambda: reported, "report"))
    check_node(tmp_path, None, report=reported.append)
    assert ["does not answer" in line for line in reported] == [True]


def test_slow_node_is_used_with_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("pipeline.cluster.node_check.SLOW_S", 0.05)
    monkeypatch.setattr("pipeline.cluster.node_check.check_folder", lambda _: until(lambda: caplog.text, "warning"))
    check_node(tmp_path, None, report=pytest.fail)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{tmp_path} is slow: no answer for 0.05 s; still waiting"
    ]


def test_unfit_node_with_a_slow_clock_is_still_excluded(tmp_path, monkeypatch):
    now = time.time()
    record_event(tmp_path, Submission(key="toy", launcher="slurm", job="7", name="toy", time=now, code="toy"))
    monkeypatch.setattr(time, "time", lambda: now - 3 * 24 * 3600)
    record_unfit_node(tmp_path, "n1", "no GPU", "7")
    monkeypatch.undo()
    assert [note.node for note in unfit_nodes(tmp_path)] == ["n1"]
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    assert unfit_nodes(tmp_path) == []


@pytest.mark.parametrize(
    ("visible", "index", "made", "fault"),
    [
        (2, 1, torch.ones, None),
        (2, 1, torch.zeros, "GPU 1 computes wrong results"),
        (2, 1, Mock(side_effect=RuntimeError("CUDA error: ECC error")), "GPU 1: CUDA error: ECC error"),
        (2, 2, torch.ones, "the job requested GPU 2, but only 2 are visible"),
        (0, 0, torch.ones, "no GPU is visible, but the job requested one"),
    ],
)
def test_missing_broken_or_wrong_gpu_makes_the_node_unfit(monkeypatch, visible, index, made, fault):
    """A CPU replaces the GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: visible > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: visible)
    monkeypatch.setattr(torch, "ones", lambda *shape, device: made(*shape))
    if fault is None:
        check_gpu(index)
    else:
        with pytest.raises(UnfitNode, match=fault):
            check_gpu(index)
