"""Projects at scale smoke in which the products that a test asks for are made."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from copied_project import call, copy_project, require

from pipeline.core.artifacts import Product
from pipeline.papers.project import load_project


def finished_project(factory: pytest.TempPathFactory, products: Iterable[Product]) -> Path:
    """Return a project in which `products` are made. The test may change it."""
    folder = factory.mktemp("finished") / "project"
    folder.mkdir()
    copy_project(folder)
    layout = load_project(folder, {"scale": "smoke"}).layout
    targets = [str(layout.target(product)) for product in products]
    require(call(folder, "snakemake", "--quiet", "all", "--config", "scale=smoke", "--", *targets))
    return folder
