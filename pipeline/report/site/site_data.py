"""Data of the site: the artifacts of every report, and those that exist."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.cluster.state import read_failure
from pipeline.config import RunSpec
from pipeline.core.artifacts import Artifact, Parse, RunArtifact, RunId, Score, Trained, Transcript, Translation
from pipeline.core.errors import UserError
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.data.dataset import AnyDataset, is_own, is_redistributable
from pipeline.papers.comparability import PrintedProject
from pipeline.papers.project import Project
from pipeline.report.filled_table import NOT_RUN, why_missing
from pipeline.workflow.graph import Graph

Made = TypeVar("Made", bound=RunArtifact)
DecodedArtifact = Translation | Parse | Transcript
"""A system's output for a split."""
FAILED, TRAINING, DONE = "failed", "under way", "done"


@dataclass(frozen=True)
class SiteData:
    """The artifacts of a project, with readers that remember what they read.

    Attributes:
        project: The project at its scale.
        private: Show text of other people that may not be redistributed.
    """

    project: Project
    private: bool

    @cached_property
    def graph(self) -> Graph:
        """Return the graph of all artifacts."""
        return Graph(self.project)

    @cached_property
    def artifacts(self) -> list[Artifact]:
        """Return all that the reports of every paper are made from, in the order in which it is made."""
        return self.graph.closure(self.graph.reports(self.project.papers))

    @cached_property
    def by_run(self) -> dict[RunId, list[RunArtifact]]:
        """Return the artifacts of each run whose files are there, without its training."""
        found: dict[RunId, list[RunArtifact]] = {}
        begun = {run: self.project.layout.run(run).exists() for run in self.runs}
        for artifact in self.artifacts:
            if isinstance(artifact, RunArtifact) and begun.get(artifact.run, True) and self.is_there(artifact):
                found.setdefault(artifact.run, []).append(artifact)
        return found

    @cached_property
    def runs(self) -> list[RunId]:
        """Return every run that a report needs."""
        return [artifact.run for artifact in self.artifacts if isinstance(artifact, Trained)]

    @cached_property
    def begun(self) -> list[RunId]:
        """Return the runs that have a page: all that were started."""
        return [run for run in self.runs if self.status(run) != NOT_RUN]

    @cached_property
    def printed(self) -> Project:
        """Return the project without the rules of its scale."""
        return PrintedProject(self.project)

    @cached_property
    def _folders(self) -> dict[str, RunFolders]:
        return {}

    def spec(self, run: RunId, printed: bool = False) -> RunSpec:
        """Return the settings of a run, as `printed` in the paper or at this scale."""
        return (self.printed if printed else self.project).run_spec(run)

    def trained(self, run: RunId) -> TrainedRun | None:
        """Return the record of a finished training."""
        return self.folders(run.paper).trained(run)

    def cost(self, run: RunId) -> TrainingCost | None:
        """Return the cost of a training."""
        return self.folders(run.paper).cost(run)

    def view(self, paper: str) -> PaperView:
        """Return the project in the names of a paper."""
        return PaperView(self.project, paper)

    def folders(self, paper: str) -> RunFolders:
        """Return the reader of the run folders of a paper."""
        if paper not in self._folders:
            self._folders[paper] = RunFolders(self.view(paper))
        return self._folders[paper]

    def path(self, artifact: Artifact) -> Path:
        """Return the file of an artifact."""
        return self.project.layout.path(artifact)

    def is_there(self, artifact: Artifact) -> bool:
        """Return whether an artifact exists; a score of an earlier training or decoding does not count."""
        if not isinstance(artifact, Score):
            return self.path(artifact).exists()
        try:
            return self.folders(artifact.run.paper).score(artifact) is not None
        except UserError:
            return False

    def existing(self, kind: type[Made], run: RunId | None = None) -> Iterator[Made]:
        """Yield the artifacts of a kind that exist, of one run or, for None, of all."""
        for artifacts in [self.by_run.get(run, [])] if run else self.by_run.values():
            for artifact in artifacts:
                if isinstance(artifact, kind):
                    yield artifact

    def status(self, run: RunId) -> str:
        """Return the state of a run: not run, failed, under way or done."""
        folder = self.project.layout.run(run)
        if not folder.exists():
            return NOT_RUN
        if self.path(Trained(run)).exists():
            return DONE
        return FAILED if read_failure(folder) else TRAINING

    def why_missing(self, runs: Sequence[RunId]) -> str:
        """Return why a number of some runs is missing: one failed or trains, or as `filled_table.why_missing`."""
        states = {self.status(run) for run in runs}
        halted = next((state for state in (FAILED, TRAINING) if state in states), "")
        return halted or why_missing({state == DONE for state in states})

    def failure(self, run: RunId) -> str:
        """Return why a run failed; empty if it did not."""
        if self.status(run) != FAILED:
            return ""
        failure = read_failure(self.project.layout.run(run))
        return failure.error if failure else ""

    @property
    def datasets(self) -> list[AnyDataset]:
        """Return the datasets that runs were trained on, and those whose text outputs stand beside, by name."""
        names = {run.dataset for run in self.begun} | {dataset_of(output) for output in decoded_outputs(self)}
        return [self.project.dataset_records[name] for name in sorted(names)]

    def is_shown(self, dataset: str) -> bool:
        """Return whether pages may show text of a dataset: the user's own, or a redistributable one."""
        record = self.project.dataset_records[dataset]
        return self.private or is_own(record) or is_redistributable(record)


def run_page(run: RunId) -> str:
    """Return the name of a run's page."""
    return f"run-{file_name(*run.folder.split('/'))}.html"


def paper_page(paper: str) -> str:
    """Return the name of a paper's page."""
    return f"paper-{file_name(paper)}.html"


def file_name(*names: str) -> str:
    """Join names by dots; other characters that part names or addresses, such as `.`, `#` and `?`, become codes."""
    return ".".join(re.sub(r"[^\w-]", lambda found: f"~{ord(found[0]):x}~", name) for name in names)


def dataset_of(output: DecodedArtifact) -> str:
    """Return the dataset that an output is of; a recogniser may transcribe another one than it was trained on."""
    return output.scored_on if isinstance(output, Transcript) else output.run.dataset


def decoded_outputs(site: SiteData, run: RunId | None = None) -> list[DecodedArtifact]:
    """Return the outputs that exist, of one run or, for None, of all."""
    return [*site.existing(Translation, run), *site.existing(Parse, run), *site.existing(Transcript, run)]
