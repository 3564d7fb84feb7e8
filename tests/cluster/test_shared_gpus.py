"""Snakemake's own scheduler runs as many trainings on each GPU as the resource allows, and MPS serves them."""

import contextlib
import fcntl
import os
import random
import re
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace as Some

import pytest
import torch
from programs import install
from warm import warm_programs

from pipeline.cluster import shared_gpus
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT

RULES = """
from pipeline.cluster.shared_gpus import share_gpus
from pipeline.core.errors import UserError
try:
    SHARING = share_gpus(workflow)
except UserError as error:
    raise WorkflowError(str(error)) from None

rule all:
    input: expand("{name}.train", name=range(7))

rule train:
    output: "{name}.train"
    resources:
        gpus=lambda wildcards: min(3, SHARING.gpus) if wildcards.name == "0" else 1,
        jobs_per_gpu=SHARING.trainings_per_gpu,
        launcher="local",
    shell:
        r'''
        echo start {resources.gpus} {resources.jobs_per_gpu} >>times
        timeout 60 sh -c 'until awk "/start/ {{n += \\$2}} END {{exit (n < $PLACES)}}" times; do sleep 0.1; done'
        echo end {resources.gpus} >>times
        touch {output}
        '''
"""
"""No training ends before those that have started hold $PLACES places, so these are held at once."""


def snakemake(folder: Path, *options: str, places: int = 1) -> subprocess.CompletedProcess[str]:
    """Train seven models with eight cores, the first on three GPUs; fail if `places` cannot be held at once."""
    (folder / "Snakefile").write_text(RULES)
    command = [warm_programs() / "snakemake", "--cores", "8", "--quiet", "all", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PLACES": str(places), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resources", "most", "shared"),
    [
        (["gpus=1"], 1, 1),
        (["gpus=2", "trainings_per_gpu=3"], 6, 3),
        (["trainings_per_gpu=2"], 9, 2),
        (["gpus=2", "trainings_per_gpu=2", "--set-resources", "train:launcher=slurm"], 2, 1),
    ],
    ids=["alone", "three on each of two", "any number of GPUs", "through Slurm the number is ignored"],
)
def test_scheduler_fills_each_gpu_with_that_many_trainings(tmp_path, resources, most, shared):
    ended = snakemake(tmp_path, "--resources", *resources, places=most)
    assert ended.returncode == 0, ended.stderr
    events = [line.split() for line in (tmp_path / "times").read_text().splitlines()]
    places = accumulate(int(number) if event == "start" else -int(number) for event, number, *_ in events)
    assert max(places) == most
    starts = {" ".join(event) for event in events if event[0] == "start"}
    gpus = int(resources[0].removeprefix("gpus=")) if resources[0].startswith("gpus=") else 3
    assert starts == {f"start 1 {shared}", f"start {min(3, gpus)} {shared}"}


def test_number_of_trainings_must_be_positive(tmp_path):
    ended = snakemake(tmp_path, "--resources", "gpus=1", "trainings_per_gpu=0", "--dry-run")
    assert ended.returncode == 1
    assert "--resources trainings_per_gpu=0: must be at least 1" in ended.stdout + ended.stderr


def test_fewer_gpus_than_visible_are_refused_if_shared(monkeypatch):
    limit, places = random.randint(1, 4), random.randint(2, 5)

    def shared(visible: int, trainings_per_gpu: int) -> dict[str, int]:
        registered = {"gpus": limit, "trainings_per_gpu": trainings_per_gpu}
        resources = {name: Some(value=value) for name, value in registered.items()}
        workflow = Some(global_resources=resources, resource_settings=Some(overwrite_resources={}))
        workflow.register_resource = registered.__setitem__
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(visible))))
        shared_gpus.share_gpus(workflow)
        return registered

    with pytest.raises(UserError, match=rf"gpus={limit} .*{limit + 1} visible GPUs; .*CUDA_VISIBLE_DEVICES"):
        shared(limit + 1, places)
    assert shared(limit, places)["gpus"] == limit * places
    assert shared(limit + 1, 1)["gpus"] == limit


@pytest.mark.parametrize(
    ("wanted", "named", "counted", "refused"),
    [
        (0, "", 0, None),
        (2, "0,1", 0, None),
        (1, "", 1, None),  # of a maker whose driver is not NVIDIA's
        (1, "", 0, "a job wants 1 GPU, but this machine has none; add `--resources gpus=0`"),
        (8, "0,1", 2, "a job wants 8 GPUs, but this machine has 2 GPUs; add `--resources gpus=2`"),
    ],
)
def test_a_job_that_wants_more_gpus_than_there_are_is_refused(monkeypatch, wanted, named, counted, refused):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: counted)
    with pytest.raises(UserError, match=re.escape(refused)) if refused else contextlib.nullcontext():
        shared_gpus.require_gpus(wanted, "toy")


def test_no_job_is_refused_if_the_driver_hangs(monkeypatch):
    """GPUs cannot be counted then."""
    monkeypatch.setattr(shared_gpus, "visible_gpus", list)
    monkeypatch.setattr(shared_gpus, "driver_listing", lambda: None)
    shared_gpus.require_gpus(1, "toy")  # raises no error


DAEMON = """#!/bin/sh
# Like NVIDIA's: a daemon is a file in the folder of its pipes.
at="${CUDA_MPS_PIPE_DIRECTORY:-$DEFAULT}/control"
[ "$1$BROKEN" = -dyes ] && exit 1
[ "$1" = -d ] && { echo "start ${CUDA_VISIBLE_DEVICES-all}" >>"$DEFAULT/log"; : >"$at"; exit; }
[ -e "$at" ] || { echo "Cannot find MPS control daemon process"; exit 1; }
read -r command && echo "$command" >>"$DEFAULT/log"
[ "$command" = quit ] && rm "$at"
exit 0
"""
STARTS = (
    "from pipeline.cluster.shared_gpus import start_mps; start_mps(); print(os.environ.get('CUDA_MPS_PIPE_DIRECTORY'))"
)


@pytest.fixture
def mps(tmp_path):
    """Run `start_mps` in a process beside a program like NVIDIA's; return the folder of its pipes and its log."""
    program = install(tmp_path / "bin/nvidia-cuda-mps-control", DAEMON)
    known = {"DEFAULT": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def start(
        cards: str, path: str = f"{program.parent}:{os.environ['PATH']}", warns: str = "", **more: str
    ) -> tuple[str, list[str]]:
        environment = os.environ | known | {"CUDA_VISIBLE_DEVICES": cards, "PATH": path}
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "SLURM_JOB_ID"):
            environment.pop(name, None)
        command = [sys.executable, "-c", f"import os; {STARTS}"]
        ended = subprocess.run(command, env=environment | more, capture_output=True, text=True, check=True)
        assert warns in ended.stderr and bool(warns) == bool(ended.stderr)
        found, log = ended.stdout.strip(), tmp_path / "log"
        return found, log.read_text().splitlines() if log.exists() else []

    return start


def test_mps_serves_all_gpus_until_the_process_ends(mps, tmp_path):
    folder, log = mps("1,0")
    assert Path(folder) == tmp_path / f"reprise-{os.getuid()}/mps"
    assert log == ["start all", "get_server_list", "quit"] and not Path(folder, "control").exists()


def test_each_slurm_job_has_its_own_mps_daemon(mps):
    folders = {mps("0", **named)[0] for named in ({}, {"SLURM_JOB_ID": "7"}, {"SLURM_JOB_ID": "8"})}
    assert len(folders) == 3


def test_trainings_take_turns_with_warning_if_mps_does_not_start(mps, tmp_path):
    warning = f"take turns. Its log is in {tmp_path}/reprise-{os.getuid()}/mps\n"
    assert mps("0", warns=warning, BROKEN="yes") == ("None", [])


def test_daemon_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch):
    install(tmp_path / shared_gpus.MPS, "#!/bin/sh\nexec sleep 60\n", monkeypatch)
    monkeypatch.setattr(shared_gpus, "ANSWER_WITHIN_S", 0.2)
    assert not shared_gpus.send_to_mps("quit")


def test_running_mps_daemon_is_used_and_left_running(mps, tmp_path):
    (tmp_path / "control").touch()
    assert mps("0") == ("None", ["get_server_list"])
    assert (tmp_path / "control").exists()


def test_last_snakemake_that_uses_a_daemon_stops_it(mps, tmp_path):
    folder = tmp_path / f"reprise-{os.getuid()}/mps"
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    (folder / "control").touch()  # by a Snakemake that was killed
    with open(folder / "users.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        found, log = mps("0")
        assert found == str(folder) and set(log) == {"get_server_list"}
    assert mps("0")[1][-1] == "quit" and not (folder / "control").exists()


@pytest.mark.parametrize(("cards", "more"), [("", {}), ("MIG-2a,MIG-2b", {}), ("0", {"path": "/usr/bin:/bin"})])
def test_no_gpu_a_divided_one_or_no_program_starts_no_mps(mps, cards, more):
    assert mps(cards, **more) == ("None", [])
