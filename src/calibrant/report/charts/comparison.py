"""Two or three models side by side on one reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.scores import isotonic_curve
from calibrant.report.charts.layers import Spec
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.reliability import curves, steps
from calibrant.report.charts.style import Canvas, window

TITLE = "Models compared"
CAPTION = (
    "The isotonic (CORP) reliability curve of each model. The closer to the dashed diagonal, the better "
    "calibrated; above it predictions are too low, below it too high."
)
MOST = 3  # as many colours and dash patterns as stay apart on paper


@drawing
def comparison(models: Mapping[str, Forecasts]) -> Spec:
    """Draw the reliability curves of two or three models, by name."""
    if not 2 <= len(models) <= MOST:
        raise InvalidInputError(sentence("models", "must be two or three", f"got {len(models)}"))
    fits = {str(name): (f, isotonic_curve(f)) for name, f in models.items()}
    lines = {name: steps(f, fit) for name, (f, fit) in fits.items()}
    values = [f.values for f, _ in fits.values()]
    frame = window(*values), window(*values, *(fit for _, fit in fits.values()))
    canvas = Canvas(*frame)
    return canvas.finished(curves(canvas, lines, frame), TITLE, CAPTION, height=380)
