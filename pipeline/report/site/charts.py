"""Charts as plain SVG in the page: drawn without a script, printed as they are, coloured by the style sheet.

Positions along an axis are percentages, so that a chart is as wide as its page while its text keeps its size.
`charts.html` has the markup.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.report.markup import readable

Row = dict[str, Any]
COLOURS = 8
"""Colours of series in the style sheet; further series repeat them."""
MOST_POINTS = 400
SHADES = 10
"""Steps of opacity in a heat map."""
MARKED = 40
"""Points of a series that are marked, at most."""
SMALLER = {1.0: 0.5, 2.0: 1.0, 5.0: 2.0, 10.0: 5.0}
"""The next smaller step of an axis, in powers of ten."""
LONGEST_TICK = 7
"""Characters that have room beside an axis."""
LABELS = 40
"""Columns of a heat map that have a label, at most."""


@dataclass(frozen=True)
class Axis:
    """A title and labelled ticks, at percentages of the axis.

    Attributes:
        title: Title with the unit.
        ticks: Positions in percent, and labels.
        low: Value at 0 %.
        high: Value at 100 %.
    """

    title: str
    ticks: list[tuple[float, str]]
    low: float = 0.0
    high: float = 1.0

    def at(self, value: float) -> float:
        """Return the position of a value in percent."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)


@dataclass(frozen=True)
class Series:
    """A line.

    Attributes:
        name: Name in the legend.
        colour: Number of a colour of the style sheet.
        path: SVG path in thousandths of the chart.
        points: Position in percent from the left and the top, and text of each mark; empty if there are too many.
    """

    name: str
    colour: int
    path: str
    points: list[tuple[float, float, str]]


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis.

    Attributes:
        x: Horizontal axis.
        y: Vertical axis.
        series: The lines.
        summary: The chart in words, for readers that do not see it.
        grouped: Whether the horizontal axis has named groups instead of numbers.
        kind: Macro of `charts.html`.
    """

    title: str
    x: Axis
    y: Axis
    series: list[Series]
    summary: str
    grouped: bool = False
    kind: str = "lines"


@dataclass(frozen=True)
class Mark:
    """A number with its interval, both optional, and their positions in percent."""

    text: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class DotChart:
    """Named rows of numbers with intervals; each panel has an axis of its own.

    Attributes:
        names: Names of the rows.
        panels: Axis of each panel, with a mark for each row.
        summary: The chart in words, for readers that do not see it.
        kind: Macro of `charts.html`.
    """

    title: str
    names: list[str]
    panels: list[tuple[Axis, list[Mark]]]
    summary: str
    kind: str = "dots"


@dataclass(frozen=True)
class HeatChart:
    """A matrix of weights between 0 and 1, as one path for each shade.

    Attributes:
        x: Axis of the columns.
        y: Axis of the rows.
        size: Columns and rows.
        largest: The largest weight, which has the strongest shade.
        shades: Opacity, and the path of its cells in a box of one unit per cell.
        summary: The chart in words, for readers that do not see it.
        kind: Macro of `charts.html`.
    """

    title: str
    x: Axis
    y: Axis
    size: tuple[int, int]
    largest: float
    shades: list[tuple[float, str]]
    summary: str
    kind: str = "heat"


def nice_axis(title: str, values: Iterable[float], ticks: int = 5, margin: float = 0.04) -> Axis:
    """Return an axis that covers some values, with ticks at multiples of 1, 2 or 5 times a power of ten.

    Args:
        title: Title with the unit.
        values: Finite numbers; without any the axis covers 0 to 1.
        ticks: Desired number of ticks.
        margin: Share of the range that is added on both sides.
    """
    found = list(values) or [0.0, 1.0]
    low, high = min(found), max(found)
    if low == high:  # site.js does the same
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)
    low, high = low - margin * (high - low), high + margin * (high - low)
    rough = (high - low) / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    factor = next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999)
    if math.floor(high / (factor * power)) == math.ceil(low / (factor * power)):  # one tick alone shows no size
        factor = SMALLER[factor]
    step = factor * power
    axis, digits = Axis(title, [], low, high), max(0, -math.floor(math.log10(step * 1.001)))
    for n in range(math.ceil(low / step), math.floor(high / step) + 1):
        axis.ticks.append((axis.at(n * step), tick_label(n * step, digits)))
    return axis


def tick_label(value: float, digits: int) -> str:
    """Return a `value` with so many decimal `digits`, or as `5e−7` if that is too long and this is shorter."""
    text = f"{value:.{digits}f}"
    if len(text) > LONGEST_TICK:
        mantissa, _, power = f"{value:.9e}".partition("e")
        text = min(text, f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}" if value else "0", key=len)
    return text.replace("-", "−")


def curves(rows: Sequence[Row], y: str, title: str) -> LineChart:
    """Return a chart of `y` by step and `title`, a line for each series of `rows`; what is not finite interrupts it."""
    finite = [row for row in rows if math.isfinite(row["y"])]
    across = nice_axis("step", [row["x"] for row in finite], margin=0.0)
    up = nice_axis(y, [row["y"] for row in finite])
    series = [one_line(number, name, of, across, up) for number, (name, of) in enumerate(by_series(rows).items())]
    ends = {row["series"]: row["y"] for row in finite}
    return LineChart(
        title, across, up, series, "; ".join(f"{name} ends at {readable(end)}" for name, end in ends.items())
    )


def by_group(rows: Sequence[Row], y: str, title: str, x: str) -> LineChart:
    """Return a chart of `x`, `y` and `title` with lines over named groups of `rows`, each of a count, in this order."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    places = {group: (100 * (n + 0.5) / len(groups), group) for n, group in enumerate(groups)}
    across = Axis(x, list(places.values()), 0.0, 100.0)
    up = nice_axis(y, [row["y"] for row in rows])
    points = [row | {"x": places[row["group"]][0], "label": f"{row['group']} (of {row['of']})"} for row in rows]
    series = [one_line(number, name, of, across, up) for number, (name, of) in enumerate(by_series(points).items())]
    texts = [
        f"{line.name}: {', '.join(text.removeprefix(f'{line.name}: ') for *_, text in line.points)}" for line in series
    ]
    return LineChart(title, across, up, series, "; ".join(texts), grouped=True)


def by_series(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each series, in the order of the first of each."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["series"]), []).append(row)
    return found


def one_line(number: int, name: str, rows: Sequence[Row], x: Axis, y: Axis) -> Series:
    """Return the line of a series, with up to `MARKED` marks.

    Args:
        number: Number of the series, from 0.
        name: Its name.
        rows: Its points.
        x: Horizontal axis.
        y: Vertical axis.
    """
    path, points, pen = list[str](), list[tuple[float, float, str]](), "M"
    for row in rows:
        if not math.isfinite(row["y"]):
            pen = "M"
            continue
        left, top = x.at(row["x"]), round(100 - y.at(row["y"]), 2)
        path.append(f"{pen}{10 * left:.1f} {10 * top:.1f}")
        points.append((left, top, f"{name}: {row.get('label', row['x'])}, {readable(row['y'])}"))
        pen = "L"
    return Series(name, number % COLOURS, "".join(path), points if len(points) <= MARKED else [])


@dataclass(frozen=True)
class Number:
    """A number with its 95 % interval, if that is known.

    Attributes:
        low: Lower end of the interval; NaN if unknown.
        high: Upper end of the interval; NaN if unknown.
    """

    value: float
    low: float = math.nan
    high: float = math.nan


def differences(title: str, names: Sequence[str], panels: Mapping[str, Sequence[Number | None]]) -> DotChart:
    """Return a chart of numbers that are compared with zero.

    Args:
        title: Title of the chart.
        names: Name of each row.
        panels: For each title of an axis, the number of each row.
    """
    drawn = []
    for axis_title, numbers in panels.items():
        known = [number for number in numbers if number]
        ends = [end for number in known for end in (number.value, number.low, number.high) if math.isfinite(end)]
        axis = nice_axis(axis_title, [0.0, *ends], ticks=3)
        drawn.append((axis, [mark(axis, number) for number in numbers]))
    texts = [
        f"{name}: {', '.join(f'{panel.title} {marks[n].text}' for panel, marks in drawn if marks[n].text)}"
        for n, name in enumerate(names)
    ]
    return DotChart(title, list(names), drawn, "; ".join(texts))


def mark(axis: Axis, number: Number | None) -> Mark:
    """Return the mark of a number on an axis, with its text."""
    if number is None or not math.isfinite(number.value):
        return Mark()
    digits = max(0, 2 - math.floor(math.log10(axis.high - axis.low)))
    value, low, high = (f"{end:+z.{digits}f}".replace("-", "−") for end in (number.value, number.low, number.high))
    if not math.isfinite(number.low + number.high):
        return Mark(value, axis.at(number.value))
    return Mark(f"{value} [{low}, {high}]", axis.at(number.value), axis.at(number.low), axis.at(number.high))


def heat(columns: Sequence[str], rows: Sequence[str], weights: Sequence[Sequence[float]], title: str) -> HeatChart:
    """Return a chart of a matrix of weights between 0 and 1, shaded from 0 to the largest of them.

    Args:
        columns: Title of the horizontal axis, then labels of the columns.
        rows: Title of the vertical axis, then labels of the rows.
        weights: Weights, shape (rows, columns).
        title: Title of the chart.
    """
    (x_title, *across), (y_title, *down) = columns, rows
    paths: dict[int, list[str]] = {}
    largest = max(map(max, weights))
    for top, line in enumerate(weights):
        for left, weight in enumerate(line):
            if shade := round(SHADES * weight / (largest or 1.0)):
                paths.setdefault(shade, []).append(f"M{left} {top}h1v1h-1z")
    shades = [(shade / SHADES, "".join(path)) for shade, path in sorted(paths.items())]
    every = -(-len(across) // LABELS)
    x = Axis(x_title, [(100 * (n + 0.5) / len(across), label) for n, label in enumerate(across) if n % every == 0])
    y = Axis(y_title, [(100 * (n + 0.5) / len(down), label) for n, label in enumerate(down)])
    peaks = [max(range(len(line)), key=line.__getitem__) for line in weights]
    texts = ", ".join(f"{label} to {across[peak]}" for label, peak in zip(down, peaks, strict=False))
    return HeatChart(title, x, y, (len(across), len(down)), largest, shades, f"largest weight of each row: {texts}")


def thinned(rows: list[Row]) -> list[Row]:
    """Return every n-th of many points, including the last."""
    step = -(-len(rows) // MOST_POINTS)
    return rows[::-step][::-1] if step > 1 else rows
