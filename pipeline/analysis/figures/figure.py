"""Base class, style and saving of all figures.

SVG and PNG have the same bytes for the same data. The fonts of the machine change only the PNG of a figure with
characters that the usual font lacks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipeline.analysis.figures.fallback_fonts import add_fallback_fonts, without_glyph_warnings
from pipeline.analysis.reference_types import DatasetName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Artifact
from pipeline.core.files import atomic_write
from pipeline.core.schema import Closed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Eight colours that people with any colour vision can tell apart (Okabe and Ito 2008)."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
GREY = "#888888"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "reprise",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Drawing:
    """A figure before it is written."""

    picture: "Picture"
    rows: list[dict[str, Any]]
    """Numbers drawn, for the CSV beside it."""
    facts: str
    """Facts about the runs, for the caption."""


class Figure(Closed):
    """A figure that is drawn from runs."""

    caption: str = Field(description="Self-contained caption: what is drawn, and of which runs; facts are added to it")
    dataset: DatasetName = Field(description="Dataset as the paper names it; the scale says what stands in for it")

    def needs(self, view: PaperView) -> Iterator[Artifact]:
        """Yield the artifacts that it is drawn from.

        Raises:
            NotImplementedError: The kind does not override it.
        """
        raise NotImplementedError

    def draw(self, view: PaperView) -> Drawing:
        """Return the picture with its numbers and facts.

        Raises:
            UserError: An artifact that it is drawn from is faulty.
            NotImplementedError: The kind does not override it.
        """
        raise NotImplementedError


def new_figure(width: float, height: float) -> "Picture":
    """Return an empty picture in the common style, without pyplot, which would need state and a display.

    Args:
        width: In inches.
        height: In inches.
    """
    import matplotlib  # imported late: a dry run only needs the kinds of figures
    from matplotlib.figure import Figure as Picture

    matplotlib.rcParams.update(STYLE)
    return Picture(figsize=(width, height), layout="constrained")


def save(picture: "Picture", svg: Path) -> None:
    """Write a picture as SVG, and as PNG beside it.

    Args:
        picture: The picture.
        svg: SVG file to write.
    """
    disable_math_text(picture)
    with without_glyph_warnings():
        write(picture, svg, {"Date": None})
        add_fallback_fonts(picture, svg)  # an SVG has text, for which its reader finds fonts
        write(picture, svg.with_suffix(".png"), {"Software": None})


def write(picture: "Picture", path: Path, metadata: dict[str, None]) -> None:
    """Write a picture in the format of the suffix of `path`.

    Args:
        picture: The picture.
        path: File to write.
        metadata: Entries that matplotlib would add by itself, as None.
    """
    with atomic_write(path, "wb") as handle:
        picture.savefig(handle, format=path.suffix[1:], dpi=150, metadata=metadata)


def disable_math_text(picture: "Picture") -> None:
    """Show `$` in a subword as it is; only the powers beside logarithmic axes are read as mathematics."""
    from matplotlib.text import Text

    axes = [axis for axes in picture.axes for axis in (axes.xaxis, axes.yaxis)]
    powers = {label for axis in axes for label in axis.get_ticklabels(which="both")}
    for text in set(picture.findobj(Text)) - powers:
        text.set_parse_math(False)


def curve_style(number: int, marker_size: int = 4) -> dict[str, Any]:
    """Return colour and marker of a curve: distinct for 64 curves, the first eight by colour alone.

    Args:
        number: Number of the curve, from 0.
        marker_size: Size of the markers in points.
    """
    marker = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
    return {"color": COLOURS[number % len(COLOURS)], "marker": marker, "markersize": marker_size}


def line_style(number: int) -> dict[str, Any]:
    """Return colour and dashes of a line: distinct for 32 lines, the first eight by colour alone."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number // len(COLOURS) % len(DASHES)]}
