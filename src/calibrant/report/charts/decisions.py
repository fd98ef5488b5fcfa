"""Charts by threshold of action: cost of trusting predictions, net benefit, and Murphy differences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.inference.dominance import Dominance
from calibrant.inference.net_benefits import TREAT_ALL, TREAT_NONE, Benefit, NetBenefits
from calibrant.metrics.decisions.worst_case import ThresholdLossCurve
from calibrant.report.charts.canvas import CURVES, LIGHT, Canvas, Layer, Spec, drawing, field, points_to_draw

THRESHOLD_CAPTION = (
    "What is lost by acting on the predictions instead of recalibrated ones (isotonic, fitted on other "
    "records), for every threshold of action. Below 0, recalibration would have done harm."
)


@drawing
def threshold_loss(curve: ThresholdLossCurve) -> Spec:
    """Draw a threshold-loss curve with its worst threshold marked."""
    canvas = Canvas()
    worst, _ = curve.worst
    peak = canvas.labeled_line("worst", worst, f"worst: {worst:.3g}", 0.5, strokeDash=[3, 3])
    layers = [*_loss_curve(canvas, curve, "loss per 1,000 decisions", 1000, ".3f"), *peak]
    title = "What trusting the predictions costs"
    return canvas.finished(layers, title, THRESHOLD_CAPTION, height=280, wide=True)


def _loss_curve(canvas: Canvas, curve: ThresholdLossCurve, up: str, unit: float, digits: str) -> list[Layer]:
    """Return the line at 0, the loss at every threshold, and the numbers under the pointer."""
    at = points_to_draw(curve.loss, 300)
    data = canvas.on({"threshold": curve.mu[at], "loss": unit * curve.loss[at]})
    line = data.mark("line", color=LIGHT["model"], strokeWidth=2).encode(
        x=field("threshold:Q", title="threshold of action", scale={"domain": [0, 1]}),
        y=field("loss:Q", title=up),
        description={"value": up},
    )
    return [canvas.zero_line(), line, data.hover(len(at), "threshold", {"threshold": ".4f", "loss": digits})]


NET_BENEFIT_CAPTION = (
    "Net true positives per 1,000 records if everyone with a prediction at or above the threshold is "
    "treated; a false positive counts for threshold / (1 - threshold). The highest curve is best at that "
    "threshold. Bands are intervals for one threshold at a time; treating none is the line at 0."
)


@drawing
def decision_curves(given: NetBenefits) -> Spec:
    """Draw the decision curves of up to three models with their intervals."""
    count = len(given.models)
    if count > len(CURVES):
        raise InvalidInputError("models", f"must be {len(CURVES)} at most to be drawn", f"got {count}")
    canvas = Canvas()
    nothing = np.zeros(len(given.thresholds))
    curves = {**given.models, TREAT_ALL: given.treat_all, TREAT_NONE: Benefit(nothing, nothing, nothing)}
    names, shades = list(curves), [*CURVES[:count], LIGHT["quiet"], LIGHT["quiet"]]
    dashes = [*([1, 0], [6, 3], [2, 2])[:count], [4, 4], [1, 0]]
    # treating all falls without end, and harmful policies are not shown
    highest = max(4.0, 1000 * max(float(one.upper.max()) for one in curves.values()))
    frame = {"nice": False, "domain": [-highest / 4, 1.05 * highest]}
    order = np.argsort(given.thresholds)
    ends = {"benefit": "value", "low": "lower", "high": "upper"}
    columns: dict[str, Iterable[Any]] = {
        "model": [name for name in names for _ in order],
        "threshold": np.tile(given.thresholds[order], len(names)),
        **{end: np.concatenate([1000 * getattr(one, name)[order] for one in curves.values()])
           for end, name in ends.items()},
    }  # fmt: skip
    solid = {"symbolOpacity": 1}
    base = canvas.on(columns).encode(
        x=field("threshold:Q", title="threshold", scale={"nice": False}),
        color=field("model:N", scale={"domain": names, "range": shades}, legend=solid),
    )
    y = field("benefit:Q", title="net true positives per 1,000", scale=frame)
    dash = field("model:N", scale={"domain": names, "range": dashes})
    tips = {"threshold": ".3g", "benefit": ".1f", "low": ".1f", "high": ".1f"}
    layers = [
        base.mark("area", opacity=0.15, clip=True).encode(y=field("low:Q", scale=frame), y2="high"),
        base.mark("line", strokeWidth=2, clip=True).encode(y=y, strokeDash=dash).tips(tips, "model:N"),
    ]
    return canvas.finished(layers, "Net benefit", NET_BENEFIT_CAPTION, height=340, wide=True)


DOMINANCE_CAPTION = (
    "Users act when the probability exceeds their threshold: the cost of acting as a share of the loss that "
    "it prevents. The curve is their loss per record from using {first} instead of {second}, in units of "
    "one outcome that was not acted on. Below 0 {first} is better; the shading shows which one wins. The "
    "band is pointwise, from resampled rows."
)
SHADES = 200  # strips in which the winner is shown


@drawing
def murphy_difference(compared: Dominance, *, first: str = "", second: str = "") -> Spec:
    """Draw the difference of two models at every threshold, its band, and who wins where."""
    canvas = Canvas()
    first, second = first or compared.names[0], second or compared.names[1]
    caption = DOMINANCE_CAPTION.format(first=first, second=second)
    layers = [_winners(canvas, compared, first, second)]
    if compared.band is not None:
        limits = compared.band
        band = canvas.on({"threshold": limits.thresholds, "lower": limits.lower, "upper": limits.upper})
        mark = band.mark("area", color=LIGHT["band"], opacity=0.6)
        layers.append(mark.encode(x="threshold:Q", y="lower:Q", y2="upper"))
    layers += _loss_curve(canvas, compared.curve, f"loss of {first} against {second}", 1, ".6f")
    return canvas.finished(layers, "Which model serves whom", caption, height=280, wide=True)


def _winners(canvas: Canvas, compared: Dominance, first: str, second: str) -> Layer:
    """Return strips along the thresholds, colored by the model that wins there; none where they tie."""
    edges = np.linspace(0.0, 1.0, SHADES + 1)
    middle = compared.curve.at((edges[:-1] + edges[1:]) / 2)
    wins = np.where(middle < -1e-12, first, np.where(middle > 1e-12, second, ""))
    kept = wins != ""
    strips = canvas.on({"from": edges[:-1][kept], "to": edges[1:][kept], "better": wins[kept].tolist()})
    color = field(
        "better:N",
        scale={"domain": [first, second], "range": [LIGHT["model"], LIGHT["second"]]},
        legend={"symbolType": "square"},
    )
    return strips.mark("rect", opacity=0.12).encode(x="from:Q", x2="to", color=color)
