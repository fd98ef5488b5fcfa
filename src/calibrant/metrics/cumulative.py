"""Functionals of the cumulative curve: Kolmogorov-Smirnov, Kuiper, calibration in the large, O/E ratio."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from calibrant.errors import TooFewRecordsError
from calibrant.forecasts import Forecasts
from calibrant.kernels.cumulative import curve_extremes
from calibrant.metrics.bibliography import CURVE_PAPER, MULTI_PAPER, VALIDATION_PAPER
from calibrant.metrics.calling import measure_function
from calibrant.metrics.certificates import band, rounded, rounding, widened
from calibrant.metrics.null_laws import BROWNIAN_LARGEST, BROWNIAN_RANGE, NORMAL, null_deviation
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.results import Array, Certified, Witness


@measure_function
def kolmogorov_smirnov_error(forecasts: Forecasts) -> Certified:
    """Largest absolute cumulative residual, max |C|; also called ECCE-MAD.

    It looks at all predictions below a threshold. Kuiper's range looks at any interval and sees as much
    from the upper end as from the lower.

    Examples
    --------
    >>> kolmogorov_smirnov_error([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8])
    0.125
    """
    curve = forecasts.curve
    end = int(np.argmax(np.abs(curve)))
    return _interval(forecasts, 0, end, float(np.abs(curve[end])))


@measure_function
def kuiper_error(forecasts: Forecasts) -> Certified:
    """Range of the cumulative residuals, max C - min C; also called ECCE-R.

    It equals the cutoff calibration error: the largest |E[(y - v) 1(v in I)]| over all intervals I. That
    interval is in the details of measure(forecasts, "kuiper").

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
    low, high = curve_extremes(residuals).T
    return np.asarray(high - low)


def _largest(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    low, high = curve_extremes(residuals).T
    return np.asarray(np.maximum(high, -low))


@kolmogorov_smirnov_error.certificate
def _kolmogorov_smirnov_bounds(forecasts: Forecasts, measured: Certified, _: Settings) -> Certified:
    """At least the sketch's value; inside a cell the curve stays in its band."""
    lowest, highest = band(forecasts)
    most = max(measured.value, float(highest.max()), -float(lowest.min()))
    return replace(widened(measured, rounding(forecasts)), upper=most + rounding(forecasts))


@kuiper_error.certificate
def _kuiper_bounds(forecasts: Forecasts, measured: Certified, _: Settings) -> Certified:
    """At least the sketch's value; at most the top of all bands minus the bottom of all."""
    lowest, highest = band(forecasts)
    most = max(0.0, float(highest.max())) - min(0.0, float(lowest.min()))
    upper = max(measured.value, most) + 2 * rounding(forecasts)
    return replace(widened(measured, rounding(forecasts)), upper=upper)


CURVE_MEASURES = (
    Measure(
        "ks",
        kolmogorov_smirnov_error,
        words="Kolmogorov-Smirnov error",
        family="curve",
        meaning="largest cumulative residual over predictions below a threshold",
        symmetric=False,
        sound=True,
        null=Null(_largest, residuals_only=True, power=1, law=BROWNIAN_LARGEST),
        citation=CURVE_PAPER,
    ),
    Measure(
        "kuiper",
        kuiper_error,
        words="Kuiper error",
        family="curve",
        headline=True,
        meaning="largest cumulative residual over any interval of predictions (cutoff calibration error)",
        sound=True,
        decision="a monotone change of the predictions gains a decision at most twice this value (attained)",
        null=Null(_ranges, residuals_only=True, power=1, law=BROWNIAN_RANGE),
        citation=MULTI_PAPER + ", eq. (2)",
    ),
)


@measure_function
def calibration_in_the_large(forecasts: Forecasts) -> Certified:
    """Mean outcome minus mean prediction: signed, positive when predictions are too low on average.

    Examples
    --------
    >>> calibration_in_the_large([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    """
    return Certified.point(float(forecasts.curve[-1]))


def _ends(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    return np.asarray(residuals.sum(axis=1))


# of sums that a sketch keeps exactly
calibration_in_the_large.certificate(lambda forecasts, measured, _: widened(measured, rounding(forecasts)))


@measure_function
def observed_expected_ratio(forecasts: Forecasts) -> Certified:
    """Observed events over expected events (O/E): above 1 when predictions are too low on average.

    The ratio of the mean outcome to the mean prediction, which is the sum of the outcomes over the sum of
    the predictions.

    Examples
    --------
    >>> observed_expected_ratio([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    1.5
    """
    expected = forecasts.mean_prediction
    if not expected > 0:
        raise TooFewRecordsError("the O/E ratio", "needs a prediction above 0", "got none")
    return Certified.point(forecasts.base_rate / expected, observed=forecasts.base_rate, expected=expected)


def _ratios(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    expected = forecasts.mean_prediction
    return 1 + residuals.sum(axis=1) / expected if expected > 0 else None


_RATIO_LAW = replace(NORMAL, scale=lambda f: null_deviation(f) / f.mean_prediction)
observed_expected_ratio.certificate(lambda forecasts, measured, _: rounded(forecasts, measured))


IN_THE_LARGE_MEASURES = (
    Measure(
        "in-the-large",
        calibration_in_the_large,
        family="regression",
        headline=True,
        meaning="mean outcome minus mean prediction; positive when predictions are too low",
        symmetric=False,
        continuous=True,
        signed=True,
        lipschitz=1.0,
        null=Null(_ends, residuals_only=True, mean=lambda *_: 0.0, law=NORMAL, two_sided=True),
        citation="Steyerberg 2019, Clinical prediction models, chapter 15",
    ),
    Measure(
        "o/e",
        observed_expected_ratio,
        words="O/E ratio",
        family="regression",
        meaning="observed over expected events; 1 is right, above 1 when predictions are too low",
        symmetric=False,
        largest=math.inf,
        ideal=1.0,
        signed=True,
        null=Null(_ratios, mean=lambda *_: 1.0, law=_RATIO_LAW, two_sided=True),
        citation=VALIDATION_PAPER,
    ),
)
