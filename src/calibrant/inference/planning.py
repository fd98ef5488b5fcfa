"""Planning before labeling: how many records detect an error of a given size, and what they detect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, InvalidInputError, reject_name, reject_rows
from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inference.null import values_of_residuals
from calibrant.inference.testing import DEFAULT_TEST, badness, center_of, find_test
from calibrant.inference.tolerance import records_for_verdict
from calibrant.inputs import check_unit_interval, number, numeric_vector, open_share, whole_number
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.distance.lower import lower_distance
from calibrant.metrics.lookup import measure_in_words
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import check_records
from calibrant.results import Array, Result


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Result):
    """`n` records detect `distance` from calibration with probability `power` at level `alpha`.

    `distance` is the lower distance of the alternative that was tried; `power` is what simulation found. A
    plan for tolerance_test has `accept` and `reject` instead: from `n` records on its verdict is never
    "undecided", whatever the truth, and wrong with probability `alpha` at most.
    """

    n: int
    distance: float | None
    power: float
    alpha: float
    measure: str
    alternative: str
    draws: int
    seed: int | None
    accept: float | None = None
    reject: float | None = None

    DERIVED: ClassVar[tuple[str, ...]] = ("least",)

    @property
    def least(self) -> int:
        """The number of records below which no test can do this for every model (Lemma 1, testing paper)."""
        if self.distance is not None:
            return least_records(self.distance, self.alpha, self.power)
        return least_records((self.reject or 0.0) - (self.accept or 0.0), self.alpha, 1 - self.alpha)

    def __str__(self) -> str:
        limit = f"where all predictions are near 1/2, no test can with fewer than {self.least:,}"
        if self.distance is None:
            return (
                f"{pluralize(self.n, 'record')} always decide between a distance from calibration below "
                f"{self.reject:g} and one above {self.accept:g}, wrongly with probability {self.alpha:.2g} "
                f"at most, by {measure_in_words(self.measure)}; {limit}"
            )
        return (
            f"{pluralize(self.n, 'record')} detect a distance of {self.distance:.4f} from calibration "
            f"({self.alternative}) with power {self.power:.2f} at level {self.alpha:g}, "
            f"by the {measure_in_words(self.measure)} (seed {self.seed}); {limit}"
        )


def least_records(distance: float, alpha: float, power: float) -> int:
    """Return how many records the most powerful test needs in the example of Lemma 1 of the testing paper."""
    from scipy.stats import binom

    if distance >= 0.5 or power <= alpha:
        return 1

    def reached(n: int) -> float:  # all predict 1/2 + distance, the rate is that or 1/2
        cut = int(binom.ppf(alpha, n, 0.5 + distance))  # rejected below it, and at it with some probability
        below, at = binom.cdf(cut - 1, n, 0.5 + distance), binom.pmf(cut, n, 0.5 + distance)
        return float(binom.cdf(cut - 1, n, 0.5) + (alpha - below) / at * binom.pmf(cut, n, 0.5))

    return least_number(lambda n: reached(n) >= power)


def least_number(
    suffices: Callable[[int], bool], high: int = 1, precision: float = 0.0, most: float = math.inf
) -> int:
    """Return the least number that suffices, as all larger ones do, or one within `precision` of it."""
    while not suffices(high):
        high *= 2
        if high > most:
            raise CalibrantError("the test", f"must reach the power by {most:,} records")
    low = high // 2
    while high - low > max(1, precision * high):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


Alternative = Callable[[Array], Array]


def random_signs(values: Array, blocks: int) -> Array:
    """Return one sign for each of `blocks` stretches of the predictions; always the same signs."""
    signs = np.random.default_rng(blocks).choice([-1.0, 1.0], blocks)
    return np.asarray(signs[np.arange(len(values)) * blocks // len(values)])


ALTERNATIVES: dict[str, Alternative] = {
    "shift": lambda v: np.full(len(v), 1.0 if v.mean() < 0.5 else -1.0),  # all to the side with more space
    "overconfident": lambda v: 1 - 2 * v,  # true probabilities lie nearer to the middle than predicted
    "underconfident": lambda v: 2 * v - 1,
    "local": lambda v: np.maximum(0.0, 1 - np.abs(v - np.median(v)) / 0.1),  # a bump around the median
    "alternating": lambda v: random_signs(v, len(v)),  # neighbors err in opposite ways, which nearly cancels
}


LEVELS = 200  # quantiles that represent the predictions: one level holds many records, at any n
MAX_RECORDS = 10**9  # records that are looked for
MAX_COUNTED_RECORDS = 10**15  # records whose shares are still counted one by one in floats
PRECISION = 0.02  # relative, of what is searched for


class PowerStudy:
    def __init__(
        self,
        predictions: Any,
        measure: str,
        alternative: str | Alternative,
        alpha: float,
        power: float,
        draws: int,
        seed: int | None,
    ) -> None:
        for name, value in (("alpha", alpha), ("power", power)):
            open_share(name, value)
        if power <= alpha:
            hint = "a test rejects calibrated forecasts with probability alpha"
            raise InvalidInputError("power", f"must exceed alpha, {alpha:g}", f"got {power:g}", hint)
        self.alpha = alpha
        self.measure = measure
        self.draws, self.seed = checked_draws(draws), recorded_seed(seed)
        if alpha * (self.draws + 1) < 1:
            raise InvalidInputError("draws", f"must be at least 1 / alpha = {1 / alpha:.0f}", f"got {draws}")
        self.values = (np.arange(LEVELS) + 0.5) / LEVELS  # uniform predictions
        if predictions is not None:
            given = checked_predictions(predictions)
            self.values = np.quantile(given, self.values, method="inverted_cdf")
        if alternative == "alternating" and predictions is None:
            self.values = (1 + self.values) / 3  # D_theta of the testing paper: u_i = 1/3 + i / (3 t)
        if callable(alternative):
            self.name = getattr(alternative, "__name__", "custom")
            self.direction = _own_direction(alternative, self.values)
        elif alternative in list(ALTERNATIVES):
            self.name = alternative
            self.direction = ALTERNATIVES[alternative](self.values)
        else:
            raise reject_name("alternative", alternative, list(ALTERNATIVES))

    def truth(self, size: float) -> Array:
        return np.clip(self.values + size * self.direction, 0.0, 1.0)

    def at_distance(self, distance: float) -> Array:
        blocks = LEVELS if self.name == "alternating" else 1
        while blocks > 1 and self.distance(self.truth(1 / 3)) < distance:
            blocks //= 2  # signs alternate as often as the distance allows: the more often, the more cancels
            self.direction = random_signs(self.values, blocks)
        largest = self.distance(self.truth(1.0))
        if not 0 < number("distance", distance) <= largest:
            got = f"got {distance}"
            raise InvalidInputError("distance", f"must lie in (0, {largest:.4g}] for these predictions", got)
        size = root(lambda a: self.distance(self.truth(a)) - distance, 0.0, 1.0, 1e-5)
        return self.truth(size)

    def distance(self, truth: Array) -> float:
        if np.array_equal(truth, self.values):
            return 0.0
        return lower_distance(Forecasts.of_checked(check_records(truth, self.values)), tolerance=1e-5)

    def power(self, n: int, truth: Array) -> float:
        generator = np.random.default_rng(self.seed)
        at, counts = self._records(n)
        values = self.values[at]
        forecasts = Forecasts.from_levels(
            values,
            counts / n,
            counts / n * values,
            squared_weights=counts / n**2,
            counts=counts,
            total_weight=float(n),
        )
        null, other = (
            self._statistics(forecasts, generator.binomial(counts, chances, size=(self.draws, len(at))) / n)
            for chances in (values, truth[at])
        )
        # an outcome that was impossible has an infinite statistic, of which there is nothing to take away
        least = np.subtract(other, 1e-9 * np.abs(other) + 1e-15, where=np.isfinite(other), out=other.copy())
        reached = len(null) - np.searchsorted(np.sort(null), least)
        return float(np.mean((1 + reached) / (len(null) + 1) <= self.alpha))

    def _records(self, n: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        """Return where each level with a record starts, and how many records it has."""
        starts, times = np.unique(self.values, return_index=True, return_counts=True)[1:]
        counts = np.diff(np.rint(np.cumsum(times) * (n / LEVELS)).astype(np.int64), prepend=0)
        return starts[counts > 0], counts[counts > 0]

    def _statistics(self, forecasts: Forecasts, outcomes: Array) -> Array:
        row = find_test(self.measure, forecasts)
        values = values_of_residuals(forecasts, row, outcomes - forecasts.weights * forecasts.values)
        return np.asarray(badness(row, values, center_of(forecasts, row)))

    def plan(self, n: int, truth: Array) -> Plan:
        found = self.distance(truth), self.power(n, truth)
        return Plan(n, *found, self.alpha, self.measure, self.name, self.draws, self.seed)


def _own_direction(alternative: Alternative, values: Array) -> Array:
    rule = "must be a function that returns a finite number per quantile"
    try:
        direction = np.asarray(alternative(values.copy()), dtype=np.float64)
    except Exception as error:  # the user's function may raise anything
        got = f"it raised {type(error).__name__}: {error}"
        raise InvalidInputError("alternative", rule, got) from error
    if direction.shape not in ((), values.shape) or not np.isfinite(direction).all():
        got = f"got shape {direction.shape} for {len(values)} quantiles"
        got = "got infinity or NaN" if direction.shape in ((), values.shape) else got
        raise InvalidInputError("alternative", rule, got)
    return np.broadcast_to(direction, values.shape)


def checked_predictions(
    predictions: Any, name: str = "predictions", hint: str = "leave such rows out"
) -> Array:
    given = numeric_vector(predictions, name).astype(np.float64)
    reject_rows(name, "must not be missing", given, np.isnan(given), hint)
    check_unit_interval(given, name)
    return given


_TEST_AND_ERROR = """\
power, alpha
    The probability of detection that is wanted, and the level of the test.
measure
    The statistic of the test; see calibration_test.
predictions
    Unlabeled predictions of the model; uniform on [0, 1] if absent.
alternative
    The way of being wrong: "shift", "overconfident", "underconfident", "local", "alternating", or a function.
"""


@shares_parameters(_TEST_AND_ERROR)
def required_samples(
    distance: float | None = None,
    *,
    power: float = 0.9,
    alpha: float = 0.05,
    measure: str | None = None,
    predictions: Any = None,
    alternative: str | Alternative = "shift",
    draws: int = 999,
    seed: int | None = 0,
    accept: float | None = None,
    reject: float | None = None,
    confidence: float = 0.95,
) -> Plan:
    """Return how many labeled records detect a given distance, or decide whether it matters.

    200 quantiles represent the predictions. The way of being wrong matters: "alternating" is the hard case of
    section 5 of the testing paper (neighboring predictions err in opposite ways, on [1/3, 2/3] unless
    predictions are given); a function maps those quantiles to the direction in which the truth lies off. Its
    size is set so that the lower distance to calibration is `distance`. n grows as 1 / distance^2 (Lemma 1 of
    the testing paper); the constant comes from simulating the test.

    Parameters
    ----------
    distance
        The distance from calibration to be detected by calibration_test.
    accept, reject, confidence
        What tolerance_test must decide between, and how surely, whatever the truth; in place of `distance`.

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
        raise InvalidInputError("required_samples", rule)
    if accept is not None and reject is not None:
        used = measure or "lower-distance"
        n = records_for_verdict(accept, reject, confidence, used)
        if n > MAX_RECORDS:
            got = f"got {pluralize(n, 'record')} for {accept} and {reject}"
            raise CalibrantError("accept and reject", "must be further apart", got)
        return Plan(n, None, 1.0, 1 - confidence, used, "any", 0, None, accept, reject)
    assert distance is not None
    study = PowerStudy(predictions, measure or DEFAULT_TEST, alternative, alpha, power, draws, seed)
    truth = study.at_distance(distance)
    n = least_number(lambda n: study.power(n, truth) >= power, 16, PRECISION, MAX_RECORDS)
    return study.plan(n, truth)


@shares_parameters(_TEST_AND_ERROR)
def detectable_distance(
    n: int,
    *,
    power: float = 0.9,
    alpha: float = 0.05,
    measure: str = DEFAULT_TEST,
    predictions: Any = None,
    alternative: str | Alternative = "shift",
    draws: int = 999,
    seed: int | None = 0,
) -> Plan:
    """Return the smallest distance from calibration that `n` records detect; options as required_samples.

    Parameters
    ----------
    n
        How many labeled records there are.

    Examples
    --------
    >>> 0.02 < detectable_distance(1000, seed=1, draws=199).distance < 0.08
    True
    """
    n = whole_number("n", n, 2, MAX_COUNTED_RECORDS)
    study = PowerStudy(predictions, measure, alternative, alpha, power, draws, seed)
    low, high = 0.0, 1.0
    most = study.power(n, study.truth(high))
    if most < power:
        got = f"got power {most:.2f} at best"
        raise CalibrantError(f"{pluralize(n, 'record')}", "must be able to reach the power", got)
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if study.power(n, study.truth(middle)) >= power else (middle, high)
    return study.plan(n, study.truth(high))
