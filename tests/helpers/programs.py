"""Programs that stand in for those of a cluster or a GPU."""

import os
from pathlib import Path

import pytest


def install(path: Path, script: str, patch: pytest.MonkeyPatch | None = None) -> Path:
    """Write a program and return its path; with `patch`, commands of the test find it first."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    if patch:
        patch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path
