"""The driver job passes on how snakemake ended, stops it at a signal, and requeues itself near its limit only."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from copied_project import ROOT
from programs import install
from time_limit import until

SLOW = {"BASH_FUNC_trap%%": '() { sleep 0.2; builtin trap "$@"; }'}
"""Variables that have bash pause before it sets a trap, so that a short snakemake has ended by then."""
VARIABLES = '#!/bin/sh\n[ "$SLURM_JOB_ID $SLURM_CLUSTERS $SBATCH_ACCOUNT $SLURM_GPUS$SBATCH_QOS" = "7 inter me " ]\n'
STOPPED_BY_INT = "#!/bin/bash\ntrap 'exit 1' INT\ntouch begun\nwhile kill -0 $PPID; do sleep 0.02; done\n"


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Starts the script as Slurm does, with a program as snakemake, None for none, and a scontrol that is noted.

    What a failed test leaves running is killed.
    """
    install(tmp_path / "bin/scontrol", f'#!/bin/sh\necho "$@" > {tmp_path}/requeued\n')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    variables = {"SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_CLUSTERS": "inter", "SLURM_GPUS": "2"}
    variables |= {"SBATCH_ACCOUNT": "me", "SBATCH_QOS": "long"}

    def start(program: str | None, **further: str) -> subprocess.Popen:
        if program:
            install(tmp_path / "bin/snakemake", program)
        command = ["bash", ROOT / "slurm/driver.sbatch", "weighted"]
        environment = os.environ | variables | further
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    started: list[subprocess.Popen] = []
    yield start
    for process in started:
        process.kill()


def send_in_time(process: subprocess.Popen, number: int, begun: Path) -> None:
    """Send a signal once a snakemake has begun and the driver, which starts it first, has set its trap."""

    def has_trap() -> bool:
        caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())[1]
        return bool(int(caught, 16) >> (number - 1) & 1)

    until(lambda: begun.exists() and has_trap(), "the trap of the driver")
    process.send_signal(number)


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("#!/bin/sh\nexit 0\n", 0, ""),
        ("#!/bin/sh\nexit 5\n", 5, ""),
        ('#!/bin/sh\n[ "$*" = "--profile slurm weighted" ] && sleep 1 && exit 6\n', 6, ""),
        (VARIABLES, 0, ""),
        (None, 127, "snakemake: command not found"),
    ],
    ids=["done", "failed at once", "failed later", "variables", "environment not active"],
)
def test_driver_job_ends_as_snakemake_does(driver, program, code, said):
    process = driver(program, **SLOW)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert errors.strip().endswith(said) and errors.count("\n") == bool(said)


@pytest.mark.parametrize(("number", "requeued"), [(signal.SIGUSR1, "requeue 7\n"), (signal.SIGTERM, None)])
def test_driver_job_stops_snakemake_and_requeues_near_its_limit(driver, tmp_path, number, requeued):
    process = driver(STOPPED_BY_INT)
    send_in_time(process, number, tmp_path / "begun")
    process.communicate(timeout=60)
    note = tmp_path / "requeued"
    assert process.returncode == 1 and (note.read_text() if note.exists() else None) == requeued


def test_driver_job_that_cannot_be_requeued_says_what_to_do(driver, tmp_path):
    process = driver(STOPPED_BY_INT)
    install(tmp_path / "bin/scontrol", "#!/bin/sh\nexit 1\n")
    send_in_time(process, signal.SIGUSR1, tmp_path / "begun")
    assert process.communicate(timeout=60)[1] == "job 7 can't be requeued: submit it again, and it continues\n"
    assert process.returncode == 1
