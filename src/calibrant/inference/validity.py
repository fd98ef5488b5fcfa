"""The validity test of the truthfulness paper: no simulation, no limit law, accept while ATB <= 1/T."""

from __future__ import annotations

import math

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.engine import TestResult
from calibrant.measures.truthful import averaged_two_bin_error


def validity_test(forecasts: Forecasts) -> TestResult:
    """Test calibration by ATB against 1/T: valid at any n, by Markov's inequality alone.

    Calibrated forecasts have E[ATB] = sum of w^2 v (1 - v) <= 1 / (4 T), so that ATB <= 1/T with probability
    3/4 at least (Lemma 6.2 of the truthfulness paper), and P(ATB >= x) <= 1 / (4 T x) is a p-value.
    With weights, the sum of their squares stands for 1/T.
    """
    if not forecasts.binary:
        hint = "a fraction stands for a known probability; draw 0/1 outcomes from it"
        raise InvalidInputError(sentence("y_true", "must be 0 or 1 for this test", "got fractions", hint))
    if not forecasts.exact:
        raise InvalidInputError(sentence("Forecasts", "must be exact for this test", "got a sketch"))
    limit = float(forecasts.squared_weights.sum())
    value = averaged_two_bin_error(forecasts)
    pvalue = min(1.0, limit / (4 * value)) if value > 0 else 1.0
    accepted = value <= limit * (1 + 1e-12)
    return TestResult(
        "atb",
        value,
        pvalue,
        math.log(pvalue),
        forecasts.null_variance,
        "validity",
        "Markov's inequality: accepted while ATB <= 1/T, as calibration does with probability 3/4 or more",
        forecasts.n,
        0,
        None,
        {"limit": limit, "accepted": accepted},
    )
