"""Convolved calibration error: the expected calibration error after Gaussian smoothing of the predictions."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.roots import brent
from calibrant.forecasts import Forecasts
from calibrant.measures.reflected import NARROWEST, ReflectedGaussian
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.null import Settings
from calibrant.measures.registry.resolution import bracketed, reach, residual_mass, rounding, widened
from calibrant.measures.registry.row import Measure
from calibrant.options import number
from calibrant.results import Certified

GRIDS = (2**13, 2**16, 2**19)  # cells: the next one is tried while the grid error is not small
SMALL = 1e-3  # grid error, relative to the value


@public
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

    Returns
    -------
    float
        The error; 0 if calibrated.

    Examples
    --------
    >>> round(convolved_calibration_error([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]), 9)
    0.25
    """
    if bandwidth is not None and not 0 < number("bandwidth", bandwidth) < np.inf:
        raise InvalidInputError(sentence("bandwidth", "must be positive and finite", f"got {bandwidth}"))
    total = float(np.sum(np.abs(forecasts.residuals)))  # cECE at bandwidth 0, its largest value
    if bandwidth is None and total <= NARROWEST / GRIDS[-1]:
        return Certified(total, 0.0, total, False, None, MappingProxyType({"bandwidth": total, "cells": 0}))
    for cells in GRIDS:
        smoothed = ReflectedGaussian(forecasts.values, forecasts.residuals, cells)
        measured = (
            _at_fixed_point(smoothed) if bandwidth is None else _at_bandwidth(smoothed, float(bandwidth))
        )
        if measured.upper - measured.lower <= 2 * SMALL * measured.value:
            break
    return measured


def _at_bandwidth(smoothed: ReflectedGaussian, bandwidth: float) -> Certified:
    """Return cECE at a bandwidth; it falls with the bandwidth, so one too narrow for the grid is bounded."""
    narrowest = NARROWEST / smoothed.cells
    width = max(bandwidth, narrowest)
    value, error = smoothed.absolute_mass(width), smoothed.grid_error(width)
    upper = min(value + error, smoothed.total) if bandwidth >= narrowest else smoothed.total
    return _certified(smoothed, value, max(0.0, value - error), upper, bandwidth)


def _at_fixed_point(smoothed: ReflectedGaussian) -> Certified:
    """Return the s with cECE_s = s. As cECE_s falls, an error e of cECE at s moves the point by at most e."""
    narrowest = NARROWEST / smoothed.cells
    if smoothed.absolute_mass(narrowest) <= narrowest:
        upper = min(smoothed.total, narrowest + smoothed.grid_error(narrowest))
        return _certified(smoothed, min(smoothed.total, narrowest), 0.0, upper, narrowest)
    value = brent(lambda s: smoothed.absolute_mass(s) - s, narrowest, 2.0, 1e-14)
    error = smoothed.grid_error(value)
    return _certified(smoothed, value, max(0.0, value - error), min(value + error, smoothed.total), value)


def _certified(
    smoothed: ReflectedGaussian, value: float, lower: float, upper: float, bandwidth: float
) -> Certified:
    details = {"bandwidth": bandwidth, "cells": smoothed.cells}
    return Certified(value, min(lower, value), max(upper, value), False, None, MappingProxyType(details))


@convolved_calibration_error.certified_by
def _convolved_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Gaussians of width s with centres d apart differ by at most d sqrt(2 / pi) / s in all.

    So cECE_s changes by at most M / s. Both the sketch's and the raw cECE_s fall with s: at the larger root
    L of s (lower - s) = M the raw one is at least lower - M / L = L, hence its fixed point is too; above
    `upper` the raw fixed point s is at most upper + M / s.
    """
    moved = float(np.sqrt(2 / np.pi)) * float(residual_mass(forecasts) @ reach(forecasts))
    slack, bandwidth = 2 * rounding(forecasts), settings["bandwidth"]
    if bandwidth is not None:
        return widened(measured, min(moved / float(bandwidth), 2.0) + slack)
    margin = 4 * moved
    lower = (measured.lower + np.sqrt(measured.lower**2 - margin)) / 2 if measured.lower**2 >= margin else 0.0
    upper = (measured.upper + np.sqrt(measured.upper**2 + margin)) / 2
    return bracketed(measured, float(lower) - slack, float(upper) + slack)


ROWS = (
    Measure(
        "convolved",
        convolved_calibration_error,
        words="convolved calibration error",
        largest=1.0,
        family="distances",
        meaning="expected calibration error after just enough Gaussian smoothing (SmoothECE)",
        continuous=True,
        complete=True,
        sound=True,
        consistency=(0.5, 2.0),
        symmetric=True,
        cost="O(m)",
        citation="Błasiok & Nakkiran 2023, Smooth ECE: principled reliability diagrams via kernel smoothing",
        variants=({"bandwidth": 0.1},),
    ),
)
