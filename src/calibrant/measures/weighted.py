"""The weighted calibration error: the largest bias that weights by the prediction can show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.calling import public
from calibrant.results import Array, Certified, Witness


@public
def weighted_calibration_error(
    forecasts: Forecasts, *, weight_function: Callable[[Array], Array]
) -> Certified:
    """Absolute value of E[w(v) (y - v)] for a weight function w of your own, called on an array.

    Definition 3.1 of the survey for a class of one function. Calibration means 0 for every w.

    Parameters
    ----------
    weight_function
        A function from an array of predictions to a weight for each.

    Returns
    -------
    float
        The absolute mean of the weighted residual.

    Examples
    --------
    >>> weighted_calibration_error([0, 1], [0.5, 0.5], weight_function=lambda v: 1 - v)
    0.0
    """
    weight = np.asarray(weight_function(forecasts.values), dtype=np.float64)
    if weight.shape not in ((), forecasts.values.shape) or not np.all(np.isfinite(weight)):
        got = f"got shape {weight.shape}" if weight.shape else f"got {weight}"
        raise InvalidInputError(
            sentence("weight_function", "must return one finite number per prediction", got)
        )
    weight = np.broadcast_to(weight, forecasts.values.shape)
    signed = float(forecasts.residuals @ weight)
    return Certified.point(
        abs(signed), Witness(forecasts.values, weight, "the weight function given"), signed=signed
    )
