"""Actions before the first job of a workflow, after its last one, and after a failure."""

import contextlib
import csv
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.disk import require_writable
from pipeline.core.errors import count_of, in_hours
from pipeline.core.layout import RESULTS, SITE
from pipeline.papers.project import Project
from pipeline.workflow.drivers import own_files, register_driver, unregister_driver
from pipeline.workflow.failures import was_taken_over
from pipeline.workflow.rules import RuleFunctions

REPORTS = ("table", "layer_table", "figure", "claims", "view", "site")
"""Rules whose outputs lie in results/."""
FETCHING = {"download", "features"}
"""Rules that read files which the user must have or fetch."""
BEGUN = time.time()


@dataclass(frozen=True)
class PlannedJob:
    """A job that will run.

    Attributes:
        dataset: Dataset of its wildcards; empty if it has none.
        makes: Files that it writes.
    """

    rule: str
    dataset: str
    makes: list[str]


def before_first_job(
    rules: RuleFunctions, jobs: Iterable[PlannedJob], check: Callable[[Project, list[str]], None]
) -> None:
    """Register this process, and check the data.

    Args:
        rules: The project's rules.
        jobs: Jobs that will run.
        check: Raises UserError when the data of some datasets is unavailable.

    Raises:
        UserError: Another process makes one of the files, or data is unavailable.
    """
    planned = list(jobs)
    if makes := {path for job in planned for path in job.makes} - {str(SITE)}:
        register_driver(makes)  # the site covers all scales, so several drivers make it
    require_writable(rules.layout.work)
    check(rules.project, sorted({job.dataset for job in planned if job.rule in FETCHING}))


def print_dry_run(scale: str, jobs: Iterable[PlannedJob]) -> None:
    """Print in a few lines what a dry run would make; nothing if there is nothing to make."""
    plan, forecast = RESULTS / scale / "plan.csv", []
    with contextlib.suppress(OSError, ValueError, csv.Error):  # absent, or no table
        forecast = [*csv.DictReader(plan.read_text(encoding="utf-8").splitlines())]
    if lines := dry_run_lines(scale, jobs, forecast):
        print("\n".join(["", *lines]), flush=True)


def dry_run_lines(scale: str, jobs: Iterable[PlannedJob], forecast: Iterable[Mapping[str, str]] = ()) -> list[str]:
    """Return the jobs of a dry run, summed up in ten lines at most; none if there is no job.

    Args:
        scale: Name of the scale.
        jobs: Jobs that would run.
        forecast: Rows of `plan.csv`.
    """
    jobs = [job for job in jobs if job.rule != "all" and job.makes]
    if not jobs:
        return []
    rules = Counter(job.rule for job in jobs if job.rule != "train")
    outputs = [Path(job.makes[0]) for job in jobs if job.rule == "train"]
    unfinished = [output for output in outputs if not output.exists()]
    lines = [f"In short, at scale {scale}: {count_of(len(jobs), 'job')}"]
    if outputs:
        papers = sorted(Counter(output.parts[-5] for output in outputs).items())
        line = f"  train    {len(outputs)} ({', '.join(f'{paper} {count}' for paper, count in papers)})"
        finished = len(outputs) - len(unfinished)  # e.g. after an update: Snakemake starts jobs whose command changed
        note = f", {finished} of them finished: retrained only if their inputs changed" if finished else ""
        lines.append(line + note)
    for rule in ("decode", "score"):
        if count := rules.pop(rule, 0):
            lines.append(f"  {rule:8} {count}")
    reports = [f"{rules.pop(rule)} {rule}" for rule in REPORTS if rule in rules]
    for title, found in (("data", [f"{count} {rule}" for rule, count in sorted(rules.items())]), ("reports", reports)):
        if found:
            lines.append(f"  {title:8} {', '.join(found)}")
    lines += [f"  {'cost':8} {words} for the trainings, by plan.csv" for words in training_costs(unfinished, forecast)]
    return [*lines, "`snakemake plan` forecasts hours and disk; `reprise status` shows what exists."]


def training_costs(outputs: Iterable[Path], forecast: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield the forecast hours of some trainings, on this machine or an A100; nothing if one has no forecast.

    Args:
        outputs: Path of each training's `done.json`.
        forecast: Rows of `plan.csv`.
    """
    rows = {row["name"]: row for row in forecast if row.keys() >= {"name", "job"} and row["job"] == "train"}
    paths = [output.parts[-5:-1] for output in outputs]
    names = ["/".join([*parts[:3], parts[3].partition("-")[0]]) for parts in paths]
    if not names or not rows.keys() >= {*names}:
        return
    for column, device in (("hours_here", "on this machine"), ("gpu_hours_A100", "of one A100")):
        hours = [rows[name].get(column, "") for name in names]
        if all(hours):
            try:
                total = sum(map(float, hours))
            except ValueError:  # a spreadsheet may have rewritten the file
                return
            yield f"{in_hours(total)} {device}"
            return


def print_refusal(rules: RuleFunctions) -> None:
    """Repeat why a target was refused as the last line, below Snakemake's traceback; nothing if none was."""
    if rules.refusal:
        print(f"error: {rules.refusal}", file=sys.stderr, flush=True)


def cancel_timers() -> None:
    """Cancel what waits in other threads to be called later, or the process would not end before.

    Snakemake's scheduler has a timer of one timespan (profiles/default/profile.yaml) for each of its last jobs.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


def after_failure(logs: Iterable[Path], settings: list[str]) -> None:
    """Write the requested reports from the outputs made so far, then print the cause and log of each failure.

    Args:
        logs: Logs of the failed jobs.
        settings: Options that select this configuration.
    """
    failed, reports = sorted(set(logs)), sorted(path for path in own_files() if is_report(path))
    if failed and reports:
        unregister_driver()  # no job runs any more
        command = [sys.executable, "-m", "pipeline", "results", *reports, *settings]
        subprocess.run(command, stdout=sys.stderr, check=False)
    for path in failed:
        print(f"{last_error(path)} (log: {path})", file=sys.stderr, flush=True)


def is_report(path: str) -> bool:
    """Return whether a path is that of a report."""
    parts = Path(path).parts
    return len(parts) == 4 and parts[0] == str(RESULTS) and Path(path).suffix in (".csv", ".svg")


def last_error(path: Path) -> str:
    """Return the error message in a log, or its last line.

    A training that another process took over says so instead, because the log belongs to that process now.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    if not errors and path.name == "train.log" and was_taken_over(run := path.parents[1], BEGUN):
        what = "another job or process has taken this run over and continues it"
        return f"error: {run}: {what}"
    return (
        errors
        or [f"error: failed; the last line of its log: {line}" for line in lines]
        or ["error: failed without a message"]
    )[-1]
