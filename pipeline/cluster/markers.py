"""The files by which a job and those who wait for it understand each other, all in the run folder.

done.json               the end, written last by the job's own function
failed.json             it failed, and another start would fail again
job.json                what was submitted
starts.jsonl            one line per start and per stop of the process that works on the run
unfit-nodes/NODE.json   a node that failed its check
checkpoints/step-N…     written by the job's function; N tells whether a restart got further

What they hold is in pipeline/core/records/jobs.py.
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
    """Whether the run has ended with this key."""
    done = read_note(Done, run / DONE_FILE)
    if done is None or done.key != key:
        return False
    return done.weights_digest is None or (run / WEIGHTS_FILE).exists()


def read_failure(run: Path, key: str) -> Failure | None:
    failure = read_note(Failure, run / "failed.json")
    return failure if failure and failure.key == key else None


def write_failure(run: Path, key: str, error: str, trace: str | None = None) -> None:
    """Of what this process was to do."""
    Failure(
        key=key, job=job_name(), node=node_name(), rank=rank(), time=time.time(), error=error, traceback=trace
    ).write(run / "failed.json")


def read_submission(run: Path) -> Submission | None:
    """The last submission; None when there is none or `job.json` can't be understood."""
    return read_note(Submission, run / "job.json")


def record_start(run: Path, line: StartLine) -> None:
    """Append one line to `starts.jsonl`."""
    append_line(run / "starts.jsonl", line.line().encode())


def read_starts(run: Path) -> list[StartLine]:
    """All lines of `starts.jsonl`, oldest first; a last line cut by a crash is left out."""
    path = run / "starts.jsonl"
    return read_lines_as(StartLine, path) if path.exists() else []


def write_unfit_node(run: Path, node: str, reason: str, job: str) -> None:
    UnfitNode(node=node, reason=reason, job=job, time=time.time()).write(run / "unfit-nodes" / f"{node}.json")


def unfit_nodes(run: Path) -> list[UnfitNode]:
    """The nodes that failed their check within the last day, by the clock of the file server, not the node's own."""
    found = sorted((run / "unfit-nodes").glob("*.json"))
    recent = [path for path in found if path.stat().st_mtime > time.time() - UNFIT_FOR_S]
    return [note for path in recent if (note := read_note(UnfitNode, path))]


def newest_checkpoint(run: Path) -> int:
    """The step of the newest checkpoint, 0 before the first."""
    steps = (re.match(r"step-(\d+)(?!.*\.damaged)", path.name) for path in (run / "checkpoints").glob("step-*"))
    return max((int(step[1]) for step in steps if step), default=0)


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def job_name() -> str:
    """Slurm's job id; the number of this process where it is the launcher's own."""
    return os.environ.get("SLURM_JOB_ID", str(os.getpid()))


def node_name() -> str:
    """Slurm's name of this node, which is what can be excluded."""
    return os.environ.get("SLURMD_NODENAME", os.uname().nodename)
