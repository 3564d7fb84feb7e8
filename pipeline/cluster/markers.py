"""State files in a run folder that jobs and launchers share, and the identity of this process.

    done.json               the job is done; its function writes it last
    failed.json             the job failed, and another start would fail again
    job.json                the last submission
    starts.jsonl            one line for each start and stop of the process that works on the run
    unfit-nodes/NODE.json   a node that failed its check
    checkpoints/step-N…     written by the job's function; N shows progress between starts

Their records are in pipeline/core/records/jobs.py, and docs/reference/files.md describes all state files.
"""

import os
import re
import time
from pathlib import Path

from pipeline.core.files import append_line
from pipeline.core.layout import DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.jobs import Done, Failure, StartLine, Submission, UnfitNode
from pipeline.core.records.record import read_lines_as, read_note

UNFIT_FOR_S = 24 * 3600  # after a day a node may have been repaired


def is_done(run: Path, key: str) -> bool:
    """Return whether the run is done with this key, and its weights exist."""
    done = read_note(Done, run / DONE_FILE)
    if done is None or done.key != key:
        return False
    return done.weights_digest is None or (run / WEIGHTS_FILE).exists()


def read_failure(run: Path, key: str) -> Failure | None:
    """Read the failure of a run with this key; None if there is none."""
    failure = read_note(Failure, run / "failed.json")
    return failure if failure and failure.key == key else None


def write_failure(run: Path, key: str, error: str, trace: str | None = None) -> None:
    """Record that this process failed."""
    Failure(
        key=key, job=job_name(), node=node_name(), rank=rank(), time=time.time(), error=error, traceback=trace
    ).write(run / "failed.json")


def read_submission(run: Path) -> Submission | None:
    """Read the last submission; None if `job.json` is missing or unreadable."""
    return read_note(Submission, run / "job.json")


def record_start(run: Path, line: StartLine) -> None:
    """Append a line to `starts.jsonl`."""
    append_line(run / "starts.jsonl", line.line().encode())


def read_starts(run: Path) -> list[StartLine]:
    """Read the lines of `starts.jsonl`, oldest first, except a last one that a crash cut."""
    path = run / "starts.jsonl"
    return read_lines_as(StartLine, path) if path.exists() else []


def write_unfit_node(run: Path, node: str, reason: str, job: str) -> None:
    """Record that a node failed its check."""
    UnfitNode(node=node, reason=reason, job=job, time=time.time()).write(run / "unfit-nodes" / f"{node}.json")


def unfit_nodes(run: Path) -> list[UnfitNode]:
    """Return the nodes that failed their check within a day, by the clock of the file server."""
    found = sorted((run / "unfit-nodes").glob("*.json"))
    recent = [path for path in found if path.stat().st_mtime > time.time() - UNFIT_FOR_S]
    return [note for path in recent if (note := read_note(UnfitNode, path))]


def newest_checkpoint(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 before the first."""
    steps = (re.match(r"step-(\d+)(?!.*\.damaged)", path.name) for path in (run / "checkpoints").glob("step-*"))
    return max((int(step[1]) for step in steps if step), default=0)


def rank() -> int:
    """Return the rank of this process."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Return the number of processes of this job."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def job_name() -> str:
    """Return Slurm's job id, or the process id outside of Slurm."""
    return os.environ.get("SLURM_JOB_ID", str(os.getpid()))


def node_name() -> str:
    """Return Slurm's name of this node, by which it can be excluded."""
    return os.environ.get("SLURMD_NODENAME", os.uname().nodename)
