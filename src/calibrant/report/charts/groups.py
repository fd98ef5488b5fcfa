"""Groups: a forest of the worst, and the cumulative curve of the one that is picked."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.evaluation.coarse import thinned
from calibrant.groups.result import Audit
from calibrant.groups.rules import EVERYONE
from calibrant.report.charts.cumulative import HALF_WIDTH, UP
from calibrant.report.charts.style import Canvas, Chart, altair
from calibrant.report.palette import LIGHT

if TYPE_CHECKING:
    from calibrant.groups.group import Group

FOREST = "Worst groups"
FOREST_CAPTION = (
    "Mean outcome minus mean prediction of each group, with 95% intervals: left of the line predictions are "
    "too high on average, right of it too low. The groups stand in the order of z, which also sees errors "
    "that cancel on average. Orange diamonds are off beyond chance, even though many groups were looked at."
)
PICKED = "One group at a time"
PICKED_CAPTION = (
    "Cumulative differences of the group chosen in the list (or clicked in the chart of groups): where the "
    "curve climbs its predictions are too low, where it falls too high. A calibrated group stays inside the "
    "grey band throughout with probability 95%."
)
FINDINGS = "off beyond chance", "within chance"
MOST = 20  # groups in the forest
LABEL = 36  # characters per line of a group's label
LEVEL = 0.05  # family-wise


def forest(audit: Audit) -> Chart:
    """Draw the worst groups of an audit, the worst on top."""
    alt, canvas = altair(), Canvas()
    groups = audit.groups[:MOST]
    columns = _columns(groups)
    lines = max(label.count("\n") + 1 for label in columns["label"])
    shapes = alt.Scale(domain=FINDINGS, range=["diamond", "circle"])
    shades = alt.Scale(domain=FINDINGS, range=[LIGHT["second"], LIGHT["model"]])
    tips = ["group:N", alt.Tooltip("gap:Q", format="+.4f"), alt.Tooltip("records:Q", format=",d")]
    tips += [alt.Tooltip("z:Q", format=".2f"), alt.Tooltip("p-value:Q", format=".3g")]
    wrapped = alt.Axis(labelLimit=230, labelExpr="split(datum.label, '\\n')", labelBaseline="middle")
    base = canvas.on(columns).encode(
        y=alt.Y("label:N", sort=columns["label"], title=None, axis=wrapped),
        color=alt.Color("finding:N", scale=shades, legend=alt.Legend(direction="vertical")),
        tooltip=tips,
    )
    layers = [
        canvas.on({"zero": [0.0]}).mark_rule(color=LIGHT["quiet"]).encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title=["mean outcome", "minus prediction"]), x2="high:Q"
        ),
        base.mark_point(size=70, filled=True, opacity=1).encode(
            x="gap:Q", shape=alt.Shape("finding:N", scale=shapes, legend=alt.Legend(direction="vertical"))
        ),
    ]
    return canvas.finished(layers, FOREST, FOREST_CAPTION, height=40 + (10 + 14 * lines) * len(groups))


def _columns(groups: Sequence[Group]) -> dict[str, list[Any]]:
    gaps = [group.mean_outcome - group.mean_prediction for group in groups]
    half = [1.96 * group.sigma for group in groups]
    return {
        "group": [group.rule for group in groups],
        "label": [wrapped_rule(group.rule) for group in groups],
        "gap": gaps,
        "low": [gap - h for gap, h in zip(gaps, half, strict=True)],
        "high": [gap + h for gap, h in zip(gaps, half, strict=True)],
        "records": [group.size for group in groups],
        "z": [group.z for group in groups],
        "p-value": [group.pvalue for group in groups],
        "finding": [
            FINDINGS[0] if group.pvalue is not None and group.pvalue <= LEVEL else FINDINGS[1]
            for group in groups
        ],
    }


def wrapped_rule(rule: str) -> str:
    """Break a rule into lines that fit beside the chart: one condition per line where it can be."""
    conditions = rule.split(" and ")
    parts = [part if k == 0 else f"and {part}" for k, part in enumerate(conditions)]
    return "\n".join(line for part in parts for line in textwrap.wrap(part, LABEL) or [part])


def group_curves(audit: Audit) -> Chart:
    """Draw the cumulative curve of one of the worst groups, chosen from a list."""
    alt, canvas = altair(), Canvas()
    sigma = {group.rule: group.sigma for group in audit.groups}
    names = [curve.rule for curve in audit.curves]
    first = next((name for name in names if name != EVERYONE), names[0])
    picker = alt.param(name="group", value=first, bind=alt.binding_select(options=names, name="Group "))
    chosen = "datum.group === group"
    kept = [(curve, thinned(curve.cumulative, 160)) for curve in audit.curves]
    lines = canvas.on(
        {
            "group": [curve.rule for curve, at in kept for _ in at],
            "share": np.concatenate([curve.share[at] for curve, at in kept]),
            "prediction": np.concatenate([curve.prediction[at] for curve, at in kept]),
            "sum": np.concatenate([curve.cumulative[at] for curve, at in kept]),
        }
    ).transform_filter(chosen)
    high = [HALF_WIDTH * sigma[name] for name in names]
    band = canvas.on(
        {"group": names, "from": [0.0] * len(names), "to": [1.0] * len(names), "low": [-h for h in high],
         "high": high}
    ).transform_filter(chosen)  # fmt: skip
    x = alt.X("share:Q", title="share of the group, lowest predictions first", axis=alt.Axis(format="%"))
    tips = [alt.Tooltip("prediction:Q", format=".4f"), alt.Tooltip("sum:Q", format="+.5f")]
    layers = [
        band.mark_rect(color=LIGHT["band"], opacity=0.5)
        .encode(x="from:Q", x2="to:Q", y="low:Q", y2="high:Q")
        .add_params(picker),
        canvas.on({"zero": [0.0]}).mark_rule(color=LIGHT["quiet"]).encode(y="zero:Q"),
        lines.mark_line(color=LIGHT["second"], strokeWidth=2).encode(x=x, y=alt.Y("sum:Q", title=UP)),
        lines.mark_rule(strokeWidth=5, opacity=0).encode(x="share:Q", tooltip=tips),
    ]
    return canvas.finished(layers, PICKED, PICKED_CAPTION, height=340)
