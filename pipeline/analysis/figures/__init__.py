"""Kinds of figures, by the `kind` that paper.yaml gives.

A new kind is a class derived from `Figure` and a member of `AnyFigure`. Every dry run imports them, so they may import
numpy; matplotlib is imported where it is used.
"""

from typing import Annotated

from pydantic import Field

from pipeline.analysis.figures.alignments import Alignments
from pipeline.analysis.figures.attention_heads import AttentionHeads
from pipeline.analysis.figures.bleu_by_length import BleuByLength
from pipeline.analysis.figures.curves import BranchWeights, DevCurves, LossCurves

AnyFigure = Annotated[
    Alignments | AttentionHeads | BleuByLength | BranchWeights | DevCurves | LossCurves, Field(discriminator="kind")
]
