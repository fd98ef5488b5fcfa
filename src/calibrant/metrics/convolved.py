"""Convolved calibration error: the expected calibration error after Gaussian smoothing of the predictions.

Masses are smoothed on a grid, with a bound on what the grid costs. The reflected Gaussian is the heat kernel
of [0, 1] with closed ends: cos(pi k t) is damped by exp(-(pi k s)^2 / 2). So one cosine transform, a product
and one transform back smooth at any bandwidth s, all reflections included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.inputs import finite_number, positive_number
from calibrant.metrics.calling import accepts_rows, measure_function
from calibrant.metrics.certificates import bracketed, reach, residual_mass, rounding, widened
from calibrant.metrics.registry import Measure, Settings
from calibrant.results import Array, Certified, Result

MIN_BANDWIDTH_CELLS = 3.0  # cells: from this bandwidth on, what the grid aliases is below rounding
MAX_BANDWIDTH = 1e3  # from this bandwidth on the smoothed density is the same everywhere, to the last digit
CURVATURE = 4.0 / math.sqrt(2.0 * math.pi * math.e)  # integral of |f''| for the density f of N(0, 1)


class ReflectedGaussian:
    """Masses shared out between the two nearest of `cells` + 1 equidistant nodes, ready to be smoothed."""

    def __init__(self, values: Array, masses: Array, cells: int) -> None:
        place = values * cells
        starts = np.searchsorted(place, np.arange(cells, dtype=np.float64))  # values ascend
        share = np.subtract(place, np.minimum(np.floor(place), cells - 1.0), out=place)
        right_mass = share * masses
        moved = _sums_from(right_mass, starts)
        nodes = np.zeros(cells + 1)
        nodes[:-1] = _sums_from(masses, starts) - moved
        nodes[1:] += moved
        self.cells = cells
        self.total = float(np.sum(np.abs(masses)))
        # Sharing out errs in second order only: by |mass| times half the product of its two distances.
        self._spread = float(np.sum(np.abs(right_mass) * (1.0 - share))) / (2.0 * cells**2)
        nodes[[0, -1]] *= 2.0  # the transform counts its ends half
        self._waves = _cosine_transform(nodes) / 2.0

    def density(self, bandwidth: float) -> Array:
        wave = np.pi * min(bandwidth, MAX_BANDWIDTH) * np.arange(self.cells + 1)
        return _cosine_transform(self._waves * np.exp(-0.5 * wave**2))

    def absolute_mass(self, bandwidth: float) -> float:
        """Return the integral of the absolute smoothed density, by the trapezoidal rule."""
        density = np.abs(self.density(bandwidth))
        return float(np.sum(density) - (density[0] + density[-1]) / 2.0) / self.cells

    def excess(self, bandwidth: float) -> float:
        return self.absolute_mass(bandwidth) - bandwidth

    def grid_error(self, bandwidth: float) -> float:
        """Return a bound on how far `absolute_mass` lies from the integral for the masses as given."""
        # Two parts. Sharing out changes the smoothed density by at most the spread times the curvature of the
        # Gaussian. The trapezoidal rule errs by at most h^2 / 8 times the variation of the slope of the
        # absolute value; as the slope is 0 at both ends and kinks come only with changes of sign, that is at
        # most twice the variation for the density itself; and smoothing by s is smoothing by s / sqrt(2)
        # twice, which bounds the latter.
        step, bandwidth = 1.0 / self.cells, min(bandwidth, MAX_BANDWIDTH)
        bend = CURVATURE / bandwidth**2  # of the Gaussian that smooths
        half_smoothed = self.absolute_mass(bandwidth / 2.0**0.5) + step**2 / 2.0 * bend * self.total
        variation = min(bend * self.total, 2.0 * bend * half_smoothed)
        return bend * self._spread + step**2 / 4.0 * variation


def _sums_from(x: Array, starts: npt.NDArray[np.int64]) -> Array:
    """Return the sum of x over each stretch from one start to the next; some stretches are empty."""
    filled = np.diff(starts, append=len(x)) > 0
    sums = np.zeros(len(starts))
    sums[filled] = np.add.reduceat(x, starts[filled])
    return sums


def _cosine_transform(x: Array) -> Array:
    from scipy.fft import dct

    return np.asarray(dct(x, type=1))  # x_0 + (-1)^k x_N + 2 sum of x_i cos(pi i k / N)


GRIDS = (2**13, 2**16, 2**19)  # cells: the next one is tried while the grid error is not small
MAX_GRID_ERROR = 1e-3  # grid error, relative to the value


@measure_function
def convolved_calibration_error(forecasts: Forecasts, *, bandwidth: float | None = None) -> Certified:
    """Expected calibration error of the predictions plus reflected Gaussian noise, at its own fixed point.

    cECE_s = E|E[y - v | v~]|, where v~ is v + N(0, s^2) reflected into [0, 1]. It falls as s grows, and
    the value is the one bandwidth s with cECE_s = s; or cECE_s itself where a `bandwidth` s is given. Also
    called SmoothECE or smECE, after Błasiok and Nakkiran (relplot.smECE); not to be confused with
    `smooth_calibration_error`. Computed on a grid: [lower, upper] of the measurement holds the exact value.

    Parameters
    ----------
    bandwidth
        Standard deviation of the noise; the fixed point if absent.

    Examples
    --------
    >>> round(convolved_calibration_error([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]), 9)
    0.25
    """
    if bandwidth is not None:
        positive_number("bandwidth", bandwidth)
    total = float(np.sum(np.abs(forecasts.residuals)))  # cECE at bandwidth 0, its largest value
    if bandwidth is None and total <= MIN_BANDWIDTH_CELLS / GRIDS[-1]:
        return Certified.bounded(total, 0.0, total, exact=False, bandwidth=total, cells=0)
    for cells in GRIDS:
        smoothed = ReflectedGaussian(forecasts.values, forecasts.residuals, cells)
        narrowest = MIN_BANDWIDTH_CELLS / cells
        if bandwidth is not None:  # cECE falls with the bandwidth, so one too narrow for the grid is bounded
            width = max(float(bandwidth), narrowest)
            value, error = smoothed.absolute_mass(width), smoothed.grid_error(width)
            lower, upper = value - error, value + error if bandwidth >= narrowest else total
        elif smoothed.absolute_mass(narrowest) <= narrowest:
            width, value, lower = narrowest, min(total, narrowest), 0.0
            upper = narrowest + smoothed.grid_error(narrowest)
        else:  # as cECE_s falls, an error e of cECE at the fixed point s moves it by at most e
            width = value = root(smoothed.excess, narrowest, 2.0, 1e-14)
            error = smoothed.grid_error(value)
            lower, upper = value - error, value + error
        lower, upper = min(max(0.0, lower), value), max(min(upper, total), value)
        if upper - lower <= 2 * MAX_GRID_ERROR * value:
            break
    width = width if bandwidth is None else float(bandwidth)
    return Certified.bounded(value, lower, upper, exact=False, bandwidth=width, cells=cells)


@convolved_calibration_error.certificate
def _convolved_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Gaussians of width s with centers d apart differ by at most d sqrt(2 / pi) / s in all."""
    # So cECE_s changes by at most M / s. Both the sketch's and the raw cECE_s fall with s: at the larger root
    # L of s (lower - s) = M the raw one is at least lower - M / L = L, hence its fixed point is too; above
    # `upper` the raw fixed point s is at most upper + M / s.
    moved = float(np.sqrt(2 / np.pi)) * float(residual_mass(forecasts) @ reach(forecasts))
    slack, bandwidth = 2 * rounding(forecasts), settings["bandwidth"]
    if bandwidth is not None:
        return widened(measured, min(moved / float(bandwidth), 2.0) + slack)
    margin = 4 * moved
    lower = (measured.lower + np.sqrt(measured.lower**2 - margin)) / 2 if measured.lower**2 >= margin else 0.0
    upper = (measured.upper + np.sqrt(measured.upper**2 + margin)) / 2
    return bracketed(measured, float(lower) - slack, float(upper) + slack)


CONVOLVED = Measure(
    "convolved",
    convolved_calibration_error,
    family="distances",
    meaning="expected calibration error after just enough Gaussian smoothing (SmoothECE)",
    continuous=True,
    sound=True,
    consistency=(0.5, 2.0),
    citation="Błasiok & Nakkiran 2023, Smooth ECE: principled reliability diagrams via kernel smoothing",
    variants=({"bandwidth": 0.1},),
)


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


@accepts_rows
def smoothed_reliability(forecasts: Forecasts, *, bandwidth: float | None = None) -> SmoothedReliability:
    """Return the smoothed reliability curve; by default at the bandwidth of the convolved error.

    Examples
    --------
    >>> curve = smoothed_reliability([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> float(curve.outcome[256] - curve.prediction[256])
    0.25
    """
    if bandwidth is None:
        own = convolved_calibration_error.core(forecasts).details["bandwidth"]
        bandwidth = max(float(own), MIN_BANDWIDTH_CELLS / GRIDS[0])
    else:
        finite_number("bandwidth", bandwidth, MIN_BANDWIDTH_CELLS / GRIDS[0])
    shown = slice(None, None, GRIDS[0] // 512)
    residual = ReflectedGaussian(forecasts.values, forecasts.residuals, GRIDS[0]).density(bandwidth)[shown]
    weight = ReflectedGaussian(forecasts.values, forecasts.weights, GRIDS[0]).density(bandwidth)[shown]
    prediction = np.linspace(0.0, 1.0, len(weight))
    near = weight > RESOLVED
    outcome = np.full(len(weight), np.nan)
    outcome[near] = prediction[near] + residual[near] / weight[near]
    return SmoothedReliability(prediction, outcome, np.maximum(weight, 0.0), bandwidth)
