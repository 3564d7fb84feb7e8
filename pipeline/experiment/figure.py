"""The records of a paper's figures: which runs they show, and how a choice in them is made."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.kinds.scored import MetricName, ScoredSplit, score_path
from pipeline.schema import Closed, Count


class Figure(Closed):
    """What every figure has."""

    caption: str = Field(description="Stands alone: what is drawn, of what; facts of the runs are added below it")
    dataset: str = Field(description="Dataset as the paper names it; the scale says what stands in for it")


class LossCurves(Figure):
    """Dev loss against training loss, a point a validation."""

    kind: Literal["loss_curves"]
    systems: list[str] = Field(min_length=1, description="A curve each")


class BranchWeights(Figure):
    """kappa and alpha of one encoder layer over a training."""

    kind: Literal["branch_weights"]
    system: str
    layer: Count = Field(description="Encoder layer; the last one where there are fewer")
    window: Count = Field(description="Entries of the progress log that the mean filter spans")


class AttentionHeads(Figure):
    """Attention distributions of single heads of one encoder layer on a sentence chosen by a rule."""

    kind: Literal["attention_heads"]
    system: str
    split: ScoredSplit = "test"
    decoding: str = Field(description="Whose weights, averaged or not, are looked at")
    rule: Literal["distant", "pronoun", "contrast"] = Field(
        description="The sentence and word whose heads look farthest; the pronoun that two heads resolve most sharply; "
        "the two heads that differ most"
    )


class BleuByLength(Figure):
    """BLEU of the sentences longer than some length, of a random sample of the test sets."""

    kind: Literal["bleu_by_length"]
    systems: list[str] = Field(min_length=1, description="A curve each")
    splits: list[ScoredSplit] = Field(min_length=1, description="Test sets that are sampled")
    decoding: str = Field(description="Named decoding of the paper that owns the systems")
    metric: MetricName = Field(description="Which BLEU of the score files")
    longer_than: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, description="Source words")
    sentences: Count = Field(description="Sentences sampled; all where there are fewer")
    seed: Annotated[int, Field(ge=0)] = Field(default=1, description="Seed of the sample")

    @property
    def files(self) -> list[str]:
        """In a run's folder."""
        return [score_path(self.metric, self.decoding, split) for split in self.splits]


class DevCurves(Figure):
    """Dev loss over the updates."""

    kind: Literal["dev_curves"]
    systems: list[str] = Field(min_length=1, description="A curve each; the others are compared with the first")


class Alignments(Figure):
    """Attention over speech at several checkpoints of a training."""

    kind: Literal["alignments"]
    systems: list[str] = Field(min_length=1, description="A row of panels each")
    split: Literal["dev", "test"] = "dev"


FigureEntry = Annotated[
    LossCurves | BranchWeights | AttentionHeads | BleuByLength | DevCurves | Alignments, Field(discriminator="kind")
]


def systems_shown(figure: FigureEntry) -> list[str]:
    match figure:
        case LossCurves() | BleuByLength() | DevCurves() | Alignments():
            return figure.systems
        case BranchWeights() | AttentionHeads():
            return [figure.system]
    raise ValueError(f"no figure of kind {figure.kind!r}")
