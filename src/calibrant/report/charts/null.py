"""Null histogram: what chance alone gives, and where the data stands."""

from __future__ import annotations

import numpy as np

from calibrant.numerals import at_floor, pvalue_text, short
from calibrant.report.charts.style import Canvas, Chart, altair
from calibrant.report.palette import LIGHT
from calibrant.results import Array

TITLE = "What chance alone gives"


def null_histogram(draws: Array, observed: float, pvalue: float, measure: str) -> Chart:
    """Draw the values of a measure on simulated calibrated outcomes, with the observed value marked."""
    alt, canvas = altair(), Canvas()
    finite = draws[np.isfinite(draws)]
    low, high = float(min(finite.min(), observed)), float(max(finite.max(), observed))
    edges = np.linspace(low, high if high > low else low + 1e-9, 41)
    counts, _ = np.histogram(finite, edges)
    shown = counts > 0
    bars = canvas.on({"from": edges[:-1][shown], "to": edges[1:][shown], "draws": counts[shown]})
    mark = canvas.on({"observed": [observed], "label": [f"these data: {short(observed)}"]})
    side = "right" if observed > (low + high) / 2 else "left"
    x = alt.X("from:Q", title=f"{measure} error", scale=alt.Scale(zero=False))
    y = alt.Y("draws:Q", title="simulated data sets")
    tips = [
        alt.Tooltip("from:Q", format=".4g"),
        alt.Tooltip("to:Q", format=".4g"),
        alt.Tooltip("draws:Q", title="data sets"),
    ]
    layers = [
        bars.mark_bar(color=LIGHT["density"]).encode(x=x, x2="to:Q", y=y, y2=alt.datum(0), tooltip=tips),
        mark.mark_rule(color=LIGHT["second"], strokeWidth=2.5).encode(x="observed:Q"),
        mark.mark_text(
            color=LIGHT["ink"], align=side, dx=-6 if side == "right" else 6, baseline="top", fontSize=12
        ).encode(x="observed:Q", y=alt.value(4), text="label:N"),
    ]
    caption = (
        f"The {measure} calibration error of {len(draws):,} simulated data sets that have these predictions "
        "and outcomes drawn from them, so that they are calibrated. The line is the error of these data; "
        f"chance reaches it with probability {pvalue_text(pvalue, floor=at_floor(pvalue, len(draws)))}."
    )
    return canvas.finished(layers, TITLE, caption, height=240)
