"""Other scales whose runs lie in the work folder, which what looks at the configured one alone has to name."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.papers.project import Project
from pipeline.workflow.targets import reprise_command


def not_looked_at(project: Project, stage: str) -> Iterator[str]:
    """A line for each, with what looks at it."""
    for scale in project.scales:
        runs = replace(project.layout, scale=scale).runs
        if scale != project.config.scale and any(runs.glob("*/*/*/seed*")):
            command = reprise_command(project, stage, scale=scale)
            yield f"scale {scale} has runs in {project.layout.work}, too, which were not looked at: `{command}`"
