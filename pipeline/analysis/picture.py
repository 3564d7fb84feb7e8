"""How every figure looks, and how it is saved: SVG and PNG, the same bytes for the same data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito (2008): eight colours that people of any colour vision tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
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


def new_figure(width: float, height: float) -> "Figure":
    """Inches. Without pyplot: no state, no display."""
    import matplotlib  # here, so that kinds of figures are known without it
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(STYLE)
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", svg: Path) -> None:
    """`svg`, and a PNG beside it."""
    show_as_written(figure)
    for path, metadata in ((svg, {"Date": None}), (svg.with_suffix(".png"), {"Software": None})):
        with atomic_write(path, "wb") as handle:
            figure.savefig(handle, format=path.suffix[1:], dpi=150, metadata=metadata)


def show_as_written(figure: "Figure") -> None:
    """No text is read as mathematics, as `$` in a subword would be, but for the powers beside logarithmic axes."""
    from matplotlib.text import Text

    axes = [axis for one in figure.axes for axis in (one.xaxis, one.yaxis)]
    powers = {label for axis in axes for label in axis.get_ticklabels(which="both")}
    for text in set(figure.findobj(Text)) - powers:
        text.set_parse_math(False)


def curve_style(number: int, marker_size: int = 4) -> dict[str, Any]:
    """Colour and markers of the curve `number`: distinct for 64 curves, the first eight by colour alone."""
    marker = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
    return {"color": COLOURS[number % len(COLOURS)], "marker": marker, "markersize": marker_size}


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes of the line `number`: distinct for 32 lines, the first eight by colour alone."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number // len(COLOURS) % len(DASHES)]}
