"""Null histogram: what chance alone gives, and where the data stands."""

from __future__ import annotations

import numpy as np

from calibrant.numerals import at_floor, pvalue_text, short
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas
from calibrant.report.palette import LIGHT
from calibrant.results import Array

TITLE = "What chance alone gives"


@drawing
def null_histogram(draws: Array, observed: float, pvalue: float, measure: str) -> Spec:
    """Draw the values of a measure on simulated calibrated outcomes, with the observed value marked."""
    canvas = Canvas()
    finite = draws[np.isfinite(draws)]
    low, high = float(min(finite.min(), observed)), float(max(finite.max(), observed))
    edges = np.linspace(low, high if high > low else low + 1e-9, 41)
    counts, _ = np.histogram(finite, edges)
    shown = counts > 0
    bars = canvas.on({"from": edges[:-1][shown], "to": edges[1:][shown], "draws": counts[shown]})
    mark = canvas.on({"observed": [observed], "label": [f"these data: {short(observed)}"]})
    right = observed > (low + high) / 2
    side = {"align": "right", "dx": -6} if right else {"align": "left", "dx": 6}
    x = field("from:Q", title=f"{measure} error", scale={"zero": False})
    y = field("draws:Q", title="simulated data sets")
    tips = [
        field("from:Q", format=".4g"),
        field("to:Q", format=".4g"),
        field("draws:Q", title="data sets"),
    ]
    layers = [
        bars.mark("bar", color=LIGHT["density"]).encode(x=x, x2="to", y=y, y2={"datum": 0}, tooltip=tips),
        mark.mark("rule", color=LIGHT["second"], strokeWidth=2.5).encode(x="observed:Q"),
        mark.mark("text", color=LIGHT["ink"], baseline="top", fontSize=12, **side).encode(
            x="observed:Q", y={"value": 4}, text="label:N"
        ),
    ]
    caption = (
        f"The {measure} calibration error of {len(draws):,} simulated data sets that have these predictions "
        "and outcomes drawn from them, so that they are calibrated. The line is the error of these data; "
        f"chance reaches it with probability {pvalue_text(pvalue, floor=at_floor(pvalue, len(draws)))}."
    )
    return canvas.finished(layers, TITLE, caption, height=240)
