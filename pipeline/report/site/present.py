"""What there is to show: the products of every report, of which any may not be made yet."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Parse, Product, RunArtifact, RunId, Trained, Transcript, Translation
from pipeline.core.records.jobs import Failure
from pipeline.data.dataset import may_be_passed_on
from pipeline.papers.project import Project
from pipeline.workflow.graph import Graph

Made = TypeVar("Made", bound=RunArtifact)
Written = Translation | Parse | Transcript
"""What a system wrote of a split."""


@dataclass(frozen=True)
class Present:
    """Everything that the site is made from."""

    project: Project
    private: bool
    """Whether text may be shown that nobody may pass on."""

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.project)

    @cached_property
    def products(self) -> list[Product]:
        """All that the reports of every paper are made from, in the order in which it is made."""
        return self.graph.closure(self.graph.reports(self.project.papers))

    @cached_property
    def runs(self) -> list[RunId]:
        return [product.run for product in self.products if isinstance(product, Trained)]

    def folders(self, paper: str) -> RunFolders:
        """Return the reader of the run folders of a paper."""
        return RunFolders(PaperView(self.project, paper))

    def path(self, product: Product) -> Path:
        return self.project.layout.path(product)

    def made(self, kind: type[Made], run: RunId | None = None) -> Iterator[Made]:
        """Products of a kind whose file is there; run: those of one alone."""
        for product in self.products:
            if isinstance(product, kind) and run in (None, product.run) and self.path(product).exists():
                yield product

    def status(self, run: RunId) -> str:
        """How far a run is."""
        if self.path(Trained(run)).exists():
            return "run"
        folder = self.project.layout.run(run)
        return "failed" if (folder / "failed.json").exists() else "under way" if folder.exists() else "not run"

    def failure(self, run: RunId) -> str:
        """Why a run failed; empty if it did not."""
        if self.status(run) != "failed":
            return ""
        failed = Failure.read(self.project.layout.run(run) / "failed.json")
        return failed.error

    def is_shown(self, dataset: str) -> bool:
        """Whether text of a dataset may stand on a page."""
        return self.private or may_be_passed_on(self.project.dataset_records[dataset])


def run_page(run: RunId) -> str:
    """The name of a run's page."""
    return f"run-{run.folder.replace('/', '-')}.html"


def system_name(run: RunId) -> str:
    return f"{run.paper}/{run.system}"


def written(present: Present, run: RunId | None = None) -> list[Written]:
    """All that is there; run: of one alone."""
    return [*present.made(Translation, run), *present.made(Parse, run), *present.made(Transcript, run)]
