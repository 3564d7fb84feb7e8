"""Options of the commands that read a project."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.papers.project import Project, load_project, require_project, require_work
from pipeline.papers.settings import parse_settings

Settings = Annotated[tuple[str, ...], Argument(name="--set", metavar="KEY=VALUE", repeated=True)]
"""Keys of config.yaml with other values."""


@dataclass(frozen=True)
class ProjectOptions:
    """Options that name a project and its settings.

    Attributes:
        root: Root folder of the project.
        settings: Override a key of config.yaml. May be given several times.
    """

    root: Path = Path()
    settings: Settings = ()

    def load(self, papers: Iterable[str] = ()) -> Project:
        """Load the project.

        Args:
            papers: Names given by `--paper`.

        Raises:
            UserError: `root` has no project, a setting is wrong, or a paper is unknown.
        """
        require_project(self.root, "name one with --root")
        project = load_project(self.root, parse_settings(self.settings))
        require_work(project)
        for paper in papers:
            project.known(paper, project.papers, "--paper")
        return project
