"""A copy of the project whose settings files a test may change."""

import copy
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.core import yaml_file
from pipeline.core.digests import ROOT
from pipeline.papers.project import Project, load_project

PARSED = functools.lru_cache(500)(yaml_file.parse_yaml)


@pytest.fixture(scope="module", autouse=True)
def parsed_once():
    """Parse texts of YAML once: most files of a copied project did not change."""
    patch = pytest.MonkeyPatch()
    patch.setattr(yaml_file, "parse_yaml", PARSED)
    yield
    patch.undo()


class EditedProject:
    """A copied project; `restore` undoes all changes."""

    def __init__(self, root: Path):
        self.root = root
        self.before: dict[Path, bytes] = {}
        shutil.copytree(ROOT / "workflow", root / "workflow")
        shutil.copy(ROOT / "config.yaml", root)

    def edit(self, name: str, change: Callable[[Any], object]) -> None:
        """Apply `change` to the content of a YAML file; it changes the content in place."""
        content = copy.deepcopy(PARSED(self.path(name).read_text(encoding="utf-8"), name))
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


@pytest.fixture(scope="session")
def copied_project(tmp_path_factory):
    return EditedProject(tmp_path_factory.mktemp("project"))


@pytest.fixture
def edited(copied_project):
    """A copied project that is as before after the test."""
    yield copied_project
    copied_project.restore()
