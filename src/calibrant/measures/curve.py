"""Functionals of the cumulative curve: Kolmogorov-Smirnov and Kuiper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.kernels.curves import curve_extremes
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.laws import BROWNIAN_LARGEST, BROWNIAN_RANGE
from calibrant.measures.registry.null import Null, Settings
from calibrant.measures.registry.papers import CURVE_PAPER, MULTI_PAPER
from calibrant.measures.registry.resolution import band, rounding, widened
from calibrant.measures.registry.row import Measure
from calibrant.results import Array, Certified, Witness


@public
def kolmogorov_smirnov_error(forecasts: Forecasts) -> Certified:
    """Largest absolute cumulative residual, max |C|; also called ECCE-MAD.

    It looks at all predictions below a threshold. Kuiper's range looks at any interval and sees as much
    from the upper end as from the lower.

    Returns
    -------
    float
        The error; 0 if calibrated.

    Examples
    --------
    >>> kolmogorov_smirnov_error([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8])
    0.125
    """
    curve = forecasts.curve
    end = int(np.argmax(np.abs(curve)))
    return _interval(forecasts, 0, end, float(np.abs(curve[end])))


@public
def kuiper_error(forecasts: Forecasts) -> Certified:
    """Range of the cumulative residuals, max C - min C; also called ECCE-R.

    It equals the cutoff calibration error: the largest |E[(y - v) 1(v in I)]| over all intervals I. That
    interval is in the details of measure(forecasts, "kuiper").

    Returns
    -------
    float
        The error; 0 if calibrated.

    Examples
    --------
    >>> kuiper_error([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8])
    0.225
    """
    curve = forecasts.curve
    low, high = int(np.argmin(curve)), int(np.argmax(curve))
    return _interval(forecasts, min(low, high), max(low, high), float(curve[high] - curve[low]))


def _interval(forecasts: Forecasts, start: int, stop: int, value: float) -> Certified:
    """Return the value with the levels start..stop-1 that attain it, and in which direction."""
    sign = 1.0 if forecasts.curve[stop] >= forecasts.curve[start] else -1.0
    inside = np.zeros(forecasts.levels)
    inside[start:stop] = sign
    direction = "none" if stop == start else "too low" if sign > 0 else "too high"
    first, last = (start, stop - 1) if stop > start else (0, 0)
    meaning = f"{sign:+.0f} on the interval of predictions where the residuals add up most"
    return Certified.point(
        value,
        Witness(forecasts.values, inside, meaning),
        start=float(forecasts.values[first]),
        stop=float(forecasts.values[last]),
        predictions=direction,
    )


def _ranges(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Kuiper: max C - min C, C_0 = 0 included."""
    low, high = curve_extremes(residuals).T
    return np.asarray(high - low)


def _largest(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Kolmogorov-Smirnov: max |C|."""
    low, high = curve_extremes(residuals).T
    return np.asarray(np.maximum(high, -low))


@kolmogorov_smirnov_error.certified_by
def _kolmogorov_smirnov_bounds(forecasts: Forecasts, measured: Certified, _: Settings) -> Certified:
    """At least the sketch's value; inside a cell the curve stays in its band."""
    lowest, highest = band(forecasts)
    most = max(measured.value, float(highest.max()), -float(lowest.min()))
    return replace(widened(measured, rounding(forecasts)), upper=most + rounding(forecasts))


@kuiper_error.certified_by
def _kuiper_bounds(forecasts: Forecasts, measured: Certified, _: Settings) -> Certified:
    """At least the sketch's value; at most the top of all bands minus the bottom of all."""
    lowest, highest = band(forecasts)
    most = max(0.0, float(highest.max())) - min(0.0, float(lowest.min()))
    return replace(
        widened(measured, rounding(forecasts)), upper=max(measured.value, most) + 2 * rounding(forecasts)
    )


ROWS = (
    Measure(
        "ks",
        kolmogorov_smirnov_error,
        words="Kolmogorov-Smirnov error",
        largest=1.0,
        family="curve",
        meaning="largest cumulative residual over predictions below a threshold",
        complete=True,
        sound=True,
        null=Null(_largest, residuals_only=True, power=1, law=BROWNIAN_LARGEST),
        cost="O(m)",
        citation=CURVE_PAPER,
    ),
    Measure(
        "kuiper",
        kuiper_error,
        words="Kuiper error",
        largest=1.0,
        family="curve",
        headline=True,
        meaning="largest cumulative residual over any interval of predictions (cutoff calibration error)",
        complete=True,
        sound=True,
        symmetric=True,
        decision="bounds what any decision by a threshold or interval of the prediction gets wrong",
        null=Null(_ranges, residuals_only=True, power=1, law=BROWNIAN_RANGE),
        cost="O(m)",
        citation=MULTI_PAPER + ", eq. (2)",
    ),
)
