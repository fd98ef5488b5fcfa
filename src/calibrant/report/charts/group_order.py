"""Groups that have an order, seasons say: by how much each is off, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.report.charts.style import Canvas, Chart, altair
from calibrant.report.palette import LIGHT

if TYPE_CHECKING:
    from calibrant.groups.group_comparison import GroupComparison

TITLE = "Groups in their order"
CAPTION = (
    "Mean outcome minus mean prediction of each value of “{column}”, with the {confidence:.0%} interval of "
    "each by itself: above the line predictions are too low on average, below it too high. Among many groups "
    "some leave out the line by chance; {trend}."
)


def groups_in_order(compared: GroupComparison) -> Chart:
    """Draw the difference of every group with its interval, in the order of the column."""
    alt, canvas = altair(), Canvas()
    groups = compared.groups
    names = [group.name for group in groups]
    base = canvas.on(
        {
            "group": names,
            "difference": [100 * group.gap for group in groups],
            "low": [100 * group.lower for group in groups],
            "high": [100 * group.upper for group in groups],
            "records": [group.n for group in groups],
        }
    ).encode(
        x=alt.X("group:N", sort=names, title=compared.column, axis=alt.Axis(labelOverlap=True)),
        tooltip=[
            "group:N",
            alt.Tooltip("difference:Q", format="+.2f"),
            alt.Tooltip("low:Q", format="+.2f"),
            alt.Tooltip("high:Q", format="+.2f"),
            alt.Tooltip("records:Q", format=",d"),
        ],
    )
    up = alt.Y("low:Q", title="happened minus predicted, points")
    layers = [
        canvas.on({"zero": [0.0]}).mark_rule(color=LIGHT["quiet"]).encode(y="zero:Q"),
        base.mark_rule(color=LIGHT["model"], strokeWidth=2).encode(y=up, y2="high:Q"),
        base.mark_point(color=LIGHT["model"], filled=True, opacity=1, size=70).encode(y="difference:Q"),
    ]
    caption = CAPTION.format(
        column=compared.column, confidence=compared.confidence, trend=compared.trend_phrase()
    )
    return canvas.finished(layers, TITLE, caption, height=300)
