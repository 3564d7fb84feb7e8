"""GPUs of a machine without Slurm: each job has its own, and waits while others have them all."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import install
from warm import warm_programs

from pipeline.cluster import launch, local
from pipeline.cluster.local import visible_gpus


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """Forget what another test's driver listed."""
    local.driver_listing.cache_clear()
    yield
    local.driver_listing.cache_clear()


@pytest.fixture
def take(tmp_path):
    """Start a process that takes GPUs of two and keeps them until its input ends."""
    begun = []

    def start(count, *more, **environment):
        known = {"TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1", "PYTHONPATH": str(Path(__file__).parent)}
        command, environment = [warm_programs() / "python", "-m", "take_gpus", str(count), *more], known | environment
        process = subprocess.Popen(command, env=os.environ | environment, stdin=-1, stdout=-1, stderr=-1, text=True)
        begun.append(process)
        return process

    yield start
    for process in begun:
        with process:
            process.kill()


def waits(process) -> str:
    """Return the reason to wait that a process logs; empty if it gets a GPU before or soon after."""
    said, *_ = select.select([process.stdout, process.stderr], [], [], 60)
    if process.stdout in said:
        return ""
    reason = process.stderr.readline()
    return "" if select.select([process.stdout], [], [], 0.3)[0] else reason


@pytest.mark.parametrize("visible", ["0,1", "MIG-GPU-8f3a/1/0,MIG-GPU-8f3a/2/0"])
def test_each_job_gets_its_own_gpu_and_a_third_waits(take, visible):
    first, second = (take(1, CUDA_VISIBLE_DEVICES=visible) for _ in range(2))
    cards = {first.stdout.readline().strip(), second.stdout.readline().strip()}
    assert cards == {*visible.split(",")}
    third = take(1, CUDA_VISIBLE_DEVICES=visible)
    assert waits(third)
    second.stdin.close()
    second.wait()
    assert third.stdout.readline().strip() in cards


def test_a_job_of_two_gpus_is_not_passed_by_jobs_of_one(take):
    first = take(1)
    assert first.stdout.readline()
    both = take(2)
    assert waits(both) == "waiting for GPUs: 1 of 2 are free, 2 are needed\n"
    later = take(1)
    assert waits(later) == "waiting for GPUs: another job is first in the queue\n"
    first.stdin.close()
    assert both.stdout.readline().strip() == "0,1"
    assert not select.select([later.stdout], [], [], 0.3)[0]


def test_jobs_share_gpus_evenly_up_to_the_given_number(take):
    shared = {"SHARED_BY": "2"}
    jobs = []
    for card in ("0", "1", "0", "1"):
        jobs.append(take(1, **shared))
        assert jobs[-1].stdout.readline().strip() == card
    fifth = take(1, **shared)
    assert waits(fifth)
    jobs[1].stdin.close()
    assert fifth.stdout.readline() == "1\n"


def test_a_job_of_two_gpus_shares_two_different_ones(take):
    shared = {"SHARED_BY": "2"}
    assert take(2, **shared).stdout.readline() == take(2, **shared).stdout.readline() == "0,1\n"
    assert waits(take(1, **shared))


def test_a_job_alone_gets_a_gpu_that_no_other_job_uses(take):
    shared = {"SHARED_BY": "2"}
    jobs = [take(1, **shared) for _ in range(3)]
    cards = [job.stdout.readline().strip() for job in jobs]
    alone = take(1, **shared, ALONE="yes")
    assert waits(alone)
    (single,) = (job for job, card in zip(jobs, cards, strict=True) if cards.count(card) == 1)
    single.stdin.close()
    assert alone.stdout.readline().strip() == cards[jobs.index(single)]
    later = take(1, **shared)
    assert waits(later)
    alone.stdin.close()
    assert later.stdout.readline().strip() == cards[jobs.index(single)]


@pytest.mark.parametrize(("places", "gpus"), [(3, 1), (6, 2), (1, 1), (0, 0)])
def test_stage_alone_asks_for_places_and_gets_whole_gpus(tmp_path, monkeypatch, places, gpus):
    asked = []
    monkeypatch.setattr(launch, "is_complete", lambda *_: False)
    monkeypatch.setattr(launch, "perform_stage", lambda command: None)
    monkeypatch.setattr(local, "acquire_gpus", lambda *given: asked.append(given))
    for sharing in ({"trainings_per_gpu": 3, "alone": True}, {}):
        options = launch.LaunchOptions(gpus=places, **sharing)
        launch.launch(("layer-times",), folder=tmp_path, options=options)
    assert asked == [(gpus, 3, True), (places, 1, False)]


def test_child_of_a_killed_launcher_does_not_hold_its_gpus(take):
    launcher = take(2, "leaves a child")
    assert launcher.stdout.readline().strip() == "0,1"
    child = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    try:
        assert take(2).stdout.readline().strip() == "0,1"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_gpu_has_one_lock_whether_named_by_number_or_uuid(take, tmp_path):
    listing = "echo 'GPU 0: NVIDIA H100 (UUID: GPU-1f)'; echo 'GPU 1: NVIDIA H100 (UUID: GPU-2e)'"
    path = f"{install(tmp_path / 'bin/nvidia-smi', f'#!/bin/sh{chr(10)}{listing}').parent}:{os.environ['PATH']}"
    first = take(1, CUDA_VISIBLE_DEVICES="1", PATH=path)
    assert first.stdout.readline() == "1\n"
    assert take(1, CUDA_VISIBLE_DEVICES="GPU-1f", PATH=path).stdout.readline() == "GPU-1f\n"
    assert waits(take(1, CUDA_VISIBLE_DEVICES="GPU-2e", PATH=path))


def test_requests_for_no_or_too_many_gpus_do_not_wait(take):
    assert take(3).stdout.readline() == take(0).stdout.readline() == "0,1\n"


def test_a_gpu_that_is_named_twice_is_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,0,-1, 1")
    assert visible_gpus() == ["0", "1"]


def test_slurm_jobs_with_equal_gpu_indices_do_not_wait(take):
    for job in ("7", "8"):
        assert take(1, SLURM_JOB_ID=job, CUDA_VISIBLE_DEVICES="0").stdout.readline() == "0\n"


def test_a_driver_that_hangs_lists_no_gpus_and_runs_once(monkeypatch, tmp_path, caplog):
    """No signal ends a process in a system call that hangs."""
    immune: list[subprocess.Popen] = []
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: immune.append(process))
    install(tmp_path / "nvidia-smi", "#!/bin/sh\nexec sleep 60\n", monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(local, "LISTED_WITHIN_S", 0.2)
    begun = time.monotonic()
    assert visible_gpus() == visible_gpus() == [] and time.monotonic() - begun < 30
    assert caplog.text.count("nvidia-smi -L: no answer within 0.2 s") == 1
    (process,) = immune
    with process:
        process.terminate()


DIVIDED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1f)
  MIG 3g.20gb     Device  0: (UUID: MIG-2a)
  MIG 3g.20gb     Device  1: (UUID: MIG-2b)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-3c)
"""


@pytest.mark.parametrize(
    ("said", "cards"),
    [
        ("GPU 0: NVIDIA H100 (UUID: GPU-1f)\nGPU 1: NVIDIA H100 (UUID: GPU-2e)\n", ["GPU-1f", "GPU-2e"]),
        (DIVIDED, ["MIG-2a", "MIG-2b", "GPU-3c"]),
        ("No devices were found\n", []),
    ],
)
def test_gpus_are_those_that_the_driver_lists(monkeypatch, tmp_path, said, cards):
    install(tmp_path / "nvidia-smi", f"#!/bin/sh\ncat <<'END'\n{said}END\n", monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == cards
    for hidden in ("", "-1", "NoDevFiles"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert visible_gpus() == []
