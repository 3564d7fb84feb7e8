"""Projects at scale smoke in which products are made once for all tests of a run."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from copied_project import call, copy_project, require
from filelock import FileLock

from pipeline.core.artifacts import Product, RunArtifact
from pipeline.core.digests import commit
from pipeline.core.files import NOTES
from pipeline.core.json_csv import read_json
from pipeline.core.layout import DONE_FILE, Layout
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, datasets_in, runs_in


def finished_project(factory: pytest.TempPathFactory, products: Iterable[Product]) -> Path:
    """Return a copy of a project in which `products` are made. The test may change it.

    The workers of pytest-xdist share the project that is copied, so no product is made twice. The copy has only runs,
    corpora and reports that the products need, whichever tests ran before. If REPRISE_SMOKE names a checkout, all runs
    come from it.
    """
    products = list(products)
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "finished-project"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            copy_project(shared)
        project = load_project(shared, {"scale": "smoke"})
        layout, graph = project.layout, Graph(project)
        needed = graph.closure(products)
        if smoke := os.environ.get("REPRISE_SMOKE"):
            needed = with_all_outputs(graph, needed)
            adopt(Path(smoke), shared, layout, needed)
        targets = [str(layout.target(product)) for product in products]
        require(call(shared, "snakemake", "--quiet", "all", "--config", "scale=smoke", "--", *targets))
        copy = shutil.copytree(shared, factory.mktemp("finished") / "project", symlinks=True)
    remove_others(copy, layout, needed)
    return copy


def with_all_outputs(graph: Graph, needed: list[Product]) -> list[Product]:
    """Add all outputs of the needed runs, which are in the folder of an adopted run, and what they depend on."""
    every = graph.closure(graph.readable(graph.project.papers))
    found: list[Product] = []
    while len(found) < len(needed):
        found, runs = needed, set(runs_in(needed))
        outputs = [product for product in every if isinstance(product, RunArtifact) and product.run in runs]
        needed = graph.closure([*found, *outputs])
    return found


def adopt(smoke: Path, folder: Path, layout: Layout, needed: list[Product]) -> None:
    """Copy the needed runs, all of which must be trained by the commit of this checkout, and their corpora.

    Args:
        smoke: Checkout in which `snakemake --config scale=smoke all` has ended.
        folder: Project to copy to.
        layout: Paths in both.
        needed: Products and all that they depend on.
    """
    advice = "run `snakemake --config scale=smoke -- all` there, or unset REPRISE_SMOKE"
    here, runs = commit(), [layout.run(run) for run in runs_in(needed)]
    assert here != "unknown" and "+" not in here, f"REPRISE_SMOKE: this checkout is of no commit ({here}); unset it"
    for run in runs:
        record = smoke / run / DONE_FILE
        assert record.exists(), f"REPRISE_SMOKE: {record}: no such file; {advice}"
        by = read_json(record)["provenance"]["commit"]
        assert by == here, f"REPRISE_SMOKE: {record}: trained by commit {by}, this is {here}; remove it and {advice}"
    records = ".snakemake/metadata"  # without them, Snakemake does not see that a rewritten input is the same
    for part in [records, *runs, *map(layout.corpus, datasets_in(needed))]:
        if not (folder / part).exists():
            shutil.copytree(smoke / part, folder / part)


def remove_others(folder: Path, layout: Layout, needed: list[Product]) -> None:
    """Remove the runs, corpora and reports of a project that are not among the needed products."""
    parts = {*map(layout.run, runs_in(needed)), *map(layout.corpus, datasets_in(needed))}
    corpora = layout.work / "corpora"
    for path in [*folder.glob(f"{layout.runs}/*/*/*/*"), *folder.glob(f"{corpora}/*")]:
        if path.relative_to(folder) not in parts:
            shutil.rmtree(path)
    names = {layout.path(product).with_suffix("") for product in needed}
    for path in [*folder.glob(f"{layout.results}/*/**/*.*"), *folder.glob(f"{layout.scale_folder}/model_sizes/**/*.*")]:
        of = path.parent.parent if path.parent.name == NOTES else path.parent
        if path.is_file() and (of / path.name.split(".")[0]).relative_to(folder) not in names:
            path.unlink()
