"""Kinds of measured columns of a table, by the `kind` that paper.yaml gives.

A new kind is a class derived from `Cell` and a member of `AnyCell`. Every dry run imports them, so they may import
numpy, but neither torch nor a library that computes scores.
"""

from typing import Annotated

from pydantic import Field

from pipeline.analysis.cells.facts import FitCell, FlopsByTimeCell, FlopsCell, ParametersCell, SizeCell
from pipeline.analysis.cells.scores import DomainGapCell, GainCell, ScoreCell

AnyCell = Annotated[
    DomainGapCell | FitCell | FlopsByTimeCell | FlopsCell | GainCell | ParametersCell | ScoreCell | SizeCell,
    Field(discriminator="kind"),
]
