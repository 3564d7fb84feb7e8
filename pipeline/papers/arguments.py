"""Arguments of the stages that read a project, and the project that they name."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from pipeline.papers.project import Project, load_project, require_project, require_work
from pipeline.papers.settings import parse_settings


def add_settings_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="replace a key of config.yaml")


def add_project_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=Path(), help="project root (default: the working directory)")
    add_settings_argument(parser)


def add_report_arguments(parser: argparse.ArgumentParser, *, out: str, names: Iterable[str] = ()) -> None:
    """Of a report on one paper; names: `table` or `figure`, of which it is. out: what is written."""
    add_project_arguments(parser)
    for name in ("paper", *names):
        parser.add_argument(f"--{name}", required=True, help=f"which {name}, by its name in workflow/papers")
    parser.add_argument("--out", type=Path, required=True, help=out)


def project_of(args: argparse.Namespace, papers: Iterable[str] = ()) -> Project:
    """Raises UserError as `load_project` does, and when it has no paper of `papers`, which --paper named."""
    require_project(args.root, "name one with --root")
    project = load_project(args.root, parse_settings(args.set))
    require_work(project)
    for paper in papers:
        project.known(paper, project.papers, "--paper")
    return project
