"""Which score of a run a table, a claim or a figure means, and where it lies in the run's folder."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.analysis.names import DatasetName, MetricName
from pipeline.core.schema import Closed
from pipeline.metrics import metric_named

ScoredSplit = Literal["dev", "test", "test2", "test3", "test4", "test5"]


def measure_of(metric: str) -> str:
    """The folder of score files that a metric stands in."""
    return metric_named(metric).reads.folder


class ScoredSplits(Closed):
    """A metric of one split, or its mean over several."""

    metric: MetricName = Field(description="Metric of the score file, e.g. bleu_paper, gleu, perplexity")
    dataset: DatasetName = Field(description="Dataset as the paper names it; the scale says what stands in for it")
    split: ScoredSplit | Annotated[list[ScoredSplit], Field(min_length=2)] = Field(
        description="Split that is scored; of several, the mean of their scores"
    )
    scored_on: DatasetName | None = Field(
        default=None, description="Dataset whose split is scored; null = `dataset`, which the system is trained on"
    )

    @property
    def splits(self) -> list[ScoredSplit]:
        return self.split if isinstance(self.split, list) else [self.split]
