"""Reasons for missing products: a failure, a training that runs or waits, or a missing input."""

from collections.abc import Iterable
from functools import cache

from pipeline.analysis.run_folders import changed_settings
from pipeline.core.artifacts import DatasetArtifact, Product, RunArtifact, Score, Trained, manifest_of
from pipeline.core.layout import path_in_run
from pipeline.outputs.manifest import entries_of
from pipeline.workflow.campaign import Campaign
from pipeline.workflow.failures import Failed, failures, first_line, logs_of
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.runs import describe_product

FAILED, RUNNING, WAITING, NOT_RUN = "failed: ", "running", "waiting", "not run"
BLOCKED, CHANGED = "not run: needs ", "not decoded with this "
PRIORITIES = (FAILED, RUNNING, BLOCKED, CHANGED, WAITING, NOT_RUN)
"""Starts of the reasons; of several reasons the first in this order is reported."""


class Causes:
    """Reasons for missing products at one moment of a campaign."""

    def __init__(self, graph: Graph, campaign: Campaign):
        self.graph, self.layout = graph, graph.project.layout
        self.runs = {state.run: state for state in campaign.runs}
        self.unmade = WAITING if campaign.driver else NOT_RUN
        self.reason_for = cache(self._reason_for)
        self.entries_of = cache(entries_of)
        self.failed_in = cache(lambda folder: list(failures(folder)))

    def missing(self, products: Iterable[Product]) -> list[Product]:
        """Return the products whose files do not exist, and scores of outputs that other settings decoded."""
        return [
            product
            for product in dict.fromkeys(products)
            if not self.layout.path(product).exists() or self.changed_in(product)
        ]

    def changed_in(self, product: Product) -> list[str]:
        """Return the settings of a decoding that changed since an output that was scored."""
        return changed_settings(self.graph.project, product) if isinstance(product, Score) else []

    def why(self, products: Iterable[Product]) -> str:
        """Return the most informative reason among all missing products; empty if none is missing."""
        return min((self.reason_for(product) for product in self.missing(products)), key=priority_of, default="")

    def _reason_for(self, product: Product) -> str:
        """Return the reason for a missing product: its own failure or settings, or the state of its inputs."""
        if changed := self.changed_in(product):
            return CHANGED + ", ".join(changed)
        if isinstance(product, Trained) and (state := self.runs.get(product.run)):
            if state.state == "failed":
                return FAILED + first_line(state.why)
            if state.state == "running":
                return RUNNING
        elif failed := self.failure(product):
            return f"{FAILED}{failed.stage}: {first_line(failed.cause)}"
        needed = self.missing(flatten(self.graph.inputs(product)))
        return min((self.reason_from_input(product, source) for source in needed), key=priority_of, default=self.unmade)

    def reason_from_input(self, product: Product, needed: Product) -> str:
        """Return the reason for a missing product by a missing input; a failure in the same run is its own."""
        words = self.reason_for(needed)
        if isinstance(product, RunArtifact) and isinstance(needed, RunArtifact) and product.run == needed.run:
            return words
        if words.startswith(FAILED):
            return f"{BLOCKED}{describe_product(needed).removesuffix(' first')}, which failed"
        return words if words.startswith(BLOCKED) else self.unmade

    def failure(self, product: Product) -> Failed | None:
        """Return the failure of the stage that makes a product, from its manifest or log."""
        if isinstance(product, DatasetArtifact):  # each of its stages needs the previous one
            return next(iter(self.failed_in(self.layout.corpus(product.dataset))), None)
        if isinstance(product, RunArtifact) and (listed := manifest_of(product)) is not product:
            path = self.layout.path(listed)
            entry = self.entries_of(path).get(path_in_run(product))
            if entry and entry.error:
                log = logs_of(self.layout, product)[0]
                return Failed(log.stem, self.layout.run(product.run), entry.error, log, is_bug=False)
        logs = logs_of(self.layout, product)
        folder = self.layout.run(product.run) if isinstance(product, RunArtifact) else self.layout.scale_folder
        return next((failure for failure in self.failed_in(folder) if failure.log in logs), None)


def priority_of(words: str) -> int:
    """Return the place of a reason in PRIORITIES."""
    return next(place for place, start in enumerate(PRIORITIES) if words.startswith(start))
