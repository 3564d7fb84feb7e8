"""What a name of the workflow stands for, where it can be asked for as at Snakemake's: a paper, `all`, or a file."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pipeline.core.artifacts import Product, Report
from pipeline.core.errors import UserError
from pipeline.core.layout import RESULTS
from pipeline.papers.project import Project
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import unknown_target

P = TypeVar("P", bound=Product)


def reports_named(graph: Graph, name: str) -> list[Report] | None:
    """The reports of a paper, or of all; None when `name` is neither, or a paper that has none at this scale.

    Raises:
        UserError: there are some, and all of them need a dataset whose file is faulty.
    """
    papers = graph.project.reproduced if name == "all" else [name] if name in graph.project.papers else []
    found = graph.readable(papers)
    if graph.reports(papers) and not found:
        raise next(iter(graph.project.dataset_records.faults.values()))
    return found or None


def in_file(project: Project, name: str, products: Iterable[P], otherwise: str) -> list[P]:
    """Those of `products` that lie in the file `name`, whatever its ending.

    Args:
        otherwise: what to say of a file that is none of them, and nothing like them.

    Raises:
        UserError: there is none; it says what may have been meant.
    """
    path = Path(name).with_suffix("")
    if path.parent == RESULTS:  # a view of the configured paper's
        path = project.layout.results / project.config.paper / path.name
    layout, named = project.layout, Path(name)
    if found := [one for one in products if layout.path(one).with_suffix("") == path or layout.target(one) == named]:
        return found
    fault = unknown_target(project, name, frozenset(("all", *project.papers)))
    raise UserError(fault or f"{name}: {otherwise}")
