"""Charts as Vega-Lite, made by altair; a page draws them when they come into view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from pipeline.analysis.figures.figure import COLOURS

Row = dict[str, Any]
OURS, PRINTED = "ours, with its 95 % interval", "printed"
HEIGHT = 240
MOST_POINTS = 400
LEGEND = alt.Legend(title=None, orient="top", columns=1, labelLimit=280)
PALETTE = [colour for colour in COLOURS if colour != "#000000"]


@dataclass(frozen=True)
class Chart:
    """What is drawn, its title, and what it says to those who do not see it."""

    spec: dict[str, Any]
    title: str
    described: str


def chart(drawn: Any, title: str, described: str, height: int = HEIGHT) -> Chart:
    """Of an altair chart; as wide as the page."""
    spec = drawn.properties(width="container", height=height).to_dict()
    spec.pop("config", None)
    return Chart(spec, title, described)


def values(rows: Sequence[Row]) -> alt.Data:
    return alt.Data(values=list(rows))


def named_rows(rows: Sequence[Row], field: str) -> alt.Y:
    """Rows by name, in their order, whichever of them a layer draws."""
    return alt.Y(field, type="nominal", sort=[row[field] for row in rows], title="", axis=alt.Axis(labelLimit=220))


def comparison(rows: Sequence[Row], metric: str, remark: str) -> Chart:
    """rows: label, printed, ours, low, high; each but the label may be None. remark: for the title."""
    base = alt.Chart(values(rows)).encode(y=named_rows(rows, "label"))
    # with its title at the end it fits a narrow screen
    axis: dict[str, Any] = {"scale": alt.Scale(zero=False), "axis": alt.Axis(titleAnchor="end"), "title": metric}
    tooltip = [alt.Tooltip(field, type="nominal") for field in ("label", "printed", "ours", "low", "high")]
    measured = any(row["low"] is not None for row in rows)
    interval = base.mark_rule(strokeWidth=2, color=COLOURS[0]).encode(
        x=alt.X("low", type="quantitative", **axis), x2=alt.X2("high")
    )
    of_colour = alt.Color(
        "series",
        type="nominal",
        scale=alt.Scale(domain=[PRINTED, OURS], range=[COLOURS[1], COLOURS[0]]),
        legend=LEGEND,
    )
    points = [
        base.transform_calculate(series=f"'{name}'")
        .mark_point(size=70, filled=True, shape=shape)
        .encode(x=alt.X(field, type="quantitative", **axis), color=of_colour, tooltip=tooltip)
        for field, name, shape in (("printed", PRINTED, "diamond"), ("ours", OURS, "circle"))
        if any(row[field] is not None for row in rows)
    ]
    drawn = alt.layer(*([interval] if measured else []), *points)
    said = "; ".join(f"{row['label']}: printed {row['printed']}, ours {row['ours']}" for row in rows)
    return chart(drawn, f"Printed beside ours{', ' if remark else ''}{remark}", said, 40 + 22 * len(rows))


def evidence(rows: Sequence[Row]) -> Chart:
    """rows: name, value, low, high of quantities that are positive if a claim is true."""
    base = alt.Chart(values(rows)).encode(y=named_rows(rows, "name"))
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 3]).encode(x=alt.X("zero:Q"))
    interval = base.mark_rule(strokeWidth=3, color=COLOURS[0]).encode(
        x=alt.X("low", type="quantitative", title="above zero: as the paper says"), x2=alt.X2("high")
    )
    tooltip = [alt.Tooltip(field, type="nominal") for field in ("name", "value", "low", "high")]
    point = base.mark_point(filled=True, size=70, color=COLOURS[0]).encode(
        x=alt.X("value", type="quantitative"), tooltip=tooltip
    )
    said = "; ".join(f"{row['name']} {row['value']:+.3g} [{row['low']:+.3g}, {row['high']:+.3g}]" for row in rows)
    return chart(alt.layer(zero, interval, point), "Evidence, with 95 % intervals", said, 30 + 28 * len(rows))


def curves(rows: Sequence[Row], y: str, title: str, x: str = "update") -> Chart:
    """rows: x, y, series."""
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    legend = LEGEND if len(names) > 1 else None
    drawn = (
        alt.Chart(values(rows))
        .mark_line(point={"size": 12} if len(rows) < 60 * len(names) else False)
        .encode(
            x=alt.X("x", type="quantitative", title=x),
            y=alt.Y("y", type="quantitative", title=y, scale=alt.Scale(zero=False), axis=alt.Axis(format="~r")),
            color=alt.Color("series", type="nominal", sort=None, scale=alt.Scale(range=PALETTE), legend=legend),
            tooltip=[alt.Tooltip(field, type="nominal") for field in ("series", "x", "y")],
        )
    )
    ends = {row["series"]: row["y"] for row in rows}
    said = "; ".join(f"{name} ends at {value:.4g}" for name, value in ends.items())
    return chart(drawn, title, said)


def by_group(rows: Sequence[Row], y: str, title: str, x: str) -> Chart:
    """rows: group, y, series: lines over named groups, in the order of the data."""
    drawn = (
        alt.Chart(values(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("group", type="nominal", sort=None, title=x, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("y", type="quantitative", title=y, scale=alt.Scale(zero=False)),
            color=alt.Color(
                "series",
                type="nominal",
                sort=None,
                scale=alt.Scale(range=PALETTE),
                legend=LEGEND,
            ),
            tooltip=[alt.Tooltip(field, type="nominal") for field in ("series", "group", "y", "of")],
        )
    )
    return chart(drawn, title, f"{y} of each chosen system by {x}")


def heat(rows: Sequence[Row], x: str, y: str, title: str, size: tuple[int, int]) -> Chart:
    """rows: x, y (as they are named on the axes, numbered to keep them apart), weight. size: columns, rows."""
    drawn = (
        alt.Chart(values(rows))
        .mark_rect()
        .encode(
            x=alt.X("x", type="ordinal", sort=None, title=x, axis=alt.Axis(labelAngle=-60, labelLimit=90)),
            y=alt.Y("y", type="ordinal", sort=None, title=y, axis=alt.Axis(labelLimit=110)),
            color=alt.Color("weight", type="quantitative", scale=alt.Scale(scheme="blues"), title="weight"),
            tooltip=[alt.Tooltip(field, type="nominal") for field in ("x", "y", "weight")],
        )
    )
    return chart(drawn, title, f"{size[1]} rows of {y} by {size[0]} columns of {x}", 60 + 14 * size[1])


def thinned(rows: list[Row]) -> list[Row]:
    """Every n-th of many points, the last among them."""
    step = -(-len(rows) // MOST_POINTS)
    return rows[::-step][::-1] if step > 1 else rows
