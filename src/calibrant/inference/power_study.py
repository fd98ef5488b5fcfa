"""The power of a test at a number of records and a distance from calibration, simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, reject_rows, sentence
from calibrant.fits.roots import brent
from calibrant.forecasts import Forecasts
from calibrant.inference.alternatives import ALTERNATIVES, Alternative, random_signs
from calibrant.inference.engine import badness, centre_of
from calibrant.inference.null_outcomes import one_by_one
from calibrant.inference.plan import Plan
from calibrant.inference.statistics import find_test
from calibrant.inputs import check_unit_interval, numeric_vector
from calibrant.measures.distances.lower import lower_distance
from calibrant.options import number, open_share
from calibrant.records import check_records
from calibrant.results import Array
from calibrant.seeds import checked_draws, recorded_seed

LEVELS = 200  # quantiles that stand for the predictions: one level holds many records, at any n
MOST = 10**9  # records that are looked for
MOST_COUNTED = 10**15  # records whose shares are still counted one by one in floats
PRECISION = 0.02  # relative, of what is searched for


class PowerStudy:
    """One test against one kind of alternative, at any n and any size of the error.

    `values` are LEVELS quantiles in ascending order; a prediction that is common occurs among them often.
    """

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
            raise InvalidInputError(
                sentence("power", f"must exceed alpha, {alpha:g}", f"got {power:g}", hint)
            )
        self.alpha = alpha
        self.measure = measure
        self.draws, self.seed = checked_draws(draws), recorded_seed(seed)
        if alpha * (self.draws + 1) < 1:
            raise InvalidInputError(
                sentence("draws", f"must be at least 1 / alpha = {1 / alpha:.0f}", f"got {draws}")
            )
        self.values = _quantiles(predictions)
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
        """Return the true probabilities when the error has this size."""
        return np.clip(self.values + size * self.direction, 0.0, 1.0)

    def at_distance(self, distance: float) -> Array:
        """Return the true probabilities that put the predictions at this lower distance."""
        if self.name == "alternating":
            self._widen(distance)
        largest = self.distance(self.truth(1.0))
        if not 0 < number("distance", distance) <= largest:
            got = f"got {distance}"
            raise InvalidInputError(
                sentence("distance", f"must lie in (0, {largest:.4g}] for these predictions", got)
            )
        size = brent(lambda a: self.distance(self.truth(a)) - distance, 0.0, 1.0, 1e-5)
        return self.truth(size)

    def _widen(self, distance: float) -> None:
        """Let signs alternate as often as the distance allows: the oftener, the more errors cancel."""
        blocks = LEVELS
        while blocks > 1 and self.distance(self.truth(1 / 3)) < distance:
            blocks //= 2
            self.direction = random_signs(self.values, blocks)

    def distance(self, truth: Array) -> float:
        """Return the lower distance of predictions whose outcome rates are `truth`."""
        if np.array_equal(truth, self.values):
            return 0.0
        return lower_distance(Forecasts.of_checked(check_records(truth, self.values)), tolerance=1e-5)

    def power(self, n: int, truth: Array) -> float:
        """Return the probability of rejection, from as many simulated sets under each hypothesis."""
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
        """Return where each level with a record starts, and its records: in proportion to its quantiles."""
        starts, times = np.unique(self.values, return_index=True, return_counts=True)[1:]
        counts = np.diff(np.rint(np.cumsum(times) * (n / LEVELS)).astype(np.int64), prepend=0)
        return starts[counts > 0], counts[counts > 0]

    def _statistics(self, forecasts: Forecasts, outcomes: Array) -> Array:
        row = find_test(self.measure, forecasts)
        settings = dict(row.options)
        residuals = outcomes - forecasts.weights * forecasts.values
        values = row.null.batch(forecasts, residuals, settings) if row.null.batch else None
        if values is None:
            values = one_by_one(forecasts, row, settings, outcomes)
        return np.asarray(badness(row, values, centre_of(forecasts, row, settings)))

    def plan(self, n: int, truth: Array) -> Plan:
        """Return the finding."""
        return Plan(
            n=n,
            distance=self.distance(truth),
            power=self.power(n, truth),
            alpha=self.alpha,
            measure=self.measure,
            alternative=self.name,
            draws=self.draws,
            seed=self.seed,
        )


def _own_direction(alternative: Alternative, values: Array) -> Array:
    """Return the direction that a function of the user has for every quantile."""
    rule = "must be a function that returns a finite number per quantile"
    try:
        direction = np.asarray(alternative(values.copy()), dtype=np.float64)
    except Exception as error:  # the user's function may raise anything
        got = f"it raised {type(error).__name__}: {error}"
        raise InvalidInputError(sentence("alternative", rule, got)) from error
    if direction.shape not in ((), values.shape) or not np.isfinite(direction).all():
        got = f"got shape {direction.shape} for {len(values)} quantiles"
        got = "got infinity or NaN" if direction.shape in ((), values.shape) else got
        raise InvalidInputError(sentence("alternative", rule, got))
    return np.broadcast_to(direction, values.shape)


def checked_predictions(
    predictions: Any, name: str = "predictions", hint: str = "leave such rows out"
) -> Array:
    """Return predictions without outcomes as an array; `name` is how errors call them."""
    given = numeric_vector(predictions, name).astype(np.float64)
    reject_rows(name, "must not be missing", given, np.isnan(given), hint)
    check_unit_interval(given, name)
    return given


def _quantiles(predictions: Any) -> Array:
    """Return quantiles of the predictions, each one that occurs, or of the uniform distribution."""
    share = (np.arange(LEVELS) + 0.5) / LEVELS
    if predictions is None:
        return share
    return np.quantile(checked_predictions(predictions), share, method="inverted_cdf")
