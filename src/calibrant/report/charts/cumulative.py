"""Cumulative differences: where residuals pile up, with no bins and no bandwidth to choose."""

from __future__ import annotations

import json

import numpy as np

from calibrant.evaluation.coarse import points_to_draw
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.lookup import measure
from calibrant.report.charts.layers import Layer, Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas, hover
from calibrant.report.palette import LIGHT
from calibrant.results import Array

TITLE = "Cumulative differences"
CAPTION = (
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
    return canvas.finished(layers, TITLE, CAPTION, height=380)


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
