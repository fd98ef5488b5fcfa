"""Masses on [0, 1] convolved with a reflected Gaussian, on a grid, with a bound on what the grid costs.

The reflected Gaussian is the heat kernel of [0, 1] with closed ends: cos(pi k t) is damped by
exp(-(pi k s)^2 / 2). So one cosine transform, a product and one transform back smooth at any bandwidth s,
and all reflections are taken into account.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

NARROWEST = 3.0  # cells: from this bandwidth on, what the grid aliases is below rounding
WIDEST = 1e3  # from this bandwidth on the smoothed density is the same everywhere, to the last digit
CURVATURE = 4.0 / float(np.sqrt(2.0 * np.pi * np.e))  # integral of |f''| for the density f of N(0, 1)


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
        """Return the smoothed density of the masses at the nodes."""
        wave = np.pi * min(bandwidth, WIDEST) * np.arange(self.cells + 1)
        return _cosine_transform(self._waves * np.exp(-0.5 * wave**2))

    def absolute_mass(self, bandwidth: float) -> float:
        """Return the integral of the absolute smoothed density, by the trapezoidal rule."""
        density = np.abs(self.density(bandwidth))
        return float(np.sum(density) - (density[0] + density[-1]) / 2.0) / self.cells

    def grid_error(self, bandwidth: float) -> float:
        """Return a bound on how far `absolute_mass` lies from the integral for the masses as given.

        Two parts. Sharing out changes the smoothed density by at most the spread times the curvature of
        the Gaussian. The trapezoidal rule errs by at most h^2 / 8 times the variation of the slope of the
        absolute value; as the slope is 0 at both ends and kinks come only with changes of sign, that is
        at most twice the variation for the density itself; and smoothing by s is smoothing by s / sqrt(2)
        twice, which bounds the latter.
        """
        step, bandwidth = 1.0 / self.cells, min(bandwidth, WIDEST)
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
    """Return x_0 + (-1)^k x_N + 2 sum of x_i cos(pi i k / N)."""
    from scipy.fft import dct

    return np.asarray(dct(x, type=1))
