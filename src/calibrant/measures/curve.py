"""Functionals of the cumulative curve: Kolmogorov-Smirnov, Kuiper, and any weighted error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.calling import public
from calibrant.results import Array, Certified, Witness


@public
def kolmogorov_smirnov_error(forecasts: Forecasts) -> Certified:
    """Largest absolute cumulative residual, max |C|; also called ECCE-MAD.

    It looks at all predictions below a threshold. Kuiper's range looks at any interval and sees as much
    from the upper end as from the lower.

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


@public
def weighted_calibration_error(
    forecasts: Forecasts, *, weight_function: Callable[[Array], Array]
) -> Certified:
    """Absolute value of E[w(v) (y - v)] for a weight function w of your own, called on an array.

    Definition 2.1 of the survey for a class of one function. Calibration means 0 for every w.

    >>> weighted_calibration_error([0, 1], [0.5, 0.5], weight_function=lambda v: 1 - v)
    0.0
    """
    weight = np.asarray(weight_function(forecasts.values), dtype=np.float64)
    if weight.shape not in ((), forecasts.values.shape) or not np.all(np.isfinite(weight)):
        found = f"got shape {weight.shape}" if weight.shape else f"got {weight}"
        raise InvalidInputError(
            sentence("weight_function", "must return one finite number a prediction", found)
        )
    weight = np.broadcast_to(weight, forecasts.values.shape)
    signed = float(forecasts.residuals @ weight)
    return Certified.point(
        abs(signed), Witness(forecasts.values, weight, "the weight function given"), signed=signed
    )
