"""The project of this repository, loaded and checked once for all tests of a process that share settings."""

import copy
import functools
import gc
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.provenance import ROOT
from pipeline.core.yaml_file import load_yaml
from pipeline.papers.project import Project, load_project


@functools.cache
def loaded(settings: str, root: Path = ROOT) -> Project:
    project = load_project(root, json.loads(settings))
    gc.freeze()  # it is kept; full collections, of which others cause dozens, would walk it each time
    return project


@functools.cache
def usual_settings() -> dict[str, Any]:
    return load_yaml(ROOT / "config.yaml")


def real_project(settings: dict[str, Any] | None = None) -> Project:
    """Return what `load_project` does for this repository. A test may change its papers, tables and claims by name."""
    usual = usual_settings()
    settings = {key: value for key, value in (settings or {}).items() if key not in usual or usual[key] != value}
    work = {"work": str(settings.pop("work"))} if "work" in settings else {}
    project = separate(loaded(json.dumps(settings)))
    project.config = project.config.model_copy(update=work)
    return project


def separate(project: Project) -> Project:
    """Return a copy that has read no files of runs or corpora, and whose papers, tables and claims may be changed."""
    project = copy.copy(project)
    project.papers, project.claims = dict(project.papers), dict(project.claims)
    project.printed = {paper: dict(tables) for paper, tables in project.printed.items()}
    for name in ("layout", "corpus_contents"):
        vars(project).pop(name, None)
    project.clear_caches()
    return project


def load_once(patch: pytest.MonkeyPatch, folder: Path, root: Path) -> None:
    """Let commands in this process load the project of a folder once for each of their settings; others as before.

    Args:
        patch: Undoes it, except in modules that are first imported while it is in force.
        folder: Working folder of the commands, resolved; its settings files do not change.
        root: A project with the same settings files, perhaps the folder itself.
    """

    def load(given: Path, settings: dict[str, Any] | None = None) -> Project:
        if Path(given).resolve() != folder:
            return load_project(given, settings)
        return separate(loaded(json.dumps(settings or {}), root))

    for module in ("pipeline.papers.project", "reprise.find_runs"):
        patch.setattr(f"{module}.load_project", load)


def project_at(work: Path, scale: str = "smoke", **config: Any) -> Project:
    """Return this project with its work elsewhere, one seed, and no data of its user."""
    settings = {"scale": scale, "work": str(work), "mirror": None, "licensed": {}, "seeds": 1}
    return real_project(settings | config)
