"""Runs of other scales in the work folder, for commands that read one scale only."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.papers.project import Project
from pipeline.workflow.targets import reprise_command


def not_looked_at(project: Project, stage: str) -> Iterator[str]:
    """Yield a line for each other scale with runs, with the command for it."""
    for scale in project.scales:
        runs = replace(project.layout, scale=scale).runs
        if scale != project.config.scale and any(runs.glob("*/*/*/seed*")):
            command = reprise_command(project, stage, scale=scale)
            yield f"scale {scale} has runs in {project.layout.work}, too, which were not looked at: `{command}`"
