"""The smoothed reliability curve that the convolved calibration error implies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.convolved import GRIDS, convolved_calibration_error
from calibrant.measures.reflected import NARROWEST, ReflectedGaussian
from calibrant.measures.registry.calling import of_rows
from calibrant.options import number
from calibrant.results import Array, Certified, Result

RESOLVED = 1e-6  # a density below this share of its mean is noise, and the curve is not drawn there


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SmoothedReliability(Result):
    """A reliability diagram without bins, on an even grid of predictions.

    `outcome` is t + E[y - v | v~ = t]: the diagonal, plus the smoothed residual near t (nan where no
    prediction is near). `density` is that of the smoothed predictions v~. The mean of |outcome - t| under
    it is the convolved calibration error at `bandwidth`.
    """

    prediction: Array
    outcome: Array
    density: Array
    bandwidth: float


@of_rows
def smoothed_reliability(forecasts: Forecasts, *, bandwidth: float | None = None) -> SmoothedReliability:
    """Return the smoothed reliability curve; by default at the bandwidth of the convolved error.

    Parameters
    ----------
    bandwidth
        Of the reflected Gaussian kernel.

    Returns
    -------
    SmoothedReliability
        Mean outcome per prediction on a grid, with the density of predictions.

    Examples
    --------
    >>> curve = smoothed_reliability([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> float(curve.outcome[256] - curve.prediction[256])
    0.25
    """
    if bandwidth is None:
        measured = convolved_calibration_error.core(forecasts)
        assert isinstance(measured, Certified)
        bandwidth = max(float(measured.details["bandwidth"]), NARROWEST / GRIDS[0])
    elif not NARROWEST / GRIDS[0] <= number("bandwidth", bandwidth) < np.inf:
        rule = f"must be at least {NARROWEST / GRIDS[0]:.2g} and finite"
        raise InvalidInputError(sentence("bandwidth", rule, f"got {bandwidth}"))
    shown = slice(None, None, GRIDS[0] // 512)
    residual = ReflectedGaussian(forecasts.values, forecasts.residuals, GRIDS[0]).density(bandwidth)[shown]
    weight = ReflectedGaussian(forecasts.values, forecasts.weights, GRIDS[0]).density(bandwidth)[shown]
    prediction = np.linspace(0.0, 1.0, len(weight))
    near = weight > RESOLVED
    outcome = np.full(len(weight), np.nan)
    outcome[near] = prediction[near] + residual[near] / weight[near]
    return SmoothedReliability(prediction, outcome, np.maximum(weight, 0.0), bandwidth)
