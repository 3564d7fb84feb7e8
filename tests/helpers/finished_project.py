"""Projects at scale smoke in which products are made once for all tests of a run."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from copied_project import call, copy_project, require
from filelock import FileLock

from pipeline.core.artifacts import Product
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, datasets_in, runs_in


def finished_project(factory: pytest.TempPathFactory, products: Iterable[Product]) -> Path:
    """Return a copy of a project in which `products` are made. The test may change it.

    The workers of pytest-xdist share the project that is copied, so no product is made twice. Corpora and runs come
    from the checkout that REPRISE_SMOKE names, if it has them: `.ci/run` names its own, whose code is the same.
    """
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "finished-project"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            copy_project(shared)
        targets = adopt(shared, list(products))
        require(call(shared, "snakemake", "--quiet", "all", "--config", "scale=smoke", "--", *targets))
        return shutil.copytree(shared, factory.mktemp("finished") / "project", symlinks=True)


def adopt(folder: Path, products: list[Product]) -> list[str]:
    """Copy the corpora and runs of products that REPRISE_SMOKE has; returns what Snakemake is asked for."""
    project = load_project(folder, {"scale": "smoke"})
    needed = Graph(project).closure(products)
    layout = project.layout
    parts = [*map(layout.run, runs_in(needed)), *map(layout.corpus, datasets_in(needed))]
    smoke = Path(os.environ.get("REPRISE_SMOKE", os.devnull))
    for part in parts:
        if (smoke / part).is_dir() and not (folder / part).exists():
            shutil.copytree(smoke / part, folder / part)
    return [str(layout.target(product)) for product in products]
