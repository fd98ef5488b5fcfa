"""Charts of groups: the worst of an audit, one at a time, in order, and what a learned auditor found."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.groups.audit_result import Audit
from calibrant.groups.distinguisher import Distinguisher
from calibrant.groups.rules import EVERYONE
from calibrant.report.charts.canvas import LIGHT, Canvas, Layer, Spec, columns, drawing, field, points_to_draw
from calibrant.report.charts.evidence import HALF_WIDTH, UP

if TYPE_CHECKING:
    from calibrant.groups.compare_groups_result import GroupComparison, GroupLevel


FOREST_CAPTION = (
    "With 95% intervals for each group on its own, ordered by z: predictions are too high left of the line, "
    "too low right of it."
)
FINDINGS = "off beyond chance", "within chance", "undecided"
MAX_GROUPS_SHOWN = 20  # groups in the forest
LABEL = 26  # characters per line of a group's label
WRAPPED = {"labelLimit": 170, "labelExpr": "split(datum.label, '\\n')", "labelBaseline": "middle"}


@drawing
def forest(audit: Audit, *, shown: int = MAX_GROUPS_SHOWN) -> Spec:
    """Draw the worst groups of an audit, the worst on top."""
    canvas = Canvas()
    groups = audit.groups[:shown]
    known = {"group": "rule", "gap": "difference", "records": "size", "z": "z", "p-value": "pvalue"}
    data = {
        **columns(groups, **known),
        "label": [wrapped_rule(group.rule) for group in groups],
        "low": [group.limits[0] for group in groups],
        "high": [group.limits[1] for group in groups],
        "finding": [FINDINGS[2 if group.undecided else 0 if group.is_wrong() else 1] for group in groups],
    }
    lines = max(label.count("\n") + 1 for label in data["label"])
    kinds = list(FINDINGS if FINDINGS[2] in data["finding"] else FINDINGS[:2])
    shapes = {"domain": kinds, "range": ["diamond", "circle", "square"][: len(kinds)]}
    shades = {"domain": kinds, "range": [LIGHT["second"], LIGHT["model"], LIGHT["quiet"]][: len(kinds)]}
    tips = {"gap": "+.4f", "records": ",d", "z": ".2f", "p-value": ".3g"}
    base = canvas.on(data).encode(
        y=field("label:N", scale={"domain": data["label"]}, title=None, axis=WRAPPED),
        color=field("finding:N", scale=shades, legend={"direction": "vertical"}),
    ).tips(tips, "group:N")  # fmt: skip
    layers = [
        canvas.zero_line("x"),
        base.mark("rule", strokeWidth=2).encode(x=field("low:Q", title="observed − predicted"), x2="high"),
        base.mark("point", size=70, filled=True, opacity=1).encode(
            x="gap:Q", shape=field("finding:N", scale=shapes, legend={"direction": "vertical"})
        ),
    ]
    caption = FOREST_CAPTION
    if len(audit.groups) > shown:
        caption += f" The first {shown} of {len(audit.groups):,}."
    height = 24 + (2 + 13 * lines) * len(groups)
    return canvas.finished(layers, "Worst groups", caption, height=height, fixed=True)


def wrapped_rule(rule: str) -> str:
    """Break a rule into lines that fit next to the chart: one condition per line where it can be."""
    conditions = rule.split(" and ")
    parts = [part if k == 0 else f"and {part}" for k, part in enumerate(conditions)]
    return "\n".join(line for part in parts for line in textwrap.wrap(part, LABEL) or [part])


PICKED_CAPTION = (
    "Where the curve climbs, predictions of this group are too low; where it falls, too high. A calibrated "
    "group stays in the gray band with probability 95%; among many groups some leave it by chance."
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
    ends = {"from": [0.0] * len(names), "to": [1.0] * len(names), "low": [-h for h in high], "high": high}
    band = canvas.on({"group": names, **ends}).where(chosen)
    x = field("share:Q", title="share of the group, lowest predictions first", axis={"format": "%"})
    tips = {"prediction": ".4f", "sum": "+.5f"}
    layers = [
        band.mark("rect", color=LIGHT["band"], opacity=0.5).encode(x="from:Q", x2="to", y="low:Q", y2="high"),
        canvas.zero_line(),
        lines.mark("line", color=LIGHT["second"], strokeWidth=2).encode(x=x, y=field("sum:Q", title=UP)),
        lines.mark("rule", strokeWidth=5, opacity=0).encode(x="share:Q").tips(tips),
    ]
    drawn = canvas.finished(layers, "One group at a time", PICKED_CAPTION, height=340)
    return {**drawn, "params": [{"name": "group", "value": first, "bind": choice}]}


TITLE = "Groups in their order"
POINTS_SHOWN = dict.fromkeys(("difference", "low", "high"), "+.2f")
CAPTION = (
    "Observed minus predicted for each value of “{column}”, with its {confidence:.0%} interval: predictions "
    "are too low above the line, too high below it. Some intervals miss the line by chance; {trend}."
)


@drawing
def groups_in_order(compared: GroupComparison) -> Spec:
    """Draw the difference of every group with its interval, in the order of the column."""
    canvas = Canvas()
    groups = compared.groups
    names = [group.name for group in groups]
    base = canvas.on({**_in_points(groups), **columns(groups, records="n")}).encode(
        x=field("group:N", scale={"domain": names}, title=compared.column, axis={"labelOverlap": True}),
        description="group:N",
    ).tips({**POINTS_SHOWN, "records": ",d"}, "group:N")  # fmt: skip
    layers = _with_intervals(canvas, base, 70, color=LIGHT["model"])
    caption = CAPTION.format(
        column=compared.column, confidence=compared.confidence, trend=compared.trend_phrase()
    )
    return canvas.finished(layers, TITLE, caption, height=300)


def _in_points(groups: Sequence[GroupLevel]) -> dict[str, list[Any]]:
    """Return the name of each group, and its difference with the interval, in points."""
    shares = columns(groups, difference="gap", low="lower", high="upper")
    points = {name: [100 * share for share in column] for name, column in shares.items()}
    return {**columns(groups, group="name"), **points}


def _with_intervals(canvas: Canvas, base: Layer, size: int, **look: Any) -> list[Layer]:
    up = field("low:Q", title="observed − predicted, points")
    return [
        canvas.zero_line(),
        base.mark("rule", **look, strokeWidth=2).encode(y=up, y2="high"),
        base.mark("point", **look, filled=True, opacity=1, size=size).encode(y="difference:Q"),
    ]


WITHIN_CAPTION = (
    "Observed minus predicted for “{column}” from {first} (left) to {last} (right), within each value of "
    "“{within}”, with {confidence:.0%} intervals for each point on its own. The p-values of the trends allow "
    "for all of them."
)
TREND = "trend beyond chance", "no trend beyond chance"
MAX_WITHIN_SHOWN = 12  # values side by side


@drawing
def groups_within(compared: GroupComparison) -> Spec:
    """Draw the groups in their order, side by side for each value of a second column."""
    canvas = Canvas()
    clearest = sorted(compared.within, key=lambda part: (part.trend_adjusted or 1.0, part.adjusted))
    shown = [part for part in compared.within if part in clearest[:MAX_WITHIN_SHOWN]]
    level = 1 - compared.confidence + 1e-12
    found = [(part, group) for part in shown for group in part.compared.groups]
    data = _in_points([group for _, group in found])
    verdicts = [TREND[0 if (part.trend_adjusted or 1.0) <= level else 1] for part, _ in found]
    shades = {"domain": list(TREND), "range": [LIGHT["second"], LIGHT["model"]]}
    base = canvas.on({**data, "within": [part.name for part, _ in found], "trend": verdicts}).encode(
        x=field(
            "within:N",
            scale={"domain": [part.name for part in shown]},
            title=compared.within_column,
            axis={"labelAngle": 0, "labelOverlap": True},
        ),
        xOffset=field("group:N", scale={"domain": [group.name for group in compared.groups]}),
        color=field("trend:N", scale=shades),
        description="group:N",
    ).tips(POINTS_SHOWN, "within:N", "group:N")  # fmt: skip
    layers = _with_intervals(canvas, base, 40)
    caption = WITHIN_CAPTION.format(
        column=compared.column, within=compared.within_column, confidence=compared.confidence,
        first=compared.groups[0].name, last=compared.groups[-1].name,
    )  # fmt: skip
    if len(shown) < len(compared.within):
        caption += f" The {len(shown)} of {len(compared.within):,} with the smallest p-values."
    return canvas.finished(layers, TITLE, caption, height=300, wide=True)


GIVEAWAYS_CAPTION = (
    "Observed minus predicted in groups that describe what the auditor learned: predictions are too high "
    "left of the line, too low right of it. The groups were chosen with the outcomes in view, so they "
    "describe the finding; only the p-value tests it."
)
SIDES = "predictions too high", "predictions too low"
MAX_RULES_SHOWN = 12  # bars


@drawing
def giveaways(given: Distinguisher) -> Spec:
    """Draw the groups that describe the auditor, by how far their predictions are off."""
    canvas = Canvas()
    rules = given.rules[:MAX_RULES_SHOWN]
    labels = [wrapped_rule(rule.rule) for rule in rules]
    known = columns(rules, group="rule", gap="gap", records="size", carried="carried")
    sides = [SIDES[rule.gap > 0] for rule in rules]
    shades = {"domain": list(SIDES), "range": [LIGHT["second"], LIGHT["model"]]}
    bars = canvas.on({**known, "label": labels, "side": sides}).mark("bar", size=12).encode(
        x=field("gap:Q", title="observed − predicted"),
        y=field("label:N", scale={"domain": labels}, title=None, axis=WRAPPED),
        color=field("side:N", scale=shades, legend={"symbolType": "square"}),
    ).tips({"gap": "+.4f", "records": ",d", "carried": "+.5f"}, "group:N")  # fmt: skip
    lines = max((label.count("\n") + 1 for label in labels), default=1)
    layers, height = [bars, canvas.zero_line("x")], 40 + (10 + 14 * lines) * len(rules)
    return canvas.finished(layers, "What gave the predictions away", GIVEAWAYS_CAPTION, height=height)


@drawing
def carriers(given: Distinguisher) -> Spec:
    """Draw each column's share of the advantage."""
    canvas = Canvas()
    shown = list(given.importance.items())[:MAX_RULES_SHOWN]
    names = [name for name, _ in shown]
    data = canvas.on({"column": names, "share": [share for _, share in shown]})
    bars = data.mark("bar", size=12, color=LIGHT["model"]).encode(
        x=field("share:Q", title="share of the advantage", axis={"format": "%"}),
        y=field("column:N", scale={"domain": names}, title=None),
    ).tips({"share": ".1%"}, "column:N")  # fmt: skip
    caption = "The share of the advantage that is lost when a column is shuffled among the records."
    return canvas.finished([bars], "Which columns carried it", caption, height=40 + 24 * len(names))
