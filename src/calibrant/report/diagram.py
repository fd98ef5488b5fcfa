"""reliability_diagram: observed frequencies against predictions, as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.frames import resolve_inputs
from calibrant.metrics.calling import as_forecasts
from calibrant.records import Missing

if TYPE_CHECKING:
    from calibrant.report.charts.reliability import CurveName, ScaleName


def reliability_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    curve: CurveName = "isotonic",
    scale: ScaleName = "auto",
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    seed: int = 0,
) -> Any:
    """Draw observed frequencies against predictions: a chart that a notebook shows and ``.save`` writes.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        Outcomes, predictions and weights; or Forecasts alone; or a frame with the names of its columns.
    outcome, prediction, weight
        Columns of the frame.
    curve
        "isotonic" with the band of calibrated predictions (CORP), "spline" with its confidence band, as in
        clinical papers, or "smoothed" with a Gaussian kernel.
    scale
        "linear", or "logit" for rare events; "auto" chooses by the predictions.
    missing
        Refuse rows with a missing value ("error"), or leave them out ("drop").
    pos_label
        The label that counts as 1, for outcomes that are text, categories or -1 and 1.
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

    given = resolve_inputs(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight
    )
    forecasts = as_forecasts(given.y_true, given.y_prob, given.sample_weight, missing, pos_label)
    return draw(forecasts, curve=curve, scale=scale, seed=seed)
