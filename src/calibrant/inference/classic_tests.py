"""The test of Hosmer and Lemeshow, which grows with n: squared residuals of bins over their variance.

Spiegelhalter's z, which grows with n: the Brier score in standard deviations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.metrics import registry
from calibrant.metrics.bibliography import BESIDE_MEASURES
from calibrant.metrics.binned import bin_starts
from calibrant.metrics.calling import measure_function
from calibrant.metrics.null_laws import SPIEGELHALTER, Law, log_chi_square_tail
from calibrant.metrics.registry import Measure
from calibrant.parallel import dot, dots
from calibrant.results import Array, Certified


@measure_function
def hosmer_lemeshow(forecasts: Forecasts, *, groups: int = 10, fitted: bool = False) -> Certified:
    """Hosmer-Lemeshow statistic over `groups` bins of about equal weight; ties are never split.

    Chi-square with one degree of freedom per bin, or two fewer when the predictions were `fitted` to these
    same outcomes. A bin of predictions that are all 0, or all 1, cannot vary and has none. With weights,
    counts become effective counts.

    Parameters
    ----------
    groups
        How many bins.
    fitted
        Whether the predictions were fitted to these same outcomes.

    Returns
    -------
    float
        The statistic, with degrees of freedom and p-value where it is printed.

    Examples
    --------
    >>> round(hosmer_lemeshow([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5], groups=1), 6)
    1.0
    """
    starts, spread = _bins(forecasts, groups)
    residual = np.add.reduceat(forecasts.residuals, starts)
    value = float(_chi_square(residual[None], spread)[0])
    return Certified.point(value, bins=len(starts), degrees_of_freedom=_degrees(spread, fitted))


def _degrees(spread: Array, fitted: bool) -> int:
    """Return the degrees of freedom: one per bin that varies, two fewer where predictions were fitted."""
    varied = int(np.count_nonzero(spread > 0))
    return max(1, varied) - (2 if fitted else 0)  # where none varies, the statistic is 0 or infinite


def _bins(forecasts: Forecasts, groups: int) -> tuple[npt.NDArray[np.intp], Array]:
    """Return where the bins start, and the variance of each bin's residual."""
    starts = bin_starts(forecasts, groups, "quantile")
    weight = np.add.reduceat(forecasts.weights, starts)
    mean, rest = (
        np.add.reduceat(forecasts.weights * share, starts) / weight
        for share in (forecasts.values, 1 - forecasts.values)  # 1 - mean would lose its digits next to 1
    )
    return starts, np.add.reduceat(forecasts.squared_weights, starts) * mean * rest


def _chi_square(residuals: Array, spread: Array) -> Array:
    """Sum squared residuals over their variance; a bin that cannot vary counts only if it did."""
    certain = spread <= 0
    with np.errstate(over="ignore"):  # an event that was next to impossible: infinite
        terms = np.square(residuals) / np.where(certain, 1.0, spread)
    terms[:, certain] = np.where(np.abs(residuals[:, certain]) > 1e-12, np.inf, 0.0)
    return np.asarray(terms.sum(axis=1))


def _least_varied(forecasts: Forecasts, groups: int) -> Array:
    """Mark the bin that varies least: chi-square needs a residual that is nearly normal in every bin."""
    starts, spread = _bins(forecasts, groups)
    least = int(np.argmin(np.where(spread > 0, spread, np.inf)))  # a bin that cannot vary adds nothing
    bin_of = np.repeat(np.arange(len(starts)), np.diff(starts, append=forecasts.levels))
    return np.asarray(bin_of == least, dtype=np.float64)


def hosmer_lemeshow_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    settings = hosmer_lemeshow.settings(options)
    starts, spread = _bins(forecasts, settings["groups"])
    degrees = _degrees(spread, settings["fitted"])
    if degrees < 1:
        got = f"got {pluralize(len(starts), 'bin')}"
        raise InvalidInputError(sentence("groups", "must leave a degree of freedom", got))

    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        return _chi_square(np.add.reduceat(residuals, starts, axis=1), spread)

    law = Law(
        f"chi-square with {degrees} degrees of freedom",
        lambda x: log_chi_square_tail(x, degrees),
        float(degrees),
        lambda forecasts: 1.0,
        leverage=lambda others: _least_varied(others, settings["groups"]),
    )
    return Measure(
        "hosmer-lemeshow",
        hosmer_lemeshow,
        words="Hosmer-Lemeshow statistic",
        family="classic",
        meaning="squared residual over variance, summed over bins of equal weight",
        cost="O(m + bins)",
        citation=BESIDE_MEASURES["hosmer-lemeshow"],
        null=registry.Null(batch=batch, law=law),
    )


@measure_function
def spiegelhalter(forecasts: Forecasts) -> Certified:
    """Spiegelhalter's z: Brier score minus its mean under calibration, in standard deviations.

    Positive when the forecasts do worse than they claim (overconfident), negative when better. Blind to
    errors that leave the Brier score where it was expected: at v = 1/2 it sees nothing.

    Returns
    -------
    float
        z; standard normal in large samples if calibrated.

    Examples
    --------
    >>> round(spiegelhalter([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]), 6)
    -0.833333
    """
    scale = SPIEGELHALTER.scale(forecasts)
    if scale == 0.0:
        raise TooFewRecordsError(
            sentence("Spiegelhalter's z", "needs a prediction other than 0, 1/2 and 1", "got none")
        )
    return Certified.point(dot(forecasts.residuals, 1 - 2 * forecasts.values) / scale)


def spiegelhalter_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        return dots(residuals, 1 - 2 * forecasts.values) / SPIEGELHALTER.scale(forecasts)

    law = replace(SPIEGELHALTER, name="normal", scale=lambda forecasts: 1.0)
    return Measure(
        "spiegelhalter",
        spiegelhalter,
        words="Spiegelhalter's z",
        family="classic",
        meaning="Brier score minus what it should be, in standard deviations",
        cost="O(m)",
        citation=BESIDE_MEASURES["spiegelhalter"],
        signed=True,
        null=registry.Null(batch=batch, mean=registry.zero, law=law, two_sided=True),
    )
