"""Smooth calibration error and earth mover's error: exact, with the weight function that proves them."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.kernels.trimming import denoised, denoising_cost, lipschitz_witness
from calibrant.measures.registry.calling import public
from calibrant.results import Certified, Witness


@public
def smooth_calibration_error(forecasts: Forecasts, *, lipschitz: float = 1.0) -> Certified:
    """Largest |E[w(v) (y - v)]| over weight functions w that are 1-Lipschitz and bounded by 1.

    smCE of the distance paper, also called weak calibration error; within a factor 2 of the lower distance
    to calibration, either way. Not to be confused with the "smooth ECE" of Błasiok and Nakkiran, which
    smooths the data with a Gaussian: that is `convolved_calibration_error`. `lipschitz` sets another
    constant; as it grows the value rises to the expected calibration error.

    The optimal w is the witness of ``measure(forecasts, "smooth")``; `lower` is what it attains, `upper`
    the cost of the dual solution. They agree to rounding.

    >>> smooth_calibration_error([0, 0, 0, 0], [0.3, 0.3, 0.3, 0.3])
    0.3
    """
    if not (np.isfinite(lipschitz) and lipschitz > 0):
        raise InvalidInputError(sentence("lipschitz", "must be positive and finite", f"got {lipschitz}"))
    return _largest_weighted_residual(forecasts, float(lipschitz))


@public
def earth_mover_error(forecasts: Forecasts) -> Certified:
    """Earth mover's distance between (v, y) as observed and (v, y) as predicted, y ~ Bernoulli(v).

    EMD(J*, J^p) of the survey, under the metric |v - v'| + |y - y'|. By duality it is the smooth error
    with Lipschitz constant 2: w(v) = f(v, 1) - f(v, 0) for f 1-Lipschitz on [0, 1] x {0, 1}. Hence it lies
    between the smooth error and twice that.

    >>> round(earth_mover_error([0, 1], [0.5, 0.6]), 12)
    0.09
    """
    return _largest_weighted_residual(forecasts, 2.0)


def _largest_weighted_residual(forecasts: Forecasts, lipschitz: float) -> Certified:
    gaps = lipschitz * np.diff(forecasts.values)
    path = denoised(forecasts.curve, gaps)
    upper = denoising_cost(path, forecasts.curve, gaps)
    weights = lipschitz_witness(path, forecasts.curve, gaps)
    lower = float(np.sum(forecasts.residuals * weights))
    meaning = f"the weight function, {lipschitz:g}-Lipschitz and bounded by 1, that attains the error"
    return Certified(
        value=upper,
        lower=min(lower, upper),  # they may cross by a rounding error
        upper=upper,
        exact=True,
        witness=Witness(forecasts.values, weights, meaning),
        details=MappingProxyType({"lipschitz": lipschitz}),
    )
