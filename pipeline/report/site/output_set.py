"""All outputs for one split, with their sentence statistics."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from pipeline.core.artifacts import Parse, Score, Translation
from pipeline.core.errors import UserError, count_of
from pipeline.data.dataset import SplitName
from pipeline.data.sequence_store import TokenStore
from pipeline.data.text.text_files import read_lines
from pipeline.data.text.vocabulary import Alphabet
from pipeline.metrics import metric_named, read_statistics
from pipeline.metrics.metric import Metric
from pipeline.report.labels import output_name, pair_of
from pipeline.report.site.site_data import DecodedArtifact, SiteData, dataset_of, decoded_outputs, file_name, run_page

METRICS = {"sentences": "chrf", "trees": "f1", "speech": "wer"}
"""Metric of a single sentence, by form of the dataset; BLEU is not defined for a few words."""
MOST = 500
"""Sentences of a page: of a larger test set those on which systems differ most."""


@dataclass(frozen=True)
class Output:
    """The output of one system, and the statistics of each sentence.

    Attributes:
        name: System and decoding.
        page: Page of the run.
        lines: Output of each sentence as text.
        tokenised: Output of each sentence as tokens.
        scores: Score file, with the statistics of each sentence beside it.
    """

    name: str
    page: str
    lines: list[str]
    tokenised: list[str]
    scores: Path


@dataclass(frozen=True)
class OutputSet:
    """Outputs of all systems for one split.

    Attributes:
        dataset: Dataset of the split.
    """

    site: SiteData
    dataset: str
    split: SplitName

    @property
    def page(self) -> str:
        """Return the name of its page."""
        return f"outputs-{self.stem}.html"

    @property
    def stem(self) -> str:
        """Return the name that its files share."""
        return f"{file_name(self.dataset)}-{self.split}"

    @property
    def record(self) -> Any:
        """Return the record of the dataset."""
        return self.site.project.dataset_records[self.dataset]

    @property
    def title(self) -> str:
        """Return the name of the test set, with its languages or dataset."""
        data = pair_of(self.site.project, self.dataset) if self.record.form == "sentences" else self.dataset
        return f"{self.record.name_of_split(self.split)}, {data}"

    @cached_property
    def metric(self) -> Metric[Any]:
        """Return the metric of a single sentence."""
        return metric_named(METRICS[self.record.form])

    @property
    def folder(self) -> Path:
        """Return the folder of the corpus."""
        return self.site.project.layout.corpus(self.dataset)

    @property
    def seed(self) -> int:
        """Return the seed whose outputs are shown, the first."""
        return self.site.project.config.seed_list[0]

    @cached_property
    def artifacts(self) -> list[DecodedArtifact]:
        """Return the outputs of the first seed that have a text and a score."""
        return [output for output in decoded_outputs(self.site) if output.run.seed == self.seed and self.has(output)]

    @property
    def counted(self) -> str:
        """Return the numbers of outputs and of systems; a system may have several decodings."""
        systems = len({output.run for output in self.artifacts})
        return f"{count_of(len(self.artifacts), 'output')} of {count_of(systems, 'system')}"

    def has(self, artifact: DecodedArtifact) -> bool:
        """Return whether an output is of this split and has a score."""
        wanted = (dataset_of(artifact), artifact.split) == (self.dataset, self.split)
        return wanted and self.score(artifact) is not None

    def score(self, artifact: DecodedArtifact) -> Score | None:
        """Return the score of an output, with the statistics of its sentences beside it; None if there is none."""
        elsewhere = getattr(artifact, "scored_on", None)
        found = Score(artifact.run, self.metric.reads.folder, artifact.decoding, artifact.split, elsewhere)
        return found if self.site.is_there(found) else None

    @property
    def tokenised_source(self) -> Path:
        """Return the file of the source sentences as words, which Chinese text does not separate."""
        return self.folder / f"prepared/{self.split}.tok.{self.record.src}"

    @cached_property
    def sources(self) -> list[str]:
        """Return the source sentences; empty lines for speech."""
        match self.record.form:
            case "sentences":
                return read_lines(self.folder / f"prepared/{self.split}.{self.record.src}")
            case "trees":
                return read_lines(self.tokenised_source)
        return [""] * len(self.references)

    @property
    def words_to_count(self) -> list[str]:
        """Return the lines whose words are the lengths of sentences: tokenised sources, or the references of speech."""
        return self.references if self.record.form == "speech" else read_lines(self.tokenised_source)

    @cached_property
    def references(self) -> list[str]:
        """Return the first reference of each sentence."""
        match self.record.form:
            case "sentences":
                return read_lines(self.folder / f"prepared/{self.split}.{self.record.references(self.split)[0]}")
            case "trees":
                return read_lines(self.folder / f"prepared/{self.split}.trees")
        return Alphabet().decode([*TokenStore(self.folder / f"encoded/{self.split}.tgt")])

    @cached_property
    def outputs(self) -> list[Output]:
        """Return the outputs with their texts."""
        return [self.output(artifact) for artifact in self.artifacts]

    def output(self, artifact: DecodedArtifact) -> Output:
        """Return the lines of an output.

        Raises:
            UserError: It has not as many lines as the split.
        """
        path, score = self.site.path(artifact), self.score(artifact)
        assert score is not None, "looked for when the artifacts were"
        match artifact:
            case Translation():
                text = self.site.project.layout.text(artifact)
            case Parse():
                text = self.site.project.layout.trees(score)
            case _:
                text = path
        lines = read_lines(text)
        if len(lines) != len(self.references):
            raise UserError(f"{text}: {count_of(len(lines), 'line')}, but {self.title} has {len(self.references)}")
        name = output_name(self.site.project, artifact.run, artifact.decoding)
        return Output(name, run_page(artifact.run), lines, read_lines(path), self.site.path(score))

    @cached_property
    def scores(self) -> np.ndarray:
        """Return the score of each sentence alone, shape (systems, N)."""
        statistics = (read_statistics(output.scores, self.metric.name) for output in self.outputs)
        return np.array([self.metric.total(rows) for rows in statistics], dtype=float)

    @cached_property
    def shown(self) -> list[int]:
        """Return the sentences of the page, in their order."""
        spread = np.std(np.nan_to_num(self.scores), axis=0)
        return sorted(np.argsort(-spread, kind="stable")[:MOST].tolist())


def output_sets(site: SiteData) -> list[OutputSet]:
    """Return one for each split that has an output."""
    keys = dict.fromkeys((dataset_of(output), output.split) for output in decoded_outputs(site))
    sets = (OutputSet(site, dataset, cast(SplitName, split)) for dataset, split in keys)
    return [output_set for output_set in sets if output_set.artifacts]
