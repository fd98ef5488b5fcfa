"""Threshold-loss curve: what acting on the predictions costs, for every threshold of action."""

from __future__ import annotations

from calibrant.evaluation.coarse import points_to_draw
from calibrant.measures.decisions.thresholds import ThresholdLossCurve
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas, hover
from calibrant.report.palette import LIGHT

TITLE = "What trusting the predictions costs"
CAPTION = (
    "Somebody acts when the probability exceeds a threshold: the cost of acting as a share of the loss that "
    "it prevents. The curve is what they lose by acting on the predictions instead of "
    "recalibrated ones (isotonic, fitted on other records), in outcomes that were not acted on per 1,000 "
    "decisions. The line marks the threshold that loses most. Below 0 the recalibration would have done harm."
)


@drawing
def threshold_loss(curve: ThresholdLossCurve) -> Spec:
    """Draw a threshold-loss curve with its worst threshold marked."""
    canvas = Canvas()
    at = points_to_draw(curve.loss, 300)
    worst, _ = curve.worst
    data = canvas.on({"threshold": curve.mu[at], "loss": 1000 * curve.loss[at]})
    peak = canvas.on({"worst": [worst], "label": [f"worst: {worst:.3g}"]})
    side = {"align": "right", "dx": -6} if worst > 0.5 else {"align": "left", "dx": 6}
    base = data.encode(
        x=field("threshold:Q", title="threshold of action", scale={"domain": [0, 1]}),
        y=field("loss:Q", title="loss per 1,000 decisions"),
    )
    layers = [
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(y="zero:Q"),
        peak.mark("rule", color=LIGHT["second"], strokeDash=[3, 3]).encode(x="worst:Q"),
        base.mark("line", color=LIGHT["model"], strokeWidth=2),
        peak.mark("text", color=LIGHT["ink"], baseline="top", fontSize=12, **side).encode(
            x="worst:Q", y={"value": 4}, text="label:N"
        ),
        hover(data, len(at), "threshold", {"threshold": ".4f", "loss": ".3f"}),
    ]
    return canvas.finished(layers, TITLE, CAPTION, height=280, wide=True)
