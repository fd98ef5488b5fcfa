"""What a learned auditor found: the groups that gave the predictions away, and the columns behind them."""

from __future__ import annotations

from typing import Any

from calibrant.groups.distinguisher import Distinguisher
from calibrant.report.charts.groups import wrapped_rule
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas
from calibrant.report.palette import LIGHT

GIVEAWAYS = "What gave the predictions away"
GIVEAWAYS_CAPTION = (
    "Mean outcome minus mean prediction in groups that describe what the auditor learnt, those that carry "
    "most of the advantage on top: left of the line predictions are too high on average, right of it too "
    "low. The groups were chosen with the outcomes in view: they describe, and the p-value alone tests."
)
CARRIERS = "Which columns carried it"
CARRIERS_CAPTION = (
    "The share of the advantage that is lost when a column is shuffled among the records, so that it says "
    "nothing any more."
)
SIDES = "predictions too high", "predictions too low"
MOST = 12  # bars


@drawing
def giveaways(given: Distinguisher) -> Spec:
    """Draw the groups that describe the auditor, by how far their predictions are off."""
    canvas = Canvas()
    rules = given.rules[:MOST]
    labels = [wrapped_rule(rule.rule) for rule in rules]
    columns: dict[str, list[Any]] = {
        "group": [rule.rule for rule in rules],
        "label": labels,
        "gap": [rule.gap for rule in rules],
        "records": [rule.size for rule in rules],
        "carried": [rule.carried for rule in rules],
        "side": [SIDES[rule.gap > 0] for rule in rules],
    }
    tips = ["group:N", field("gap:Q", format="+.4f"), field("records:Q", format=",d")]
    tips.append(field("carried:Q", format="+.5f"))
    shades = {"domain": list(SIDES), "range": [LIGHT["second"], LIGHT["model"]]}
    axis = {"labelLimit": 170, "labelExpr": "split(datum.label, '\\n')", "labelBaseline": "middle"}
    bars = canvas.on(columns).mark("bar", size=12).encode(
        x=field("gap:Q", title="mean outcome − prediction"),
        y=field("label:N", scale={"domain": labels}, title=None, axis=axis),
        color=field("side:N", scale=shades, legend={"symbolType": "square"}),
        tooltip=tips,
    )  # fmt: skip
    zero = canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(x="zero:Q")
    lines = max((label.count("\n") + 1 for label in labels), default=1)
    height = 40 + (10 + 14 * lines) * len(rules)
    return canvas.finished([bars, zero], GIVEAWAYS, GIVEAWAYS_CAPTION, height=height)


@drawing
def carriers(given: Distinguisher) -> Spec:
    """Draw each column's share of the advantage."""
    canvas = Canvas()
    shown = list(given.importance.items())[:MOST]
    names = [name for name, _ in shown]
    data = canvas.on({"column": names, "share": [share for _, share in shown]})
    bars = data.mark("bar", size=12, color=LIGHT["model"]).encode(
        x=field("share:Q", title="share of the advantage", axis={"format": "%"}),
        y=field("column:N", scale={"domain": names}, title=None),
        tooltip=["column:N", field("share:Q", format=".1%")],
    )  # fmt: skip
    return canvas.finished([bars], CARRIERS, CARRIERS_CAPTION, height=40 + 24 * len(names))
