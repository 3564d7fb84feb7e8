"""A copy of the project as working folder, and commands that are refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from copied_project import copy_project

from reprise.__main__ import main


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Return a copy of the project, which is the working folder."""
    monkeypatch.chdir(copy_project(tmp_path))
    return tmp_path


@pytest.fixture
def refused(capsys) -> Callable[..., str]:
    """Run a command of `reprise` that has to fail, and return what it writes to stderr."""

    def run(*words: object) -> str:
        assert main(list(map(str, words))) == 1
        return capsys.readouterr().err

    return run
