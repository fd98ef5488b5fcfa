"""Low-degree calibration error: the worst polynomial weight function, to machine precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from calibrant.errors import InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.inputs import number
from calibrant.metrics.bibliography import SURVEY
from calibrant.metrics.calling import measure_function
from calibrant.metrics.certificates import lipschitz_weights
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import TERMS_AT_ONCE
from calibrant.results import Array, Certified, Witness

MAX_DEGREE = 100  # the program has 8 times as many rows as columns: more takes minutes, then all the memory
_TIGHT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@measure_function
def low_degree_error(forecasts: Forecasts, *, degree: int = 3) -> Certified:
    """Largest E[p(v) (y - v)] over polynomials p of at most `degree` with |p| <= 1 on [0, 1].

    Degree 0 is calibration in the large; the value grows to the smooth and Kuiper errors' territory as
    the degree does. Solved as a linear program over Chebyshev coefficients by exchange: the points where
    |p| exceeds 1 are added until it does not; both bounds are proven.

    Examples
    --------
    >>> low_degree_error([0, 1], [0.25, 0.75], degree=1)
    0.125
    """
    if not 0 <= number("degree", degree) <= MAX_DEGREE or degree != np.floor(degree):
        rule = f"must be a whole number from 0 to {MAX_DEGREE}"
        raise InvalidInputError("degree", rule, f"got {degree}", "use smooth_calibration_error")
    v, b, moments = forecasts.values, forecasts.residuals, np.zeros(int(degree) + 1)
    for start in range(0, len(v), TERMS_AT_ONCE):  # only a part of the levels is held at a time
        part = slice(start, start + TERMS_AT_ONCE)
        moments += b[part] @ chebyshev.chebvander(2 * v[part] - 1, int(degree))
    coefficients, upper = _worst_polynomial(moments)
    weights = np.asarray(chebyshev.chebval(2 * forecasts.values - 1, coefficients), dtype=np.float64)
    lower = float(moments @ coefficients)
    witness = Witness(forecasts.values, weights, f"polynomial of degree {degree} bounded by 1")
    return Certified(lower, lower, max(lower, upper), upper - lower <= 1e-9, witness)


def _worst_polynomial(moments: Array) -> tuple[Array, float]:
    """Maximize moments @ c over Chebyshev coefficients c with |p| <= 1: feasible c, and an upper bound."""
    degree = len(moments) - 1
    scale = float(np.abs(moments).max())
    if degree == 0 or scale == 0.0:
        return np.sign(moments) * (np.arange(degree + 1) == 0), scale
    points = np.cos(np.pi * np.arange(4 * degree + 1) / (4 * degree))
    # one Chebyshev polynomial is bounded by 1; no coefficient of such a polynomial exceeds 4 / pi
    best, lowest = np.sign(moments) * (np.arange(degree + 1) == np.abs(moments).argmax()), 1.0
    upper = 4 / np.pi * float(np.abs(moments).sum()) / scale
    for _ in range(50):
        program = _program(moments / scale, points)
        if program is None:  # what was found so far, and what needs no program, stays proven
            break
        found, bound = program
        stationary = chebyshev.chebroots(chebyshev.chebder(found))
        inner = stationary.real[np.abs(stationary.imag) < 1e-7]
        extrema = np.concatenate([[-1.0, 1.0], np.clip(inner, -1.0, 1.0)])
        peak = float(np.abs(chebyshev.chebval(extrema, found)).max())
        feasible = found / max(1.0, peak)
        upper = min(upper, bound)
        if (value := float(moments @ feasible) / scale) > lowest:
            best, lowest = feasible, value
        fresh = np.setdiff1d(extrema, points)
        if upper - lowest <= 1e-10 or peak <= 1 + 1e-11 or len(fresh) == 0:  # as far as rounding lets us
            break
        points = np.concatenate([points, fresh])
    return best, upper * scale


def _program(moments: Array, points: Array) -> tuple[Array, float] | None:
    """Maximize moments @ c with |p| <= 1 at the points only: nearly optimal c, and a proven upper bound."""
    # None where the solver gives up, which it does on some badly conditioned programs. It stops at 1e-10, so
    # its answer is polished on the points that carry dual mass. Masses z there with sum z_i T(x_i) = moments
    # prove moments @ c = sum z_i p(x_i) <= sum |z_i|; what the masses miss of a moment counts 4/pi times, the
    # largest Chebyshev coefficient of a polynomial bounded by 1.
    from scipy.optimize import linprog

    rows: Array = np.asarray(chebyshev.chebvander(points, len(moments) - 1), dtype=np.float64)
    both, limits = np.vstack([rows, -rows]), np.ones(2 * len(points))
    for options in (_TIGHT, None):  # the second time with the solver's own tolerances
        program = linprog(-moments, A_ub=both, b_ub=limits, bounds=(None, None), options=options)
        if program.status == 0:
            break
    else:
        return None
    above, below = np.split(np.asarray(program.ineqlin.marginals), 2)
    touched = np.abs(above - below) > 1e-9
    if not touched.any():
        return None
    used = rows[touched]
    mass = np.linalg.lstsq(used.T, moments, rcond=None)[0]
    missed = np.abs(moments - used.T @ mass).sum()
    x = np.asarray(program.x)
    polished = x + np.linalg.lstsq(used, np.sign(mass) - used @ x, rcond=None)[0]
    return polished, float(np.abs(mass).sum() + 4 / np.pi * missed)


@low_degree_error.certificate
def _low_degree_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Markov: a polynomial of degree d bounded by 1 on [0, 1] has a slope of at most 2 d^2 there."""
    return lipschitz_weights(forecasts, measured, 2.0 * int(settings["degree"]) ** 2)


LOW_DEGREE = Measure(
    "low-degree",
    low_degree_error,
    words="low-degree error",
    family="curve",
    meaning="worst residual against a cubic polynomial of the prediction bounded by 1",
    continuous=True,
    null=Null(power=1, mean_draws=19),
    citation=SURVEY + ", section 3.3",
    variants=({"degree": 1},),
)
