"""calibration_test: the probability that calibrated forecasts look at least this bad."""

from __future__ import annotations

from typing import Any, Literal

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.engine import Method, TestResult, run_test
from calibrant.inference.statistics import DEFAULT_TEST, find_test
from calibrant.inference.validity import validity_test
from calibrant.measures.registry.calling import of_rows
from calibrant.progress import Progress
from calibrant.seeds import check_drawing


@of_rows
def calibration_test(
    forecasts: Forecasts,
    /,
    *,
    measure: str = DEFAULT_TEST,
    draws: int = 999,
    seed: int | None = None,
    method: Method | Literal["validity"] = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> TestResult:
    """Test whether the forecasts are calibrated, with any measure of the registry as the statistic.

    Under calibration the outcomes are independent Bernoulli(v), so "exact" draws them `draws` times and
    counts: p = (1 + number at least as bad) / (draws + 1). That is valid for any measure at any n, but
    never below 1 / (draws + 1). "asymptotic" uses a limit law where there is one (omnibus, Kuiper, KS, Brier,
    which is Spiegelhalter's test, and calibration in the large) and is right far into the tail. "auto"
    takes the limit law once no level and no single outcome carries much of the variance. "validity" is the
    test of the truthfulness paper: `details["accepted"]` while ATB <= 1/T, with a p-value by Markov's
    inequality, which is valid at any n but far from sharp; its measure is ATB.

    `measure` is any name of the registry, or "omnibus" (Kuiper's range and Cox's score together, the most
    powerful on average over many kinds of error: docs/power.md), "spiegelhalter" or "hosmer-lemeshow", with
    the options of those functions.

    Parameters
    ----------
    measure
        The statistic: a name of the registry, "omnibus", "spiegelhalter" or "hosmer-lemeshow".
    draws, seed
        How many data sets are drawn, and what seeds them; the result records the seed.
    method
        "exact", "asymptotic", "validity", or "auto" to choose between the first two.
    threads, progress
        How many threads draw; `progress` is called with the share that is done.
    **options
        Options of the measure.

    Returns
    -------
    TestResult
        Statistic, p-value, the method that was used, and `rejects(alpha)`.

    Examples
    --------
    >>> result = calibration_test([0, 0, 0, 0, 0, 0], [0.6, 0.6, 0.7, 0.7, 0.8, 0.9], seed=1)
    >>> result.method, result.rejects(0.05)
    ('exact', True)
    """
    check_drawing(draws, seed, threads)
    if method == "validity":
        if measure not in (DEFAULT_TEST, "atb") or options:
            rule = 'must be "atb", without options, for method="validity"'
            raise InvalidInputError(sentence("measure", rule, f"got {measure!r} and {options}"))
        return validity_test(forecasts)
    return run_test(
        forecasts,
        find_test(measure, forecasts, options),
        options,
        method=method,
        draws=draws,
        seed=seed,
        threads=threads,
        progress=progress,
    )
