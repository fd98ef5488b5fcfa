"""Curves of the worst groups: what was predicted and what happened, summed along the predictions."""

from __future__ import annotations

import numpy as np

from calibrant.evaluation.coarse import points_to_draw
from calibrant.groups.audit_result import Audit
from calibrant.groups.rules import EVERYONE
from calibrant.report.charts.cumulative import HALF_WIDTH, UP
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas
from calibrant.report.palette import LIGHT

PICKED = "One group at a time"
PICKED_CAPTION = (
    "Cumulative differences of the group chosen in the list (or clicked in the chart of groups): where the "
    "curve climbs its predictions are too low, where it falls too high. A calibrated group stays inside the "
    "grey band throughout with probability 95%. The band is for this group alone: among many groups some "
    "leave theirs by chance. Who is off is decided by the p-values of the table, which allow for all groups."
)


@drawing
def group_curves(audit: Audit) -> Spec:
    """Draw the cumulative curve of one of the worst groups, chosen from a list."""
    canvas = Canvas()
    sigma = {group.rule: group.sigma for group in audit.groups}
    names = [curve.rule for curve in audit.curves]
    first = next((name for name in names if name != EVERYONE), names[0])
    choice = {"input": "select", "options": names, "name": "Group "}
    chosen = "datum.group === group"
    kept = [(curve, points_to_draw(curve.cumulative, 160)) for curve in audit.curves]
    lines = canvas.on(
        {
            "group": [curve.rule for curve, at in kept for _ in at],
            "share": np.concatenate([curve.share[at] for curve, at in kept]),
            "prediction": np.concatenate([curve.prediction[at] for curve, at in kept]),
            "sum": np.concatenate([curve.cumulative[at] for curve, at in kept]),
        }
    ).where(chosen)
    high = [HALF_WIDTH * sigma[name] for name in names]
    band = canvas.on(
        {"group": names, "from": [0.0] * len(names), "to": [1.0] * len(names), "low": [-h for h in high],
         "high": high}
    ).where(chosen)  # fmt: skip
    x = field("share:Q", title="share of the group, lowest predictions first", axis={"format": "%"})
    tips = [field("prediction:Q", format=".4f"), field("sum:Q", format="+.5f")]
    layers = [
        band.mark("rect", color=LIGHT["band"], opacity=0.5).encode(x="from:Q", x2="to", y="low:Q", y2="high"),
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(y="zero:Q"),
        lines.mark("line", color=LIGHT["second"], strokeWidth=2).encode(x=x, y=field("sum:Q", title=UP)),
        lines.mark("rule", strokeWidth=5, opacity=0).encode(x="share:Q", tooltip=tips),
    ]
    drawn = canvas.finished(layers, PICKED, PICKED_CAPTION, height=340)
    return {**drawn, "params": [{"name": "group", "value": first, "bind": choice}]}
