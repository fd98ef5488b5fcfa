"""Calibration in the large: mean outcome minus mean prediction."""

from __future__ import annotations

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.laws import NORMAL
from calibrant.measures.registry.null import Null, Settings, zero
from calibrant.measures.registry.resolution import certify_exact_sums
from calibrant.measures.registry.row import Measure
from calibrant.results import Array, Certified


@public
def calibration_in_the_large(forecasts: Forecasts) -> Certified:
    """Mean outcome minus mean prediction: signed, positive when predictions are too low on average.

    Returns
    -------
    float
        Mean outcome minus mean prediction.

    Examples
    --------
    >>> calibration_in_the_large([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    """
    return Certified.point(float(forecasts.curve[-1]))


def _ends(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Calibration in the large."""
    return np.asarray(residuals.sum(axis=1))


calibration_in_the_large.certified_by(certify_exact_sums)

ROWS = (
    Measure(
        "in-the-large",
        calibration_in_the_large,
        words="calibration in the large",
        largest=1.0,
        family="regression",
        headline=True,
        meaning="mean outcome minus mean prediction; positive when predictions are too low",
        continuous=True,
        complete=True,
        signed=True,
        lipschitz=1.0,
        null=Null(_ends, residuals_only=True, mean=zero, law=NORMAL, two_sided=True),
        cost="O(m)",
        citation="Steyerberg 2019, Clinical prediction models, chapter 15",
    ),
)
