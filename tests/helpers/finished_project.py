"""Projects at scale smoke in which the artifacts that a test asks for are made."""

import functools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from copied_project import call, copy_project, require, shrink

from pipeline.core.artifacts import Artifact
from pipeline.core.layout import Layout
from pipeline.papers.project import load_project

UTTERANCES = {"train": 40, "dev": 6, "test": 12}


def shrink_all(root: Path, kept: str = "") -> Path:
    """Shrink a copied project, its spoken corpora too, whose features take most of the time of a recogniser."""
    for path in (root / "workflow/datasets").glob("grammar-smoke-speech-*.yaml"):
        dataset = yaml.safe_load(path.read_text())
        expected = {split: {"utterances": count} for split, count in UTTERANCES.items()}
        path.write_text(yaml.safe_dump(dataset | {"utterances": UTTERANCES, "expected": expected}))
    return shrink(root, kept)


@functools.cache
def shrunk_layout() -> Layout:
    """Return the layout of shrunk projects, whose runs and corpora have other digests in their names than ours."""
    with tempfile.TemporaryDirectory() as folder:
        return load_project(shrink_all(copy_project(Path(folder))), {"scale": "smoke"}).layout


def finished_project(factory: pytest.TempPathFactory, artifacts: Iterable[Artifact], kept: str = "") -> Path:
    """Return a project in which `artifacts` are made. The test may change it.

    Args:
        factory: Pytest's.
        artifacts: Files to make.
        kept: System that keeps its steps; a recogniser of few steps outputs the same text for any audio.
    """
    folder = factory.mktemp("finished") / "project"
    folder.mkdir()
    shrink_all(copy_project(folder), kept)
    layout = load_project(folder, {"scale": "smoke"}).layout
    targets = [str(layout.target(artifact)) for artifact in artifacts]
    require(call(folder, "snakemake", "--quiet", "all", "--config", "scale=smoke", "--", *targets))
    return folder
