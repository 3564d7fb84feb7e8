"""The records of a paper's figures: which runs they show, and how a choice in them is made."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config import Closed, Count


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
    split: Literal["dev", "test"] = "test"
    decoding: str = Field(description="Whose weights, averaged or not, are looked at")
    rule: Literal["distant", "pronoun", "contrast"] = Field(
        description="The sentence and word whose heads look farthest; the pronoun that two heads resolve most sharply; "
        "the two heads that differ most"
    )


FigureEntry = Annotated[LossCurves | BranchWeights | AttentionHeads, Field(discriminator="kind")]


def systems_shown(figure: FigureEntry) -> list[str]:
    match figure:
        case LossCurves():
            return figure.systems
        case BranchWeights() | AttentionHeads():
            return [figure.system]
    raise ValueError(f"no figure of kind {figure.kind!r}")
