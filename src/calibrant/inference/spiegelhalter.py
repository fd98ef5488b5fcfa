"""Spiegelhalter's z, which grows with n: the Brier score in standard deviations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrant.errors import TooFewRecordsError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.registry import null
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.laws import SPIEGELHALTER
from calibrant.measures.registry.papers import BESIDE_MEASURES
from calibrant.measures.registry.row import Measure
from calibrant.results import Array, Certified
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
        null=null.Null(batch=batch, mean=null.zero, law=law, two_sided=True),
    )
