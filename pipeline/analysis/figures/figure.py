"""What every kind of figure says: what it is drawn from, and how."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipeline.analysis.names import DatasetName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product
from pipeline.core.schema import Closed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Drawing:
    """A figure before it is written."""

    picture: "Picture"
    rows: list[dict[str, Any]]
    """What is drawn, for the CSV beside it."""
    facts: str
    """What the runs add to the caption."""


class Figure(Closed):
    """What every figure has."""

    caption: str = Field(description="Stands alone: what is drawn, of what; facts of the runs are added below it")
    dataset: DatasetName = Field(description="Dataset as the paper names it; the scale says what stands in for it")

    def needs(self, view: PaperView) -> Iterator[Product]:
        """All that it is drawn from."""
        raise NotImplementedError

    def draw(self, view: PaperView) -> Drawing:
        """Raises UserError when what it is drawn from is faulty."""
        raise NotImplementedError
