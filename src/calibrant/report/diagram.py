"""reliability_diagram: observed frequencies against predictions, as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.forecasts import Forecasts
from calibrant.metrics.calling import accepts_rows

if TYPE_CHECKING:
    from calibrant.report.charts.reliability import CurveName, ScaleName


@accepts_rows
def reliability_diagram(
    forecasts: Forecasts, *, curve: CurveName = "isotonic", scale: ScaleName = "auto", seed: int = 0
) -> Any:
    """Draw observed frequencies against predictions: a chart that a notebook shows and ``.save`` writes.

    Parameters
    ----------
    curve
        "isotonic" with the band of calibrated predictions (CORP), "spline" with its confidence band, as in
        clinical papers, or "smoothed" with a Gaussian kernel.
    scale
        "linear", or "logit" for rare events; "auto" chooses by the predictions.
    seed
        Seed of the simulated band.

    Returns
    -------
    altair.LayerChart
        ``.save("diagram.svg")`` writes SVG, PNG, PDF or HTML.

    Examples
    --------
    >>> chart = reliability_diagram([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> chart.title.text
    'Reliability diagram'
    """
    from calibrant.report.charts import reliability_diagram as draw

    return draw(forecasts, curve=curve, scale=scale, seed=seed)
