"""What is trained under a run's name with other settings or data than today's. No torch."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.config import RunSpec, load_run, sibling_runs
from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.core.layout import COST_FILE, DONE_FILE, RUN_FILE
from pipeline.core.records.record import read_note
from pipeline.core.records.training import TrainingCost
from pipeline.core.schema import validate
from pipeline.papers.project import Project

NAMED = 3
"""Settings that differ; of more their number is said."""


@dataclass(frozen=True)
class OtherTraining:
    """A finished one. differences: from today's settings, in words; hours: that it took, on one device."""

    folder: Path
    differences: str
    hours: float | None


def trained_otherwise(project: Project, run: RunId) -> OtherTraining | None:
    """The newest; None if there is none, if its settings are the same, or can't be read, as of an old version."""
    finished = [one for one in sibling_runs(project.layout.run(run)) if (one / DONE_FILE).exists()]
    if not finished:
        return None
    with suppress(UserError, FileNotFoundError):  # one may be freed meanwhile
        newest = max(finished, key=lambda folder: (folder / DONE_FILE).stat().st_mtime)
        today = validate(RunSpec, project.run_yaml(run), run.folder)
        if found := today.differences(load_run(newest / RUN_FILE)):
            cost = read_note(TrainingCost, newest / COST_FILE)
            return OtherTraining(newest, in_words(found), cost.device_hours if cost else None)
    return None


def in_words(differences: list[str]) -> str:
    more = f"; {len(differences) - NAMED} more" if len(differences) > NAMED else ""
    return "; ".join(differences[:NAMED]) + more


def said_of_other(project: Project, run: RunId) -> str:
    """In a line, of a run that is about to be trained; empty if there is none."""
    other = trained_otherwise(project, run)
    if other is None:
        return ""
    took = f", which took {other.hours:.2g} device hours" if other.hours is not None else ""
    return f"{run.folder} is there with other settings: {other.folder.name}{took}; in it, {other.differences}"
