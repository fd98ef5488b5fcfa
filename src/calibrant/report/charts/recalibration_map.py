"""The map that a recalibration would apply, with its band, and the reliability before and after it."""

from __future__ import annotations

from calibrant.evaluation.proposal import Proposal
from calibrant.forecasts import Forecasts
from calibrant.measures.scores import isotonic_curve
from calibrant.report.charts.layers import Spec
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.reliability import Line, curves, shaded, steps
from calibrant.report.charts.style import Canvas, window

TITLE = "What recalibration would do"
MAP, BEFORE, AFTER = "the map", "outcomes before", "outcomes after"
CAPTION = (
    "The solid line is what each prediction would become. The grey band is its {confidence:.0%} "
    "interval at each prediction, by {how}. The dashed curves show how often it happened (isotonic fits) for "
    "records that the maps were not fitted to: before, against the predictions; after, against the "
    "recalibrated ones, which should lie nearer to the diagonal."
)


@drawing
def recalibration_map(proposal: Proposal) -> Spec:
    """Draw the chosen map with its band, and the isotonic curves of held-out records before and after."""
    band, places = proposal.band, proposal.places
    mapped = proposal.fitted.predict(places)
    lines = {
        MAP: Line(places, mapped, mapped < 0),  # nowhere faint
        BEFORE: _reliability(proposal.before),
        AFTER: _reliability(proposal.after),
    }
    across = window(*(line.prediction for line in lines.values()))
    up = window(*(line.rate for line in lines.values()), band.lower, band.upper)
    canvas = Canvas(across, up)
    layers = [shaded(canvas, places, band.lower, band.upper), *curves(canvas, lines, (across, up))]
    caption = CAPTION.format(confidence=band.confidence, how=band.how)
    return canvas.finished(layers, TITLE, caption, height=380)


def _reliability(forecasts: Forecasts) -> Line:
    return steps(forecasts, isotonic_curve(forecasts))
