"""Kinds of figures, by the `kind` that paper.yaml gives.

A new kind is a class derived from `Figure` and a member of `AnyFigure`. Every dry run imports them, so they may import
numpy; matplotlib is imported where it is used.
"""

from typing import Annotated

from pydantic import Field

from pipeline.analysis.figures.attention import Alignments, AttentionHeads
from pipeline.analysis.figures.curves import BleuByLength, BranchWeights, DevCurves, LossCurves

AnyFigure = Annotated[
    Alignments | AttentionHeads | BleuByLength | BranchWeights | DevCurves | LossCurves, Field(discriminator="kind")
]
