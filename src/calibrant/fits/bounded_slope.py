"""The best gentle correction: least squares over maps whose slope lies between 0 and a bound."""

from __future__ import annotations

import numpy as np

from calibrant.fits.honest_ends import honest_range
from calibrant.fits.isotonic import Knots
from calibrant.fits.levels import Levels
from calibrant.kernels.bounded_slope import bounded_slope_rates as exact_fit


def bounded_slope(levels: Levels, *, slope: float = 2.0, honest_ends: bool = False) -> Knots:
    """Return the rates g of least squared error with 0 <= g_{i+1} - g_i <= slope (v_{i+1} - v_i).

    With slope 2 these are the maps v + e(v), e with slopes between -1 and 1, of Błasiok, Gopalan, Hu and
    Nakkiran (2023): what they gain in Brier score lies between smCE^2 and 2 smCE, whatever the data.
    """
    fit = exact_fit(levels.values, levels.rates, levels.weights, float(slope))
    fit = np.clip(fit, 0.0, 1.0)  # only rounding can leave [0, 1]
    if honest_ends:
        fit = honest_range(fit, levels.weights).holds(fit)  # which cannot make a slope steeper
    return Knots(levels.values, fit)
