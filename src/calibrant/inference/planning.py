"""Planning before labelling: how many records are needed, and what a given number can show."""

from __future__ import annotations

from typing import Any

from calibrant.errors import CalibrantError, InvalidInputError, sentence
from calibrant.inference.alternatives import Alternative
from calibrant.inference.plan import Plan
from calibrant.inference.power_study import MOST, MOST_COUNTED, PRECISION, PowerStudy
from calibrant.inference.statistics import DEFAULT_TEST
from calibrant.inference.tolerance import records_for_verdict
from calibrant.numerals import counted
from calibrant.options import open_share, whole_number


def required_samples(
    distance: float | None = None,
    *,
    power: float = 0.9,
    alpha: float = 0.05,
    measure: str | None = None,
    predictions: Any = None,
    alternative: str | Alternative = "shift",
    draws: int = 999,
    seed: int | None = None,
    accept: float | None = None,
    reject: float | None = None,
    confidence: float = 0.95,
) -> Plan:
    """Return how many labelled records detect a given distance, or decide whether it matters.

    Give either a `distance`, to be detected by calibration_test, or `accept` and `reject`, between which
    tolerance_test shall decide with `confidence`, whatever the predictions and the truth.

    `predictions` are unlabelled predictions of the model; 200 quantiles stand for them (uniform if absent).
    The way of being wrong matters: "shift", "overconfident", "underconfident", "local", "alternating"
    (neighbouring predictions err in opposite ways: the hard case of section 5 of the testing paper, on [1/3,
    2/3] unless predictions are given), or a function from those quantiles to the direction in which the
    truth lies off. Its size is set so that the lower distance
    to calibration is `distance`. n grows as 1 / distance^2 (Lemma 1 of the testing paper); the constant
    comes from simulating the test.

    Parameters
    ----------
    distance
        The distance from calibration to be detected.
    power, alpha
        The probability of detection that is wanted, and the level of the test.
    measure
        The statistic of the test; see calibration_test.
    predictions
        Unlabelled predictions of the model; uniform on [0, 1] if absent.
    alternative
        The way of being wrong: "shift", "overconfident", "underconfident", "local", "alternating", or a
        function.
    draws, seed
        How many data sets are drawn, and what seeds them; the result records the seed.
    accept, reject, confidence
        What tolerance_test shall decide between, and how surely; in place of `distance`.

    Returns
    -------
    Plan
        The number of records, with the power that was simulated.

    Examples
    --------
    >>> required_samples(0.1, seed=1, draws=199).n < required_samples(0.05, seed=1, draws=199).n
    True
    >>> required_samples(accept=0.02, reject=0.05).n
    44239
    """
    open_share("confidence", confidence)
    if (distance is None) == (accept is None and reject is None) or (accept is None) != (reject is None):
        rule = "needs either a distance, or both accept and reject"
        raise InvalidInputError(sentence("required_samples", rule))
    if distance is None:
        return _for_tolerance(accept, reject, confidence, measure)  # type: ignore[arg-type]
    study = PowerStudy(predictions, measure or DEFAULT_TEST, alternative, alpha, power, draws, seed)
    truth = study.at_distance(distance)
    high = 16
    while study.power(high, truth) < power:
        high *= 2
        if high > MOST:
            raise CalibrantError(sentence("the test", f"must reach the power by {MOST:,} records"))
    low = high // 2
    while high - low > max(1, PRECISION * high):
        middle = (low + high) // 2
        low, high = (low, middle) if study.power(middle, truth) >= power else (middle, high)
    return study.plan(high, truth)


def _for_tolerance(accept: float, reject: float, confidence: float, measure: str | None) -> Plan:
    used = measure or "lower-distance"
    n = records_for_verdict(accept, reject, confidence, used)
    if n > MOST:
        got = f"got {counted(n, 'record')} for {accept} and {reject}"
        raise CalibrantError(sentence("accept and reject", "must be further apart", got))
    return Plan(n, None, 1.0, 1 - confidence, used, "any", 0, None, accept, reject)


def detectable_distance(
    n: int,
    *,
    power: float = 0.9,
    alpha: float = 0.05,
    measure: str = DEFAULT_TEST,
    predictions: Any = None,
    alternative: str | Alternative = "shift",
    draws: int = 999,
    seed: int | None = None,
) -> Plan:
    """Return the smallest distance from calibration that `n` records detect; options as required_samples.

    Parameters
    ----------
    n
        How many labelled records there are.
    power, alpha
        The probability of detection that is wanted, and the level of the test.
    measure
        The statistic of the test; see calibration_test.
    predictions
        Unlabelled predictions of the model; uniform on [0, 1] if absent.
    alternative
        The way of being wrong: "shift", "overconfident", "underconfident", "local", "alternating", or a
        function.
    draws, seed
        How many data sets are drawn, and what seeds them; the result records the seed.

    Returns
    -------
    Plan
        The distance, with the power that was simulated.

    Examples
    --------
    >>> 0.02 < detectable_distance(1000, seed=1, draws=199).distance < 0.08
    True
    """
    n = whole_number("n", n, 2, MOST_COUNTED)
    study = PowerStudy(predictions, measure, alternative, alpha, power, draws, seed)
    low, high = 0.0, 1.0
    most = study.power(n, study.truth(high))
    if most < power:
        got = f"got power {most:.2f} at best"
        raise CalibrantError(sentence(f"{counted(n, 'record')}", "must be able to reach the power", got))
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if study.power(n, study.truth(middle)) >= power else (middle, high)
    return study.plan(n, study.truth(high))
