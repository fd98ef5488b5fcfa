"""Cumulative differences: where residuals pile up, with no bins and no bandwidth to choose.

Null histogram: what chance alone gives, and where the data are.

Smooth witness: the weight function that proves the smooth calibration error.
"""

from __future__ import annotations

import json

import numpy as np

from calibrant.evaluation.tables import points_to_draw
from calibrant.forecasts import Forecasts
from calibrant.formatting import at_floor, format_value, pvalue_text
from calibrant.metrics.lookup import measure
from calibrant.report.charts.canvas import LIGHT, Canvas, Layer, Spec, drawing, field, hover, window
from calibrant.results import Array

CUMULATIVE_TITLE = "Cumulative differences"
CUMULATIVE_CAPTION = (
    "Outcome minus prediction, added up from the lowest prediction to the highest. Where the curve climbs, "
    "predictions are too low; where it falls, too high; the steepness is by how much. A calibrated "
    "forecaster stays inside the grey band throughout with probability 95%. The marked stretch is where the "
    "residuals add up most; the rise or fall across it is the Kuiper (cutoff calibration) error."
)
HALF_WIDTH = 2.241402728  # P(max |Brownian motion on [0, 1]| <= this) = 0.95
ACROSS = ["share of records, lowest predictions first", "(second line: the prediction reached)"]
UP = "sum of outcome − prediction, per record"


@drawing
def cumulative_differences(forecasts: Forecasts) -> Spec:
    """Draw the cumulative curve with the band of a calibrated forecaster and the worst interval marked."""
    canvas = Canvas()
    share = np.concatenate(([0.0], np.cumsum(forecasts.weights)))
    at = points_to_draw(forecasts.curve)
    level = np.maximum(at - 1, 0)
    data = canvas.on({"share": share[at], "sum": forecasts.curve[at], "prediction": forecasts.values[level]})
    x = field("share:Q", title=ACROSS, axis=_axis(forecasts, share), scale={"domain": [0, 1]})
    layers = [
        *_interval(canvas, forecasts, share),
        *null_band(canvas, forecasts),
        data.mark("line", color=LIGHT["model"], strokeWidth=2).encode(x=x, y=field("sum:Q", title=UP)),
        hover(data, len(at), "share", {"share": ".1%", "prediction": ".4f", "sum": "+.5f"}),
    ]
    return canvas.finished(layers, CUMULATIVE_TITLE, CUMULATIVE_CAPTION, height=380)


def null_band(canvas: Canvas, forecasts: Forecasts) -> list[Layer]:
    """Return the band that holds the whole curve of a calibrated forecaster with probability 95%."""
    high = HALF_WIDTH * float(np.sqrt(forecasts.null_variance))
    band = canvas.on({"from": [0.0], "to": [1.0], "low": [-high], "high": [high]})
    return [
        band.mark("rect", color=LIGHT["band"], opacity=0.5).encode(x="from:Q", x2="to", y="low:Q", y2="high"),
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(y="zero:Q"),
    ]


def _axis(forecasts: Forecasts, share: Array) -> Spec:
    """Label each tick with the share of records and, under it, the prediction reached there."""
    ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    level = np.searchsorted(share[1:], ticks).clip(0, forecasts.levels - 1)
    names = [[f"{tick:.0%}", f"{forecasts.values[i]:.3g}"] for tick, i in zip(ticks, level, strict=True)]
    return {"values": ticks, "labelExpr": f"{json.dumps(names)}[round(datum.value * 5)]"}


def _interval(canvas: Canvas, forecasts: Forecasts, share: Array) -> list[Layer]:
    result = measure(forecasts, "kuiper").details
    if result["predictions"] == "none":
        return []
    start = int(np.searchsorted(forecasts.values, result["start"]))
    stop = int(np.searchsorted(forecasts.values, result["stop"])) + 1
    area = canvas.on({"from": [share[start]], "to": [share[stop]]})
    edges = canvas.on({"edge": [share[start], share[stop]]})
    return [
        area.mark("rect", color=LIGHT["mark"], opacity=0.22).encode(x="from:Q", x2="to"),
        edges.mark("rule", color=LIGHT["second"], strokeDash=[3, 3]).encode(x="edge:Q"),
    ]


NULL_TITLE = "What chance alone gives"


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
    mark = canvas.on({"observed": [observed], "label": [f"these data: {format_value(observed)}"]})
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
    return canvas.finished(layers, NULL_TITLE, caption, height=240)


WITNESS_TITLE = "Smooth witness"
WITNESS_CAPTION = (
    "The worst smooth way to look at the predictions: a weight between −1 and 1 that changes no faster than "
    "the prediction. Outcome minus prediction, averaged with these weights, is the smooth calibration error."
)
BOTH_SIGNS = " Where the weight is positive predictions tend to be too low, where it is negative too high."
ONE_SIGN = " It has one sign here: weighted so, predictions are too {} on balance."


@drawing
def smooth_witness(forecasts: Forecasts) -> Spec:
    """Draw the witness of the smooth calibration error over the predictions."""
    result = measure(forecasts, "smooth").witness
    assert result is not None  # the smooth error always proves itself
    at = points_to_draw(result.weights, 200)
    shown = window(result.values)
    canvas = Canvas(shown)
    data = canvas.on({"prediction": result.values[at], "weight": result.weights[at]})
    across = {"domain": list(shown), "nice": False, "zero": False}
    base = data.encode(
        x=field("prediction:Q", title="prediction", scale=across),
        y=field("weight:Q", title="weight", scale={"domain": [-1, 1]}),
    )
    dots = {"color": LIGHT["third"]} if len(at) < 25 else False
    layers = [
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(y="zero:Q"),
        base.mark("line", color=LIGHT["third"], strokeWidth=2.5, point=dots),
        hover(data, len(at), "prediction", {"prediction": ".4f", "weight": "+.4f"}),
    ]
    return canvas.finished(
        layers, WITNESS_TITLE, WITNESS_CAPTION + _signs(result.weights), height=240, wide=True
    )


def _signs(weights: Array) -> str:
    """Say what the sign of the weight means; with one sign the residuals need not change theirs."""
    if weights.min() < 0 < weights.max():
        return BOTH_SIGNS
    return ONE_SIGN.format("low" if weights.max() > 0 else "high")
