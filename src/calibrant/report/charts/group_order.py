"""Groups that have an order, seasons say: by how much each is off, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas
from calibrant.report.palette import LIGHT

if TYPE_CHECKING:
    from calibrant.groups.group_comparison import GroupComparison

TITLE = "Groups in their order"
CAPTION = (
    "Mean outcome minus mean prediction of each value of “{column}”, with the {confidence:.0%} interval of "
    "each by itself: above the line predictions are too low on average, below it too high. Among many groups "
    "some leave out the line by chance; {trend}."
)


@drawing
def groups_in_order(compared: GroupComparison) -> Spec:
    """Draw the difference of every group with its interval, in the order of the column."""
    canvas = Canvas()
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
        x=field("group:N", scale={"domain": names}, title=compared.column, axis={"labelOverlap": True}),
        description="group:N",
        tooltip=[
            "group:N",
            field("difference:Q", format="+.2f"),
            field("low:Q", format="+.2f"),
            field("high:Q", format="+.2f"),
            field("records:Q", format=",d"),
        ],
    )
    up = field("low:Q", title="happened minus predicted, points")
    layers = [
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(y="zero:Q"),
        base.mark("rule", color=LIGHT["model"], strokeWidth=2).encode(y=up, y2="high"),
        base.mark("point", color=LIGHT["model"], filled=True, opacity=1, size=70).encode(y="difference:Q"),
    ]
    caption = CAPTION.format(
        column=compared.column, confidence=compared.confidence, trend=compared.trend_phrase()
    )
    return canvas.finished(layers, TITLE, caption, height=300)
