"""A campaign as one screen of a terminal; in a log, the same as plain lines."""

import time
from collections import Counter
from collections.abc import Iterator

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pipeline.core.errors import first_of, in_hours
from pipeline.training.progress import clock
from pipeline.workflow.campaign import Campaign
from pipeline.workflow.failures import first_line
from pipeline.workflow.runs import RunProgress, RunState, remedy_of

COLOURS = {"done": "green", "running": "cyan", "waiting": "yellow", "failed": "red", "not run": "bright_black"}
SHOWN = 12
"""Largest number of rows of a section."""


def screen(campaign: Campaign, title: str, forecast: str | None, command: str) -> RenderableType:
    """Return the screen of a campaign, to be printed by rich.

    Args:
        campaign: Its state.
        title: First line.
        forecast: Remaining hours in words; None without a forecast.
        command: Command that resumes the campaign; empty to leave it out.
    """
    spent = ", ".join(f"{in_hours(count)} on {device}" for device, count in campaign.hours.items()) or "0 h"
    parts: list[RenderableType] = [head(campaign, title), states(campaign)]
    parts.append(Text(f"hours   {spent} spent" + ("" if forecast is None else f"; {forecast}")))
    if campaign.jobs:
        parts.append(
            Text("on Slurm  " + ", ".join(f"{count} {state}" for state, count in sorted(campaign.jobs.items())))
        )
    for part in (running(campaign), waiting(campaign), failed(campaign), todo(campaign, command)):
        if part is not None:
            parts += [Text(), part]
    return Group(*parts)


def head(campaign: Campaign, title: str) -> RenderableType:
    """Return the `title`, running Snakemake and time, on one line if they fit."""
    driver = f"run by {campaign.driver}" if campaign.driver else "no Snakemake is running"
    now = time.strftime("%H:%M:%S", time.localtime(campaign.time))
    return Columns([Text(title, style="bold"), Text(f"{driver}  {now}")], padding=(0, 2))


def states(campaign: Campaign) -> RenderableType:
    """Return the number of trainings by state, the share of steps and the finished outputs."""
    line = Text("trainings  ")
    for state, count in campaign.counts.items():
        line.append(f"{count} {state}  ", style=COLOURS[state] if count else "bright_black")
    counted = ((name, *numbers) for name, numbers in campaign.made.items() if name != "trainings" and numbers[1])
    others = "   ".join(f"{name} {count} of {total}" for name, count, total in counted)
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row("steps", ProgressBar(total=1.0, completed=campaign.share, width=40), f"{100 * campaign.share:.0f} %")
    return Group(line, bar, Text(others))


def remaining(device_hours: dict[str, float], plan: str) -> str:
    """Return the remaining hours in words; without `device_hours`, the command `plan`, which measures the speed."""
    if not device_hours:
        return f"remaining: unknown until `{plan}` has measured this machine"
    return "remaining, by the plan: " + " or ".join(f"{in_hours(n)} on {name}" for name, n in device_hours.items())


def running(campaign: Campaign) -> RenderableType | None:
    """Return a table of the running trainings."""
    found = campaign.of_state("running")
    if not found:
        return None
    rows = columns("running", "steps", "left", "perplexity", "tokens/s", "")
    for run in found[:SHOWN]:
        progress = run.progress
        rows.add_row(
            Text(run.run.folder, style=COLOURS["running"]),
            f"{run.step:,}/{run.steps:,}",
            clock(progress.seconds_left) if progress else "",
            perplexity_of(progress),
            f"{progress.tokens_per_s:,.0f}" if progress else "",
            Text(f"job {run.job} {run.why}" if run.job else run.why, style="yellow" if run.why else ""),
        )
    return Group(rows, *more(found))


def perplexity_of(progress: RunProgress | None) -> str:
    """Return the last perplexity; empty if all steps since the line before were skipped."""
    if progress is None:
        return "starting"
    return "" if progress.perplexity is None else f"{progress.perplexity:.2f}"


def waiting(campaign: Campaign) -> RenderableType | None:
    """Return the waiting trainings, grouped by reason."""
    rows = columns("", "")
    for state in ("waiting", "not run"):
        found = campaign.of_state(state)
        for why, _ in Counter(run.why for run in found).most_common(SHOWN):
            rows.add_row(*grouped(state, why, [run for run in found if run.why == why]))
    return rows if rows.row_count else None


def grouped(state: str, why: str, runs: list[RunState]) -> tuple[Text, Text]:
    """Return the row of at least one of `runs` in one `state` for the same reason `why`, perhaps empty."""
    named = first_of([run.run.folder for run in runs], 2)
    what = f"{len(runs)} {state}"
    return Text(what, style=COLOURS[state]), Text(f"{why + ': ' if why else ''}{named}")


def failed(campaign: Campaign) -> RenderableType | None:
    """Return each failure with its cause and remedy."""
    found = [(f"train {run.run.folder}", run.why, run.remedy) for run in campaign.of_state("failed")]
    found += [(f"{stage.stage} in {stage.folder}", stage.cause, remedy_of(stage)) for stage in campaign.failed]
    if not found:
        return None
    parts: list[RenderableType] = []
    for what, cause, remedy in found[:SHOWN]:
        parts += [
            Text(f"failed  {what}", style=COLOURS["failed"]),
            Text(f"  {first_line(cause)}"),
            Text(f"  → {remedy}"),
        ]
    return Group(*parts, *more(found))


def todo(campaign: Campaign, command: str) -> RenderableType | None:
    """Return what the user has to do, with the `command` that resumes the campaign unless it is empty."""
    lines = [f"{run.run.folder}: {run.remedy}" for run in campaign.runs if run.remedy and run.state != "failed"]
    if command and not campaign.driver and any(there < total for there, total in campaign.made.values()):
        lines.append(f"no Snakemake is running; to continue: {command}")
    return Text("\n".join(f"→ {line}" for line in lines), style="bold") if lines else None


def columns(*names: str) -> Table:
    """Return an empty table without lines; it has a header if a column has a name."""
    table = Table(box=None, pad_edge=False, show_header=any(names), header_style="bright_black", padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def more(found: list) -> Iterator[Text]:
    """Yield a line on the rows that are not shown, if there are any."""
    if len(found) > SHOWN:
        yield Text(f"and {len(found) - SHOWN} more", style="bright_black")
