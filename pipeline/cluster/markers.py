"""The files by which a job and those who wait for it understand each other, all in the run folder.

done.json               {"key", …}: the end, written last by the job's own function
    failed.json             {"key", "error", "traceback", …}: it failed, and another start would fail again
    job.json                what was submitted: {"key", "launcher", "job", "name", "time", "code"}
starts.jsonl            one line per start and per stop of the process that works on the run
unfit-nodes/NODE.json   {"node", "reason", "job", "time"}: a node that failed its check
checkpoints/step-N…     written by the job's function; N tells whether a restart got further
"""

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.files import read_marker, write_json

UNFIT_FOR_S = 24 * 3600  # after a day a node may have been repaired


@dataclass(frozen=True)
class Submission:
    """What `job.json` says: the job that works, or worked last, on a run."""

    key: str
    launcher: str
    job: str | None  # null between the decision to submit and Slurm's answer
    name: str
    time: float
    code: str


def is_done(run: Path, key: str) -> bool:
    """Whether the run has ended with this key."""
    marker = read_marker(run / "done.json")
    return marker is not None and marker.get("key") == key


def read_failure(run: Path, key: str) -> dict | None:
    marker = read_marker(run / "failed.json")
    return marker if marker and marker.get("key") == key else None


def read_submission(run: Path) -> Submission | None:
    """The last submission; None when there is none or `job.json` can't be understood."""
    marker = read_marker(run / "job.json")
    try:
        return Submission(**marker) if marker else None
    except TypeError:
        return None


def write_submission(run: Path, submission: Submission) -> None:
    write_json(run / "job.json", asdict(submission))


def record_start(run: Path, event: str, **facts: str | int | float | None) -> None:
    """Append one line to `starts.jsonl`; a single write, so that lines never mix."""
    line = json.dumps({"event": event, "time": time.time(), **facts}, sort_keys=True) + "\n"
    with open(run / "starts.jsonl", "ab", buffering=0) as handle:
        handle.write(line.encode())


def read_starts(run: Path) -> list[dict]:
    """All lines of `starts.jsonl`, oldest first; a last line cut by a crash is left out."""
    try:
        text = (run / "starts.jsonl").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1]]


def mark_unfit(run: Path, node: str, reason: str, job: str) -> None:
    write_json(run / "unfit-nodes" / f"{node}.json", {"node": node, "reason": reason, "job": job, "time": time.time()})


def unfit_nodes(run: Path) -> list[dict]:
    """The nodes that failed their check within the last day."""
    found = [read_marker(path) for path in sorted((run / "unfit-nodes").glob("*.json"))]
    return [marker for marker in found if marker and marker["time"] > time.time() - UNFIT_FOR_S]


def newest_checkpoint(run: Path) -> int:
    """The step of the newest checkpoint, 0 before the first."""
    steps = (re.match(r"step-(\d+)", path.name) for path in (run / "checkpoints").glob("step-*"))
    return max((int(step[1]) for step in steps if step), default=0)
