"""Runs that a process of this machine works on, or that a job in Slurm's queue works on or will."""

import os
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from pipeline.cluster.queue import QueuedJob, query_slurm
from pipeline.core.layout import DONE_FILE, RUN_FILE, STATE_FILE
from pipeline.core.records.jobs import Failure, JobCommand, StartLine, Submission, last_event, read_events
from pipeline.workflow.runs import is_locked


class LiveWork:
    """The work that is under way in a work folder; Slurm is asked once, and only if a job was ever submitted."""

    def __init__(self, work: Path):
        self.work = work
        self.reasons: dict[Path, str] = {}

    @cached_property
    def queue(self) -> list[QueuedJob] | None:
        """The user's jobs on Slurm that have not ended; None if there is no squeue, or it does not answer."""
        rows = query_slurm() if shutil.which("squeue") else None
        return None if rows is None else [job for row in rows if not (job := QueuedJob(*row)).is_over]

    def reason(self, run: Path) -> str:
        """Return what works on a `run` or will, such as `job 7 waits: other jobs come first`; empty if nothing does."""
        if run not in self.reasons:
            here = "a process of this machine works on it" if is_locked(run) else ""
            self.reasons[run] = here or next(self.jobs(run), "")
        return self.reasons[run]

    def jobs(self, run: Path) -> Iterator[str]:
        """Yield the jobs on Slurm that train or decode a `run`, or may do so, in words."""
        for folder in job_folders(run):
            submitted = [e for e in read_events(folder) if isinstance(e, Submission) and e.launcher == "slurm"]
            if not submitted:
                continue
            known = {name for event in submitted for name in (event.job, event.name)}
            yield from (f"job {job.job} {job.in_words}" for job in self.queue or () if {job.job, job.name} & known)
            last, is_own = submitted[-1], submitted[-1].user == os.getuid()
            if (self.queue is None or not is_own) and not has_ended(folder, last):
                job = f"{last.job or last.name}{'' if is_own else f' of user {last.user}'}"
                yield f"Slurm does not say whether job {job} has ended"

    @cached_property
    def runs(self) -> dict[Path, str]:
        """All runs of all scales that a process or job works on or will, and which one that is."""
        folders = sorted(self.work.glob("*/runs/*/*/*/seed*"))
        return {run: reason for run in folders if (reason := self.reason(run))}

    @cached_property
    def settings(self) -> dict[Path, str]:
        """For each of `runs` the text of its settings, and of the commands of its jobs."""
        return {run: "\n".join(text for folder in job_folders(run) for text in texts(folder)) for run in self.runs}

    def reader(self, folder: Path) -> str:
        """Return which run in use reads the `folder` of a corpus or run, in words; empty if none does."""
        name = str(folder.relative_to(self.work))
        return next((f"{run}: {self.runs[run]}" for run, text in self.settings.items() if name in text), "")


def job_folders(run: Path) -> list[Path]:
    """Return the folders of the jobs of a `run`: that of its training, and those of its decodings."""
    return [run, *sorted(path.parent for path in run.glob(f"jobs/*/{STATE_FILE}"))]


def has_ended(folder: Path, submitted: Submission) -> bool:
    """Return whether a job that was `submitted` recorded its end in its `folder`; after a stop it may be requeued."""
    ends = [event for event in read_events(folder) if isinstance(event, Failure | StartLine)]
    over = [end.job for end in ends if isinstance(end, Failure) or end.outcome in ("done", "failed", "taken over")]
    return (folder / DONE_FILE).exists() or submitted.job in over


def texts(folder: Path) -> Iterator[str]:
    """Yield the settings of the training in a `folder`, and its last command, if there are any."""
    if (path := folder / RUN_FILE).exists():
        yield path.read_text(encoding="utf-8")
    if command := last_event(JobCommand, folder):
        yield from command.arguments
