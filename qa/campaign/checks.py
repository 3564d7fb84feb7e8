"""Compare a campaign with faults with an undisturbed one."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.cluster.state import read_starts
from pipeline.core.artifacts import Claims, LayerTable, RunId
from pipeline.core.json_csv import read_json
from pipeline.papers.project import Project, load_project
from pipeline.workflow.graph import Graph, runs_in
from qa.campaign.campaign import Campaign
from qa.campaign.project import SETTINGS, STEPS
from tests.cluster.tracing import trace, workers_one_after_the_other

OF_THE_MACHINE = re.compile(r"device_hours|hardware|commit|seconds|flops_(ende|enfr)_ours|measured")
"""Columns that may differ with machine and speed."""

WRITTEN = "[pt]*s/*/*"
"""Pattern of parses, translations and transcripts in the folder of a run."""

TIME = re.compile(r", \d+% of its time")
"""Part of a claim about steps that reports the clock beside them."""

Rows = list[dict[str, str]]


def read_rows(path: Path) -> Rows:
    """Return the rows of a report without what depends on its machine."""
    with open(path, newline="", encoding="utf-8") as file:
        return [
            {key: TIME.sub("", cell) for key, cell in row.items() if not OF_THE_MACHINE.search(key)}
            for row in csv.DictReader(file)
        ]


def is_of(row: dict[str, str], run: RunId | None) -> bool:
    """Return whether a row names a run as its source."""
    return run is not None and run.folder in row.get("runs", "").split("; ")


def claims_of_time(project: Project, paper: str) -> set[str]:
    """Return the claims of a paper that depend on measured times, of layers or of trainings."""
    every = project.claims[paper].claims.items()
    return {name for name, claim in every if claim.about == "layers" or claim.kind == "equal_time"}


def differing(struck: Campaign, calm: Path) -> Iterator[str]:
    """Yield reports, weights and outputs that differ from an undisturbed campaign, without those of the failed run."""
    project = load_project(struck.root, SETTINGS)
    graph = Graph(project)
    for artifact in struck.artifacts:
        path = project.layout.path(artifact)
        if isinstance(artifact, LayerTable):  # times
            continue
        touched = struck.broken in runs_in(graph.closure([artifact]))
        if path.suffix == ".csv":
            pairs = zip(read_rows(struck.root / path), read_rows(calm / path), strict=True)
            timed = claims_of_time(project, artifact.paper) if isinstance(artifact, Claims) else set()
            unlike = [ours for ours, theirs in pairs if ours != theirs and ours.get("claim") not in timed]
            for row in unlike:
                if not (touched and (is_of(row, struck.broken) or path.stem == "claims")):
                    yield f"{path}: {row}"
        elif not touched and (struck.root / path).read_bytes() != (calm / path).read_bytes():
            yield str(path)
    for run, folder in struck.runs.items():
        at = folder.relative_to(struck.root)
        if run != struck.broken:
            ours, theirs = (read_json(root / at / "done.json")["weights_digest"] for root in (struck.root, calm))
            if ours != theirs:
                yield f"{run.folder}: weights"
            for path in filter(Path.is_file, (calm / at).glob(WRITTEN)):
                if path.suffix != ".json" and path.read_bytes() != (folder / path.relative_to(calm / at)).read_bytes():
                    yield f"{path.relative_to(calm)}: what the model writes"


def too_often(campaign: Campaign) -> Iterator[str]:
    """Yield trainings submitted more often than their faults explain, or run by two processes at a time."""
    for run, folder in campaign.runs.items():
        failed = sum(line.outcome == "failed" for line in read_starts(folder))
        mute = max(campaign.killed[run], len(campaign.mute(run)))
        explained = 1 + mute + (len(campaign.lives) if run == campaign.broken else failed)
        if (submitted := len(campaign.jobs(run))) > explained:
            yield f"{run.folder}: submitted {submitted} times, {explained} explained"
        if not workers_one_after_the_other(folder):
            yield f"{run.folder}: two processes worked on it at a time"


def look(campaign: Campaign) -> dict[Path, Rows]:
    """Return the reports that can be made of the current outputs.

    Raises:
        AssertionError: The command failed.
    """
    done = campaign.call("reprise", "results", "--set", "scale=paper", *campaign.reports)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr[-2000:]
    there = (Path(path) for path in campaign.reports if path.endswith(".csv") and (campaign.root / path).exists())
    return {path: read_rows(campaign.root / path) for path in there}


def contradictions(looks: list[dict[Path, Rows]], campaign: Campaign) -> Iterator[str]:
    """Yield rows that were complete during the campaign and differ at its end.

    Cells that compare with another row may be added once that row is there.
    """
    for seen in looks:
        for path, rows in seen.items():
            for before, after in zip(rows, read_rows(campaign.root / path), strict=True):
                if before.get("status") == "run" and any(cell and after[key] != cell for key, cell in before.items()):
                    yield f"{path}: {before}, at last {after}"


def steps_done_twice(campaign: Campaign) -> int:
    """Return the number of training steps, over all trainings, that were computed again after a fault."""
    folders = (folder for run, folder in campaign.runs.items() if run != campaign.broken)
    return sum(max(0, len(trace(folder)) - STEPS) for folder in folders)
