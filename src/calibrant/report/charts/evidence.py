"""Charts of evidence: cumulative differences, what chance alone gives, and the smooth witness."""

from __future__ import annotations

import json

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.formatting import at_floor, format_value, pvalue_text
from calibrant.metrics.lookup import measure
from calibrant.report.charts.canvas import LIGHT, Canvas, Layer, Spec, drawing, field, points_to_draw, window
from calibrant.results import Array

CUMULATIVE_CAPTION = (
    "Where the curve climbs, predictions are too low; where it falls, too high. Calibrated predictions stay "
    "in the gray band with probability 95%. The change across the marked stretch is the Kuiper error."
)
HALF_WIDTH = 2.241402728  # P(max |Brownian motion on [0, 1]| <= this) = 0.95
UP = "sum of residuals / n"


@drawing
def cumulative_differences(forecasts: Forecasts) -> Spec:
    """Draw the cumulative curve with the band of a calibrated forecaster and the worst interval marked."""
    canvas = Canvas()
    share = np.concatenate(([0.0], np.cumsum(forecasts.weights)))
    at = points_to_draw(forecasts.curve)
    level = np.maximum(at - 1, 0)
    data = canvas.on({"share": share[at], "sum": forecasts.curve[at], "prediction": forecasts.values[level]})
    high = HALF_WIDTH * float(np.sqrt(forecasts.null_variance))
    marked = _interval(canvas, forecasts, share)
    band = canvas.on({"from": [0.0], "to": [1.0], "low": [-high], "high": [high]})
    title, scale = "share of records, and prediction", {"domain": [0, 1]}
    x = field("share:Q", title=title, axis=_axis(forecasts, share), scale=scale)
    layers = [
        *marked,
        band.mark("rect", color=LIGHT["band"], opacity=0.5).encode(x="from:Q", x2="to", y="low:Q", y2="high"),
        canvas.zero_line(),
        data.mark("line", color=LIGHT["model"], strokeWidth=2).encode(x=x, y=field("sum:Q", title=UP)),
        data.hover(len(at), "share", {"share": ".1%", "prediction": ".4f", "sum": "+.5f"}),
    ]
    return canvas.finished(layers, "Cumulative differences", CUMULATIVE_CAPTION, height=380)


def _axis(forecasts: Forecasts, share: Array) -> Spec:
    """Label each tick with the share of records and, under it, the prediction reached there."""
    ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    level = np.searchsorted(share[1:], ticks).clip(0, forecasts.levels - 1)
    values = forecasts.values[level].tolist()
    texts = [f"{value:.3g}" if value >= 1e-4 or value == 0 else format_value(value) for value in values]
    names = [[f"{tick:.0%}", text] for tick, text in zip(ticks, texts, strict=True)]
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
    label, middle = f"these data: {format_value(observed)}", (low + high) / 2
    x = field("from:Q", title=f"{measure} error", scale={"zero": False})
    y = field("draws:Q", title="simulated data sets")
    tips = [field(f"{end}:Q", format=".4g") for end in ("from", "to")]
    tips.append(field("draws:Q", title="data sets"))
    layers = [
        bars.mark("bar", color=LIGHT["density"]).encode(x=x, x2="to", y=y, y2={"datum": 0}, tooltip=tips),
        *canvas.labeled_line("observed", observed, label, middle, strokeWidth=2.5),
    ]
    caption = (
        f"The {measure} calibration error of {len(draws):,} data sets whose outcomes are drawn from these "
        "predictions. Chance reaches the error of these data with probability "
        f"{pvalue_text(pvalue, floor=at_floor(pvalue, len(draws)))}."
    )
    return canvas.finished(layers, "What chance alone gives", caption, height=240)


WITNESS_CAPTION = (
    "The smooth calibration error averages outcome minus prediction with these weights, which change no "
    "faster than the prediction."
)
BOTH_SIGNS = " Predictions tend to be too low where the weight is positive, too high where it is negative."
ONE_SIGN = " All weights have one sign: predictions are too {} on balance."


@drawing
def smooth_witness(forecasts: Forecasts) -> Spec:
    """Draw the witness of the smooth calibration error over the predictions."""
    result = measure(forecasts, "smooth").witness
    assert result is not None  # the smooth error always proves itself
    at = points_to_draw(result.weights, 200)
    shown = window(result.values)
    canvas = Canvas()
    data = canvas.on({"prediction": result.values[at], "weight": result.weights[at]})
    across = {"domain": list(shown), "nice": False, "zero": False}
    base = data.encode(
        x=field("prediction:Q", title="prediction", scale=across),
        y=field("weight:Q", title="weight", scale={"domain": [-1, 1]}),
    )
    dots = {"color": LIGHT["third"]} if len(at) < 25 else False
    layers = [
        canvas.zero_line(),
        base.mark("line", color=LIGHT["third"], strokeWidth=2.5, point=dots),
        data.hover(len(at), "prediction", {"prediction": ".4f", "weight": "+.4f"}),
    ]
    signs = ONE_SIGN.format("low" if result.weights.max() > 0 else "high")
    if result.weights.min() < 0 < result.weights.max():
        signs = BOTH_SIGNS
    return canvas.finished(layers, "Smooth witness", WITNESS_CAPTION + signs, height=240, wide=True)
