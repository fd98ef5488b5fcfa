"""tolerance_test: is the distance from calibration below what matters, or is it too early to say?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.errors import Hint, InvalidInputError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, pluralize
from calibrant.inference.bootstrap import Resampler, resampled_deviations, upper_quantile
from calibrant.inference.intervals import (
    EXPECTED_DEVIATION,
    ROOTS,
    around_roots,
    check_resampling,
    guaranteed_limits,
)
from calibrant.inference.null import Drawing
from calibrant.inputs import number, open_share
from calibrant.metrics.calling import accepts_rows
from calibrant.metrics.lookup import find_measure, measure_in_words
from calibrant.metrics.lookup import measure as take
from calibrant.parallel import DRAWS, Progress
from calibrant.results import Result

DISTANCE_PRECISION = 1e-6  # to which the lower distance itself is computed
# These decide about the lower distance, the others about themselves (Definition 5 of the testing paper):
# distance <= factor * measure, and distance >= measure / factor (Lemma 12)
FACTOR = {"smooth": 2.0, "lower-distance": 1.0}


@dataclass(frozen=True, slots=True, repr=False)
class ToleranceResult(Result):
    """A verdict on the distance from calibration, and the bounds it rests on.

    `lower` and `upper` bound the population's lower distance to calibration, each with the confidence
    given. "accept": the distance is below `reject`. "reject": it is above `accept`. "undecided": neither is
    sure. A wrong verdict has probability at most 1 - confidence, whichever side the truth is on.
    """

    verdict: Literal["accept", "reject", "undecided"]
    measure: str
    value: float
    lower: float
    upper: float
    accept: float
    reject: float
    confidence: float
    method: str
    n: int
    draws: int
    seed: int | None

    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.method == "guaranteed" else ("lower", "upper", "verdict")

    def __str__(self) -> str:
        what = "the distance from calibration" if self.measure in FACTOR else "the error"
        says = {
            "accept": f"Accepted: {what} is below {self.reject:g}",
            "reject": f"Rejected: {what} is above {self.accept:g}",
            "undecided": f"Undecided: {what} may be below {self.accept:g} or above {self.reject:g}",
        }[self.verdict]
        seed = "" if self.seed is None else f", seed {self.seed}"
        return (
            f"{says} ({format_value(self.lower)} to {format_value(self.upper)} at confidence "
            f"{self.confidence:g}; "
            f"{pluralize(self.n, 'record')}, {measure_in_words(self.measure)}, {self.method}{seed})."
        )


@accepts_rows
def tolerance_test(
    forecasts: Forecasts,
    *,
    accept: float,
    reject: float,
    confidence: float = 0.95,
    measure: str = "lower-distance",
    method: Literal["guaranteed", "bootstrap"] = "guaranteed",
    draws: int = DRAWS,
    seed: int | None = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ToleranceResult:
    """Accept forecasts whose distance from calibration is below `accept`, reject those above `reject`.

    Between the two either answer is right. "smooth" is quicker than "lower-distance" and needs
    reject > 4 accept, because it only knows the distance up to a factor 2 either way (Theorems 3 and 4 of the
    testing paper, here with constants).

    Parameters
    ----------
    accept, reject
        Distances below the first are to be accepted, above the second rejected.
    measure
        "lower-distance" or "smooth" for the distance; "ece", "kuiper", "ks", "atb", "l1-atb", "kernel" or
        "emd" for that measure itself.
    method
        "guaranteed", by bounds that hold at any n; or "bootstrap", shorter and approximate.

    Examples
    --------
    >>> tolerance_test([0, 1] * 2000, [0.5] * 4000, accept=0.02, reject=0.1).verdict
    'accept'
    """
    _check(accept, reject, confidence, measure, method)
    drawing = Drawing.checked(draws, seed, threads, progress)
    measured, proven = take(forecasts, measure), method == "guaranteed"
    if proven:
        lower, upper = guaranteed_limits(forecasts, measured, 1 - confidence)
    else:
        check_resampling(forecasts.n)
        resampler, row = Resampler(forecasts), find_measure(measure)
        center = float(row.function.core(forecasts.with_outcomes(resampler.center)))
        reach = upper_quantile(np.asarray(resampled_deviations(row, resampler, drawing)), confidence)
        ends = min(measured.lower, center), max(measured.upper, center)
        lower, upper = around_roots(*ends, reach, reach, ROOTS.get(measure, 1))
    factor = FACTOR.get(measure, 1.0)
    lower, upper = lower / factor, min(1.0, upper * factor)
    below_reject, above_accept = upper < reject, lower > accept
    if below_reject and above_accept:  # surely between the two: either is right, the nearer limit decides
        below_reject = measured.value <= (accept + reject) / 2
    return ToleranceResult(
        verdict="accept" if below_reject else "reject" if above_accept else "undecided",
        measure=measure,
        value=measured.value,
        lower=lower,
        upper=upper,
        accept=accept,
        reject=reject,
        confidence=confidence,
        method="guaranteed" if proven else "bootstrap (approximate)",
        n=forecasts.n,
        draws=0 if proven else drawing.draws,
        seed=None if proven else drawing.seed,
    )


def records_for_verdict(accept: float, reject: float, confidence: float, measure: str) -> int:
    """Return from how many records on the guaranteed interval is narrower than the gap of the limits."""
    _check(accept, reject, confidence, measure, "guaranteed")
    factor, power = FACTOR.get(measure, 1.0), ROOTS.get(measure, 1)
    gap = math.pow(reject / factor, 1 / power) - math.pow(accept * factor, 1 / power) - DISTANCE_PRECISION
    if gap <= 0:
        got = f"got {accept} and {reject}"
        raise InvalidInputError("accept and reject", "must be further apart", got)
    width = 2 * math.sqrt(2 * math.log(1 / (1 - confidence))) + EXPECTED_DEVIATION[measure]
    return math.floor((width / gap) ** 2) + 1


def _check(accept: float, reject: float, confidence: float, measure: str, method: str) -> None:
    open_share("confidence", confidence)
    if measure not in EXPECTED_DEVIATION:
        raise reject_name("measure", measure, list(EXPECTED_DEVIATION))
    if method not in ("guaranteed", "bootstrap"):
        raise reject_name("method", method, ["guaranteed", "bootstrap"])
    if not 0 <= number("accept", accept) < number("reject", reject) <= 1:
        got = f"got accept {accept} and reject {reject}"
        raise InvalidInputError("accept and reject", "must be 0 <= accept < reject <= 1", got)
    if measure == "smooth" and reject <= 4 * accept:
        got, hint = f"got {reject} and {accept}", Hint("{} has no such limit", measure="lower-distance")
        raise InvalidInputError("reject", "must exceed 4 accept for smooth", got, hint)
