"""Groups: a forest of the worst, and the cumulative curve of the one that is picked."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.groups.audit_result import Audit
from calibrant.groups.group import LEVEL
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas
from calibrant.report.palette import LIGHT

if TYPE_CHECKING:
    from calibrant.groups.group import Group

FOREST = "Worst groups"
FOREST_CAPTION = (
    "Mean outcome minus mean prediction of each group, with the 95% interval of each by itself: left of the "
    "line predictions are too high on average, right of it too low. The groups stand in the order of z, "
    "which also sees errors that cancel on average. Orange diamonds are off beyond chance, even though many "
    "groups were looked at."
)
FINDINGS = "off beyond chance", "within chance"
MOST = 20  # groups in the forest
LABEL = 26  # characters per line of a group's label


@drawing
def forest(audit: Audit) -> Spec:
    """Draw the worst groups of an audit, the worst on top."""
    canvas = Canvas()
    groups = audit.groups[:MOST]
    columns = _columns(groups)
    lines = max(label.count("\n") + 1 for label in columns["label"])
    shapes = {"domain": list(FINDINGS), "range": ["diamond", "circle"]}
    shades = {"domain": list(FINDINGS), "range": [LIGHT["second"], LIGHT["model"]]}
    tips = ["group:N", field("gap:Q", format="+.4f"), field("records:Q", format=",d")]
    tips += [field("z:Q", format=".2f"), field("p-value:Q", format=".3g")]
    wrapped = {"labelLimit": 170, "labelExpr": "split(datum.label, '\\n')", "labelBaseline": "middle"}
    base = canvas.on(columns).encode(
        y=field("label:N", scale={"domain": columns["label"]}, title=None, axis=wrapped),
        color=field("finding:N", scale=shades, legend={"direction": "vertical"}),
        tooltip=tips,
    )
    layers = [
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(x="zero:Q"),
        base.mark("rule", strokeWidth=2).encode(
            x=field("low:Q", title=["mean outcome", "minus prediction"]), x2="high"
        ),
        base.mark("point", size=70, filled=True, opacity=1).encode(
            x="gap:Q", shape=field("finding:N", scale=shapes, legend={"direction": "vertical"})
        ),
    ]
    caption = FOREST_CAPTION
    if len(audit.groups) > MOST:
        caption += f" Shown are the first {MOST} of {len(audit.groups):,}; the table has more."
    return canvas.finished(layers, FOREST, caption, height=40 + (10 + 14 * lines) * len(groups))


def _columns(groups: Sequence[Group]) -> dict[str, list[Any]]:
    return {
        "group": [group.rule for group in groups],
        "label": [wrapped_rule(group.rule) for group in groups],
        "gap": [group.difference for group in groups],
        "low": [group.limits[0] for group in groups],
        "high": [group.limits[1] for group in groups],
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
