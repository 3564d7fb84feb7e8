"""Projects at scale smoke in which the artifacts that a test asks for are made."""

import functools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from copied_project import call, copy_project, require, shrink

from pipeline.core.artifacts import Artifact
from pipeline.core.layout import Layout
from pipeline.papers.project import load_project


@functools.cache
def shrunk_layout() -> Layout:
    """Return the layout of shrunk projects, whose runs and corpora have other digests in their names than ours."""
    with tempfile.TemporaryDirectory() as folder:
        return load_project(shrink(copy_project(Path(folder))), {"scale": "smoke"}).layout


def finished_project(factory: pytest.TempPathFactory, artifacts: Iterable[Artifact], is_shrunk: bool = True) -> Path:
    """Return a project in which `artifacts` are made. The test may change it.

    Args:
        factory: Pytest's.
        artifacts: Files to make.
        is_shrunk: Whether few steps are enough; a recogniser then outputs the same text for any audio.
    """
    folder = factory.mktemp("finished") / "project"
    folder.mkdir()
    (shrink if is_shrunk else Path)(copy_project(folder))
    layout = load_project(folder, {"scale": "smoke"}).layout
    targets = [str(layout.target(artifact)) for artifact in artifacts]
    require(call(folder, "snakemake", "--quiet", "all", "--config", "scale=smoke", "--", *targets))
    return folder
