"""The pace of the jobs of these tests, the traces that they leave, and the proofs that follow from them."""

import json
import os
import time
from pathlib import Path

from pipeline.cluster.state import read_starts
from pipeline.core.records.jobs import StartLine

CHECKPOINT_EVERY = 20


def starts(run: Path) -> list[StartLine]:
    return [line for line in read_starts(run) if line.event == "start"]


def outcomes(run: Path) -> list[str | None]:
    return [line.outcome for line in read_starts(run) if line.event == "stop"]


def submitted(folder: Path) -> list[str]:
    """The jobs that were ever submitted for what is in `folder`."""
    return [path.name.split("_")[0] for path in folder.glob("slurm/*_submission.sh")]


def set_pace(run: Path, seconds: float) -> None:
    """Let each further step of the job take `seconds`."""
    new = run / "pace.new"
    new.write_text(str(seconds))
    new.replace(run / "pace")


def record_step(run: Path, step: int) -> None:
    """When each step was done, and by whom: the raw material of the checks below."""
    line = json.dumps({"step": step, "time": time.time(), "pid": os.getpid()}) + "\n"
    with open(run / "steps.jsonl", "ab", buffering=0) as handle:
        handle.write(line.encode())


def trace(run: Path) -> list[dict]:
    """All steps that were done, the repeated ones too, in the order of time."""
    path = run / "steps.jsonl"
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def workers_one_after_the_other(run: Path) -> bool:
    """Return whether no process did a step after another had begun, and no start fell between another's ends."""
    workers = [line["pid"] for line in trace(run)]
    changes = sum(workers[i] != workers[i - 1] for i in range(1, len(workers)))
    events = [(line.event, line.pid) for line in read_starts(run)]
    closed = all(events[i - 1] == ("start", pid) for i, (event, pid) in enumerate(events) if event == "stop")
    return closed and changes == len(set(workers)) - 1
