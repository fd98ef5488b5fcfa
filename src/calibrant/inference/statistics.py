"""Tests whose statistics grow with n: the default, and Spiegelhalter's z and Hosmer-Lemeshow, for reports.

What grows with n on the same forecasts is no measure and has no place in the registry; as rows these go
through the same engine as every measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.omnibus import omnibus_row
from calibrant.measures.bins import bin_starts
from calibrant.measures.registry import null
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.laws import SPIEGELHALTER, Law
from calibrant.measures.registry.lookup import find_measure, measures
from calibrant.measures.registry.papers import BESIDE_MEASURES
from calibrant.measures.registry.row import Measure
from calibrant.measures.registry.tails import log_chi_square_tail, log_normal_tail
from calibrant.numerals import counted
from calibrant.results import NOTHING, Array, Certified
from calibrant.sums import dot, dots


@public
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


@public
def hosmer_lemeshow(forecasts: Forecasts, *, groups: int = 10, fitted: bool = False) -> Certified:
    """Hosmer-Lemeshow statistic over `groups` bins of about equal weight; ties are never split.

    Chi-square with one degree of freedom per bin, or two fewer when the predictions were `fitted` to these
    same outcomes. With weights, counts become effective counts.

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
    return Certified.point(value, bins=len(starts), degrees_of_freedom=_degrees(len(starts), fitted))


def _degrees(bins: int, fitted: bool) -> int:
    """Return the degrees of freedom: one per bin, two fewer where the predictions were fitted to the rows."""
    return bins - (2 if fitted else 0)


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


def _spiegelhalter_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        return dots(residuals, 1 - 2 * forecasts.values) / SPIEGELHALTER.scale(forecasts)

    law = Law("normal", log_normal_tail, math.sqrt(2 / math.pi), lambda forecasts: 1.0)
    return Measure(
        "spiegelhalter",
        spiegelhalter,
        words="Spiegelhalter's z",
        family="classic",
        meaning="Brier score minus what it should be, in standard deviations",
        cost="O(m)",
        citation=BESIDE_MEASURES["spiegelhalter"],
        signed=True,
        null=null.Null(batch=batch, mean=null.zero, law=law, two_sided=True),
    )


def _hosmer_lemeshow_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    settings = hosmer_lemeshow.settings(options)
    starts, spread = _bins(forecasts, settings["groups"])
    degrees = _degrees(len(starts), settings["fitted"])
    if degrees < 1:
        got = f"got {counted(len(starts), 'bin')}"
        raise InvalidInputError(sentence("groups", "must leave a degree of freedom", got))

    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        return _chi_square(np.add.reduceat(residuals, starts, axis=1), spread)

    law = Law(
        f"chi-square with {degrees} degrees of freedom",
        lambda x: log_chi_square_tail(x, degrees),
        float(degrees),
        lambda forecasts: 1.0,
    )
    return Measure(
        "hosmer-lemeshow",
        hosmer_lemeshow,
        words="Hosmer-Lemeshow statistic",
        family="classic",
        meaning="squared residual over variance, summed over bins of equal weight",
        cost="O(m + bins)",
        citation=BESIDE_MEASURES["hosmer-lemeshow"],
        null=null.Null(batch=batch, law=law),
    )


CLASSIC: Mapping[str, Callable[[Forecasts, Mapping[str, Any]], Measure]] = {
    "omnibus": omnibus_row,
    "spiegelhalter": _spiegelhalter_row,
    "hosmer-lemeshow": _hosmer_lemeshow_row,
}
DEFAULT_TEST = "omnibus"


def find_test(name: str, forecasts: Forecasts, options: Mapping[str, Any] = NOTHING) -> Measure:
    """Return the row of a test for these forecasts: of the registry, or one of those above."""
    if name in CLASSIC:
        return CLASSIC[name](forecasts, options)
    if name not in measures():
        raise reject_name("measure", name, [*CLASSIC, *measures()])
    return find_measure(name)
