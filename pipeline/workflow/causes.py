"""Reasons for missing artifacts: a failure, a training that runs or waits, or a missing input."""

from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from pipeline.analysis.run_folders import changed_decoding, is_outdated
from pipeline.core.artifacts import Artifact, DatasetArtifact, RunArtifact, Score, Trained, manifest_of
from pipeline.core.errors import UserError
from pipeline.core.layout import path_in_run
from pipeline.core.records.outputs import ScoreFile
from pipeline.outputs.manifest import entries_of
from pipeline.workflow.campaign import Campaign
from pipeline.workflow.failures import Failed, failures, first_line, logs_of
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.runs import describe_artifact

FAILED, RUNNING, WAITING, NOT_RUN = "failed: ", "running", "waiting", "not run"
BLOCKED, CHANGED = "not run: needs ", "not decoded with this "
PRIORITIES = (FAILED, RUNNING, BLOCKED, CHANGED, WAITING, NOT_RUN)
"""Starts of the reasons; of several reasons the first in this order is reported."""


class Causes:
    """Reasons for missing artifacts at one moment of a campaign."""

    def __init__(self, graph: Graph, campaign: Campaign):
        self.graph, self.layout = graph, graph.project.layout
        self.runs = {state.run: state for state in campaign.runs}
        self.unmade = WAITING if campaign.driver else NOT_RUN
        self.reason_for = cache(self._reason_for)
        self.changed_in, self.is_outdated = cache(self._changed_in), cache(self._is_outdated)
        self.entries_of = cache(entries_of)
        self.failed_in = cache(lambda folder: list(failures(folder)))

    def missing(self, artifacts: Iterable[Artifact]) -> list[Artifact]:
        """Return the artifacts whose files do not exist, and scores of outputs that are not the current ones."""
        return [
            artifact
            for artifact in dict.fromkeys(artifacts)
            if not self.layout.path(artifact).exists() or self.changed_in(artifact) or self.is_outdated(artifact)
        ]

    def _changed_in(self, artifact: Artifact) -> list[str]:
        """Return the settings of a decoding that changed since an output that was scored."""
        with suppress(UserError):  # a damaged record, which the report that reads it names
            return changed_decoding(self.graph.project, artifact) if isinstance(artifact, Score) else []
        return []

    def _is_outdated(self, artifact: Artifact) -> bool:
        """Return whether an output was decoded again since it was scored."""
        if not isinstance(artifact, Score):
            return False
        path = self.layout.path(artifact)
        with suppress(UserError):
            return (score := ScoreFile.read_if_there(path)) is not None and is_outdated(path, score)
        return False

    def why(self, artifacts: Iterable[Artifact]) -> str:
        """Return the most informative reason among all missing artifacts; empty if none is missing."""
        return min((self.reason_for(artifact) for artifact in self.missing(artifacts)), key=priority_of, default="")

    def _reason_for(self, artifact: Artifact) -> str:
        """Return the reason for a missing artifact: its own failure or settings, or the state of its inputs."""
        if changed := self.changed_in(artifact):
            return CHANGED + ", ".join(changed)
        if isinstance(artifact, Trained) and (state := self.runs.get(artifact.run)):
            if state.state == "failed":
                return FAILED + first_line(state.why)
            if state.state == "running":
                return RUNNING
        elif failed := self.failure(artifact):
            return f"{FAILED}{failed.stage}: {first_line(failed.cause)}"
        needed = self.missing(flatten(self.graph.inputs(artifact)))
        return min(
            (self.reason_from_input(artifact, source) for source in needed), key=priority_of, default=self.unmade
        )

    def reason_from_input(self, artifact: Artifact, needed: Artifact) -> str:
        """Return the reason for a missing artifact by a missing input; a failure in the same run is its own."""
        words = self.reason_for(needed)
        if isinstance(artifact, RunArtifact) and isinstance(needed, RunArtifact) and artifact.run == needed.run:
            return words
        if words.startswith(FAILED):
            return f"{BLOCKED}{describe_artifact(needed).removesuffix(' first')}, which failed"
        return words if words.startswith(BLOCKED) else self.unmade

    def failure(self, artifact: Artifact) -> Failed | None:
        """Return the failure of the stage that makes an artifact, from its manifest or log."""
        if isinstance(artifact, DatasetArtifact):  # each of its stages needs the previous one
            return next(iter(self.failed_in(self.layout.corpus(artifact.dataset))), None)
        if isinstance(artifact, RunArtifact) and (listed := manifest_of(artifact)) is not artifact:
            path = self.layout.path(listed)
            entry = self.entries_of(path).get(path_in_run(artifact))
            if entry and entry.error:
                log = logs_of(self.layout, artifact)[0]
                return Failed(log.stem, self.layout.run(artifact.run), entry.error, log, bug_in="")
        logs = logs_of(self.layout, artifact)
        folder = self.layout.run(artifact.run) if isinstance(artifact, RunArtifact) else self.layout.scale_folder
        return next((failure for failure in self.failed_in(folder) if failure.log in logs), None)


def priority_of(words: str) -> int:
    """Return the place of a reason in PRIORITIES."""
    return next(place for place, start in enumerate(PRIORITIES) if words.startswith(start))
