"""Decision curves: the net benefit of models at every threshold, beside treating all and treating none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.inference.benefit_curves import EVERYBODY, NOBODY, Benefit, NetBenefits
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas
from calibrant.report.palette import LIGHT

TITLE = "Net benefit"
CAPTION = (
    "Net true positives per 1,000 records if everybody is treated whose prediction is at or above the "
    "threshold; a false positive counts for threshold / (1 - threshold). The highest curve serves best at "
    "that threshold. Bands are intervals for one threshold at a time; to treat none is the line at 0."
)
MOST = 3  # as many colours and dash patterns as stay apart on paper


@drawing
def decision_curves(given: NetBenefits) -> Spec:
    """Draw the decision curves of up to three models with their intervals."""
    if len(given.models) > MOST:
        got = f"got {len(given.models)}"
        raise InvalidInputError(sentence("models", f"must be {MOST} at most to be drawn", got))
    canvas = Canvas()
    names = [*given.models, EVERYBODY, NOBODY]
    nothing = np.zeros(len(given.thresholds))
    curves = {**given.models, EVERYBODY: given.treat_all, NOBODY: Benefit(nothing, nothing, nothing)}
    count = len(given.models)
    shades = [*(LIGHT[name] for name in ("model", "second", "third")[:count]), LIGHT["quiet"], LIGHT["quiet"]]
    dashes = [*([1, 0], [6, 3], [2, 2])[:count], [4, 4], [1, 0]]
    frame = {"nice": False, "domain": _frame(given)}
    order = np.argsort(given.thresholds)
    columns: dict[str, Iterable[Any]] = {
        "model": [name for name in names for _ in order],
        "threshold": np.tile(given.thresholds[order], len(names)),
        "benefit": np.concatenate([1000 * curves[name].value[order] for name in names]),
        "low": np.concatenate([1000 * curves[name].lower[order] for name in names]),
        "high": np.concatenate([1000 * curves[name].upper[order] for name in names]),
    }
    solid = {"symbolOpacity": 1}
    base = canvas.on(columns).encode(
        x=field("threshold:Q", title="threshold", scale={"nice": False}),
        color=field("model:N", scale={"domain": names, "range": shades}, legend=solid),
    )
    y = field("benefit:Q", title="net true positives per 1,000", scale=frame)
    dash = field("model:N", scale={"domain": names, "range": dashes})
    tips = ["model:N", field("threshold:Q", format=".3g")]
    tips += [field(f"{name}:Q", format=".1f") for name in ("benefit", "low", "high")]
    layers = [
        base.mark("area", opacity=0.15, clip=True).encode(y=field("low:Q", scale=frame), y2="high"),
        base.mark("line", strokeWidth=2, clip=True).encode(y=y, strokeDash=dash, tooltip=tips),
    ]
    return canvas.finished(layers, TITLE, CAPTION, height=340, wide=True)


def _frame(given: NetBenefits) -> list[float]:
    """Return the range that is drawn: treating all falls without end, and nobody does what harms."""
    highest = 1000 * max(float(one.upper.max()) for one in (*given.models.values(), given.treat_all))
    highest = max(highest, 4.0)
    return [-highest / 4, 1.05 * highest]
