"""Planning before labeling: how many records detect an error, decide about it, or validate a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, InvalidInputError, TooFewRecordsError, reject_name
from calibrant.fits.levels import expit, logit
from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, pluralize
from calibrant.inference.inversion import hanley_mcneil
from calibrant.inference.net_benefits import critical_value
from calibrant.inference.null import values_of_residuals
from calibrant.inference.testing import DEFAULT_TEST, badness, center_of, find_test
from calibrant.inference.tolerance import records_for_verdict
from calibrant.inputs import checked_predictions, number, open_share, whole_number
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.cox import MAX_LOGIT
from calibrant.metrics.distance.lower import lower_distance
from calibrant.metrics.lookup import find_measure, measure_in_words
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
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
        values, share = self.values[at], counts / n
        known: dict[str, Any] = {"squared_weights": counts / n**2, "counts": counts, "total_weight": float(n)}
        forecasts = Forecasts.from_levels(values, share, share * values, **known)
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
    draws: int = DRAWS,
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
    draws: int = DRAWS,
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


QUANTILES = 20_000  # of the normal distribution that replaces unknown predictions
MIN_WIDTH = 1e-9  # of an interval
MAX_SPREAD = 20.0  # standard deviation of the logits that is looked for


@dataclass(frozen=True, slots=True, repr=False)
class ValidationPlan(Result):
    """`n` records give intervals of the O/E ratio, the slope and the c-statistic of the widths asked for.

    `records` has the number for each of the three; `n` is the largest. `events` are those expected among
    `n`. All assume calibrated predictions with the `base_rate` and the c-statistic `c`.
    """

    n: int
    events: int
    records: Mapping[str, int]
    widths: Mapping[str, float]
    base_rate: float
    c: float
    confidence: float
    slope_variance: float  # of the estimated slope, times the number of records

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence",)

    def widths_at(self, n: int) -> dict[str, float]:
        """Return the expected widths of the three intervals with `n` records."""
        reach = critical_value(self.confidence)
        ratio = math.sqrt((1 - self.base_rate) / (self.base_rate * n))
        events = n * self.base_rate
        ratio_width = 2 * math.sinh(reach * ratio) if reach * ratio < 700 else math.inf
        found = {"o/e": ratio_width, "slope": 2 * reach * math.sqrt(self.slope_variance / n)}
        return {**found, "c-statistic": 2 * reach * math.sqrt(hanley_mcneil(self.c, events, n - events))}

    def __str__(self) -> str:
        parts = (
            f"{find_measure(name).words} {self.widths[name]:g} wide: {n:,}"
            for name, n in self.records.items()
        )
        return (
            f"{pluralize(self.n, 'record')} (about {pluralize(self.events, 'event')}) make the "
            f"{confidence_text(self.confidence)} intervals of a validation as narrow as asked for ("
            f"{'; '.join(parts)}), if predictions are calibrated, {100 * self.base_rate:.3g}% are events "
            f"and the c-statistic is {self.c:.3g}"
        )


@shares_parameters("")
def validation_sample_size(
    predictions: Any = None,
    *,
    base_rate: float | None = None,
    c: float | None = None,
    ratio_width: float = 0.2,
    slope_width: float = 0.2,
    c_width: float = 0.1,
    confidence: float = 0.95,
) -> ValidationPlan:
    """Return how many records an external validation needs for intervals of given widths.

    The formulas are those of Riley et al. (2021, Statistics in Medicine 40, 4230-4251) for a calibrated
    model: the variance of log(O/E) is (1 - base rate) / (n base rate), that of the slope comes from the
    information in the logits of the predictions, and that of the c-statistic from Newcombe's formula.

    Parameters
    ----------
    predictions
        Unlabeled predictions of the model for the population of the validation.
    base_rate, c
        The anticipated share of events and c-statistic, in place of predictions with normal logits.
    ratio_width, slope_width, c_width
        Widths of the intervals of the O/E ratio (at 1), the slope and the c-statistic.

    Examples
    --------
    >>> plan = validation_sample_size(base_rate=0.1, c=0.75)
    >>> plan.n, dict(plan.records)
    (5820, {'o/e': 3469, 'slope': 5820, 'c-statistic': 1008})
    """
    open_share("confidence", confidence)
    widths = {"o/e": ratio_width, "slope": slope_width, "c-statistic": c_width}
    for name, width in zip(("ratio_width", "slope_width", "c_width"), widths.values(), strict=True):
        if not MIN_WIDTH <= number(name, width) < math.inf:
            rule = f"must be a positive number of at least {MIN_WIDTH:g}"
            raise InvalidInputError(name, rule, f"got {width!r}")
    reach = critical_value(confidence)
    if not 0 < reach < math.inf:
        raise InvalidInputError("confidence", "must not be so near 0 or 1", f"got {confidence!r}")
    if not (base_rate is None) == (c is None) == (predictions is not None):
        raise InvalidInputError("predictions", "must be given, or else both base_rate and c")
    if predictions is not None:
        logits = np.clip(logit(checked_predictions(predictions), 1e-13), -MAX_LOGIT, MAX_LOGIT)
    else:
        logits = _normal_logits(open_share("base_rate", base_rate), c)
    rates = expit(logits)
    rate, concordance = float(rates.mean()), _model_concordance(rates)
    variance = _slope_variance(logits, rates)
    draft = ValidationPlan(0, 0, {}, widths, rate, concordance, confidence, variance)
    records = {
        "o/e": math.ceil((1 - rate) / (rate * (math.asinh(ratio_width / 2) / reach) ** 2)),
        "slope": math.ceil(variance / (slope_width / 2 / reach) ** 2),
        "c-statistic": least_number(lambda n: draft.widths_at(n)["c-statistic"] <= c_width, 2),
    }
    n = max(records.values())
    return replace(draft, n=n, events=math.ceil(n * rate), records=records)


def _slope_variance(logit: Array, rates: Array) -> float:
    """Return the variance of the maximum likelihood slope at intercept 0 and slope 1, times n."""
    spread = np.where(np.abs(logit) < MAX_LOGIT, rates * (1 - rates), 0.0)  # 0 and 1 have no logit
    total = float(spread.mean())
    away = logit - float((spread * logit).mean()) / total if total > 0 else logit
    information = float((spread * away**2).mean())
    if not information > 1e-12 * total:
        rule, hint = "needs two different predictions between 0 and 1", "plan for a distance or for records"
        raise TooFewRecordsError("the interval of the calibration slope", rule, hint=hint)
    return 1 / information


def _model_concordance(rates: Array) -> float:
    """Return the c-statistic that calibrated predictions have (van Klaveren et al. 2016)."""
    levels, counts = np.unique(rates, return_counts=True)
    events, others = counts * levels, counts * (1 - levels)
    below = np.cumsum(others) - others / 2
    own = float((rates * (1 - rates)).sum())  # a record is not compared with itself
    pairs = float(events.sum() * others.sum()) - own
    return (float(events @ below) - own / 2) / pairs if pairs > 0 else 0.5


def _normal_logits(base_rate: float, c: float | None) -> Array:
    from scipy.special import ndtri

    wanted = open_share("c", c)
    standard = np.asarray(ndtri((np.arange(QUANTILES) + 0.5) / QUANTILES))

    def logits(spread: float) -> Array:
        middle = root(lambda m: float(expit(m + spread * standard).mean()) - base_rate, -500.0, 500.0, 1e-9)
        return np.asarray(middle + spread * standard)

    def surplus(spread: float) -> float:
        return _model_concordance(expit(logits(spread))) - wanted

    if wanted <= 0.5 or surplus(MAX_SPREAD) < 0:
        most = wanted + surplus(MAX_SPREAD)
        raise InvalidInputError("c", f"must lie between 0.5 and {most:.3g}", f"got {wanted:g}")
    return logits(root(surplus, 1e-6, MAX_SPREAD, 1e-6))
