"""The project at each scale, and a copy of it whose settings files a test may change."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_project import real_project

from pipeline.core.provenance import ROOT
from pipeline.core.yaml_file import load_yaml
from pipeline.papers.project import Project, load_project


class EditedProject:
    """A copied project; `restore` undoes all changes."""

    def __init__(self, root: Path):
        self.root = root
        self.before: dict[Path, bytes] = {}
        shutil.copytree(ROOT / "workflow", root / "workflow")
        shutil.copy(ROOT / "config.yaml", root)

    def edit(self, name: str, change: Callable[[Any], object]) -> None:
        """Apply `change` to the content of a YAML file; it changes the content in place."""
        content = load_yaml(self.path(name))
        change(content)
        written = yaml.dump(content, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
        self.path(name).write_text(written, encoding="utf-8")

    def put(self, name: str, keys: str, value: Any) -> None:
        """Set a value of a YAML file; its place is named by keys with `|` between them."""
        *outer, last = (int(key) if key.isdigit() else key for key in keys.split("|"))

        def change(content):
            for key in outer:
                content = content.setdefault(key, {}) if isinstance(content, dict) else content[key]
            content[last] = value

        self.edit(name, change)

    def path(self, name: str) -> Path:
        """Return a file that a test is about to change."""
        path = self.root / name
        self.before.setdefault(path, path.read_bytes())
        return path

    def load(self, **settings: Any) -> Project:
        return load_project(self.root, settings)

    def restore(self) -> None:
        for path, content in self.before.items():
            path.write_bytes(content)
        self.before.clear()


@pytest.fixture(params=sorted(path.stem for path in (ROOT / "workflow/scales").glob("*.yaml")))
def scaled(request) -> Project:
    """The project at each scale."""
    return real_project({"scale": request.param})


@pytest.fixture(scope="session")
def copied_project(tmp_path_factory):
    return EditedProject(tmp_path_factory.mktemp("project"))


@pytest.fixture
def edited(copied_project):
    """A copied project that is as before after the test."""
    yield copied_project
    copied_project.restore()
