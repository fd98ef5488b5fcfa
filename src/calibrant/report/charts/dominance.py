"""Murphy difference: which of two models serves whom better, for every threshold of action."""

from __future__ import annotations

import numpy as np

from calibrant.evaluation.coarse import points_to_draw
from calibrant.inference.dominance import Dominance
from calibrant.report.charts.layers import Layer, Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import Canvas, hover
from calibrant.report.palette import LIGHT

TITLE = "Which model serves whom"
CAPTION = (
    "Somebody acts when the probability exceeds a threshold: the cost of acting as a share of the loss that "
    "it prevents. The curve is what they lose per record by using {first} instead of {second}, in units of "
    "one outcome that was not acted on. Below 0 {first} is better; the shading shows which one wins. The "
    "band is pointwise, from resampled rows."
)
SHADES = 200  # strips in which the winner is shown


@drawing
def murphy_difference(compared: Dominance, *, first: str = "", second: str = "") -> Spec:
    """Draw the difference of two models at every threshold, its band, and who wins where."""
    canvas = Canvas()
    curve = compared.curve
    first, second = first or compared.names[0], second or compared.names[1]
    up = f"loss of {first} against {second}"
    at = points_to_draw(curve.loss, 300)
    data = canvas.on({"threshold": curve.mu[at], "loss": curve.loss[at]})
    base = data.encode(
        x=field("threshold:Q", title="threshold of action", scale={"domain": [0, 1]}),
        y=field("loss:Q", title=up),
        description={"value": up},
    )
    caption = CAPTION.format(first=first, second=second)
    layers = [_winners(canvas, compared, first, second)]
    if compared.band is not None:
        band = canvas.on(
            {
                "threshold": compared.band.thresholds,
                "lower": compared.band.lower,
                "upper": compared.band.upper,
            }
        )
        mark = band.mark("area", color=LIGHT["band"], opacity=0.6)
        layers.append(mark.encode(x="threshold:Q", y="lower:Q", y2="upper"))
    layers += [
        canvas.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(y="zero:Q"),
        base.mark("line", color=LIGHT["model"], strokeWidth=2),
        hover(data, len(at), "threshold", {"threshold": ".4f", "loss": ".6f"}),
    ]
    return canvas.finished(layers, TITLE, caption, height=280, wide=True)


def _winners(canvas: Canvas, compared: Dominance, first: str, second: str) -> Layer:
    """Return strips along the thresholds, coloured by the model that wins there; none where they tie."""
    edges = np.linspace(0.0, 1.0, SHADES + 1)
    middle = compared.curve.at((edges[:-1] + edges[1:]) / 2)
    wins = np.where(middle < -1e-12, first, np.where(middle > 1e-12, second, ""))
    kept = wins != ""
    strips = canvas.on({"from": edges[:-1][kept], "to": edges[1:][kept], "better": wins[kept].tolist()})
    colour = field(
        "better:N",
        scale={"domain": [first, second], "range": [LIGHT["model"], LIGHT["second"]]},
        legend={"symbolType": "square"},
    )
    return strips.mark("rect", opacity=0.12).encode(x="from:Q", x2="to", color=colour)
