"""Smooth witness: the weight function that proves the smooth calibration error."""

from __future__ import annotations

from calibrant.evaluation.coarse import points_to_draw
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.lookup import measure
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas, hover, window
from calibrant.report.palette import LIGHT
from calibrant.results import Array

TITLE = "Smooth witness"
CAPTION = (
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
    return canvas.finished(layers, TITLE, CAPTION + _signs(result.weights), height=240, wide=True)


def _signs(weights: Array) -> str:
    """Say what the sign of the weight means; with one sign the residuals need not change theirs."""
    if weights.min() < 0 < weights.max():
        return BOTH_SIGNS
    return ONE_SIGN.format("low" if weights.max() > 0 else "high")
