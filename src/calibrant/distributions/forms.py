"""The four forms of a forecast distribution, behind one interface: members, quantiles, CDF values, `.cdf`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters, clusters_of
from calibrant.errors import DROP_MISSING, InvalidInputError, TooFewClustersError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inputs import check_aligned, check_missing, numeric_vector, row_labels, subject_of, to_array
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array

MAX_SUPPORT = 100_000  # values of a discrete distribution over which its CRPS is summed
LEAST_JUMP = 1e-12  # of F; less is rounding
MIN_CLUSTERS = 10
ALPHA = 0.05  # of the tests of a table together
USUAL_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of quantiles, where the forecast has all of them
MISSING = """\
missing
    Refuse rows with a missing value ("error"), or leave them out and count them ("drop").
"""
OUTCOMES = f"""\
y_true
    The outcomes: numbers.
{MISSING}"""
FORECAST = f"""\
{OUTCOMES}forecast
    One row per outcome with the members of an ensemble; or with quantiles, or values of the CDF; or
    any object with a vectorized `cdf`, such as a frozen distribution of SciPy.
levels, thresholds
    The levels of the columns, if they are quantiles; their thresholds, if they are values of the CDF.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """An ensemble: members exchangeable with the outcome, in ascending order per row."""

    values: Array
    name: ClassVar = "ensemble"
    levels: ClassVar = USUAL_LEVELS

    def pit(self, y: Array) -> tuple[Array, Array]:
        (below, equal), cells = below_and_equal(self.values, y), self.values.shape[1] + 1
        return below / cells, (below + equal + 1) / cells

    @property
    def bounds(self) -> Array:
        """The ends of the cells between ranks, which outcomes fill alike."""
        return np.linspace(0, 1, self.values.shape[1] + 2)

    def places(self, y: Array) -> Array:
        """Return the possible ends of `pit` in each row: ties of members and outcome have none inside."""
        pooled = np.sort(np.column_stack([self.values, y]), axis=1)
        return np.where(pooled[:, 1:] > pooled[:, :-1], self.bounds[1:-1], 0.0)

    def cdf(self, z: float) -> Array:
        return np.asarray(np.mean(self.values <= z, axis=1))

    def quantile(self, level: float) -> tuple[Array, float, float | Array]:
        """Return the member whose rank is nearest to the level, and twice the level that this rank has."""
        m = self.values.shape[1]
        rank = min(max(round(level * (m + 1)), 1), m)
        return self.values[:, rank - 1], rank / (m + 1), rank / (m + 1)

    def pooled_quantile(self, level: float, y: Array) -> Array:
        """Return the value of that rank among members and outcome, without saying which is the outcome."""
        rank = round(level * (self.values.shape[1] + 1))
        return np.clip(y, self.values[:, rank - 2] if rank > 1 else -np.inf, self.values[:, rank - 1])

    def crps(self, y: Array, fair: bool = False) -> Array | None:
        """Return the score; the fair one, for two members at least, does not reward too narrow ensembles."""
        m = self.values.shape[1]
        if fair and m < 2:
            return None
        spread = self.values @ (2 * np.arange(1, m + 1) - m - 1.0)
        away = np.mean(np.abs(self.values - y[:, None]), axis=1)
        return np.asarray(away - spread / (m * (m - 1) if fair else m**2))


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Quantiles at levels, ascending per row; between them the CDF is taken as linear."""

    values: Array
    levels: Array
    name: ClassVar = "quantiles"

    def pit(self, y: Array) -> tuple[Array, Array]:
        below, equal = below_and_equal(self.values, y)
        return self.bounds[below], self.bounds[below + equal + 1]  # at a quantile, F may jump past its level

    @property
    def bounds(self) -> Array:
        return np.concatenate([[0.0], self.levels, [1.0]])

    def places(self, y: Array) -> Array:
        return np.broadcast_to(self.levels, self.values.shape)

    def cdf(self, z: float) -> Array:
        below, rows = np.sum(self.values <= z, axis=1), np.arange(len(self.values))
        low, high = (np.clip(place, 0, len(self.levels) - 1) for place in (below - 1, below))
        left, right = self.values[rows, low], self.values[rows, high]
        share = (z - left) / np.where(right > left, right - left, 1.0)
        inner = self.levels[low] + share * (self.levels[high] - self.levels[low])
        outside = [below == 0, self.values[:, -1] < z]
        return np.select(outside, [self.levels[0] / 2, (1 + self.levels[-1]) / 2], inner)

    def quantile(self, level: float) -> tuple[Array, float, float | Array]:
        place = int(np.argmin(np.abs(self.levels - level)))
        return self.values[:, place], float(self.levels[place]), float(self.levels[place])

    def crps(self, y: Array) -> Array:
        return np.asarray(2 * np.mean(quantile_scores(y, self.values, self.levels), axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class CdfValues:
    values: Array
    thresholds: Array
    name: ClassVar = "CDF values"
    levels: ClassVar = ()
    bounds: ClassVar = np.linspace(0, 1, 21)

    def pit(self, y: Array) -> tuple[Array, Array]:
        padded = np.pad(self.values, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        rows, place = np.arange(len(y)), np.searchsorted(self.thresholds, y)
        return padded[rows, place], padded[rows, place + 1]

    def places(self, y: Array) -> Array:
        return self.values

    def cdf(self, z: float) -> Array:
        place = np.flatnonzero(self.thresholds == z)
        if not len(place):
            shown = ", ".join(f"{t:g}" for t in self.thresholds[:10])
            rule = f"must be one of those with a value of the CDF: {shown}"
            raise InvalidInputError("threshold", rule, f"got {z:g}")
        return self.values[:, place[0]]

    def crps(self, y: Array) -> None:
        return  # beyond the thresholds the score is unknown


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Any object with a vectorized `cdf`; `ppf` gives quantiles and CRPS, `pmf` the jumps of counts."""

    given: Any
    n: int
    rows: npt.NDArray[np.intp]
    name: ClassVar = "distribution"

    def pit(self, y: Array) -> tuple[Array, Array]:
        """Return F just below the outcome, where that is less, and F there."""
        high = self._call("cdf", y)
        counts = hasattr(self.given, "pmf")  # some have no F between whole numbers
        low = high - self._call("pmf", y) if counts else self._call("cdf", np.nextafter(y, -np.inf))
        return np.clip(np.where(high - low > LEAST_JUMP, low, high), 0, 1), high

    def cdf(self, z: float) -> Array:
        return self._call("cdf", np.full(len(self.rows), float(z)))

    def quantile(self, level: float) -> tuple[Array, float, float | Array]:
        """Return the quantile, its level, and F there, which exceeds the level where F jumps."""
        q = self._quantiles(level)
        reached = self._call("cdf", q)
        return q, level, np.where(reached - level > LEAST_JUMP, reached, level)

    def crps(self, y: Array) -> Array | None:
        if self.inverse is None:
            return None
        points = y, self._quantiles(0.5)  # far from there, jumps may be less than rounding
        if not any(np.any(high > low) for low, high in map(self.pit, points)):
            return self._continuous_crps(y, self._call("cdf", y))
        return self._discrete_crps(y) if hasattr(self.given, "pmf") else None

    def _continuous_crps(self, y: Array, u: Array) -> Array:
        """Integrate 2 (1[y <= q] - level) (q - y) over levels, on both sides of F(y), by tanh-sinh."""
        steps = np.linspace(-3.4, 3.4, 69)
        inner = np.pi / 2 * np.sinh(steps)
        near, weights = 1 / (1 + np.exp(-2 * inner)), np.pi / 4 * np.cosh(steps) / np.cosh(inner) ** 2
        total = np.zeros(len(y))
        for node, weight in zip(near, weights * (steps[1] - steps[0]), strict=True):
            # where F(y) rounds to 0 or 1, levels stay inside: quantiles there may be infinite
            below, above = (np.clip(level, 1e-300, 1 - 1e-16) for level in (u * node, u + (1 - u) * node))
            score = below * (y - self._quantiles(below)) * u
            score += (1 - u) * (1 - node) * (self._quantiles(above) - y) * (1 - u)
            total += weight * 2 * score
        return total

    def _discrete_crps(self, y: Array) -> Array | None:
        """Sum (F(k) - 1[y <= k])^2 over whole numbers k."""
        low = min(self._quantiles(1e-12).min(), y.min())
        high = max(self._quantiles(1 - 1e-12).max(), y.max())
        if high - low > MAX_SUPPORT or np.any(y != np.round(y)):
            return None
        support = np.arange(low, high + 1)
        return np.asarray(np.sum([(self.cdf(k) - (y <= k)) ** 2 for k in support], axis=0))

    @property
    def inverse(self) -> str | None:
        return next((name for name in ("ppf", "icdf") if hasattr(self.given, name)), None)

    @property
    def levels(self) -> tuple[float, ...]:
        return () if self.inverse is None else USUAL_LEVELS

    def _quantiles(self, levels: Array | float) -> Array:
        return self._call(str(self.inverse), np.broadcast_to(np.float64(levels), len(self.rows)))

    def _call(self, method: str, x: Array) -> Array:
        whole = np.full(self.n, x[0])
        whole[self.rows] = x
        try:
            found = np.broadcast_to(np.asarray(getattr(self.given, method)(whole), np.float64), self.n)
        except (TypeError, ValueError) as error:
            hint = "one distribution per row, or one for all"
            got = f"got {type(error).__name__}: {error}".rstrip(".")
            rule = f"must have a .{method} of {pluralize(self.n, 'number')}"
            raise InvalidInputError("forecast", rule, got, hint) from None
        used = np.isin(np.arange(self.n), self.rows)
        reject_rows("forecast", f"must not have a .{method} of NaN", found, np.isnan(found) & used)
        return found[self.rows]


Form = Members | Quantiles | CdfValues | Distribution


def below_and_equal(values: Array, y: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.sum(values < y[:, None], axis=1), np.sum(values == y[:, None], axis=1)


def quantile_scores(y: Array, quantiles: Array, levels: Array) -> Array:
    """Return the quantile (pinball) score of each row and level."""
    over = quantiles - y[:, None]
    return np.where(over >= 0, (1 - levels) * over, -levels * over)


@dataclass(frozen=True, slots=True, eq=False)
class ForecastRows:
    """Outcomes and forecasts of the rows without a gap, which belong together, and how to simulate."""

    y: Array
    form: Form
    dropped: int
    draws: int
    seed: int
    clusters: Clusters | None = None

    @classmethod
    def of(
        cls, y_true: Any, forecast: Any, levels: Any = None, thresholds: Any = None,
        missing: Missing = "error", draws: int = 1, seed: int | None = 0, clusters: Any = None,
        name: str = "forecast",
    ) -> Self:  # fmt: skip
        check_missing(missing=missing)
        if levels is not None and thresholds is not None:
            hint = "levels= with quantiles, thresholds= with values of the CDF"
            raise InvalidInputError("levels and thresholds", "exclude each other", hint=hint)
        outcome, name = subject_of(y_true, "y_true"), subject_of(forecast, name)
        y = numeric_vector(y_true, outcome).astype(np.float64)
        check_aligned(forecast, row_labels(y_true), (name, outcome))
        values = None if hasattr(forecast, "cdf") else _numbers(forecast, name, len(y))
        gaps = np.zeros(len(y), dtype=bool) if values is None else np.asarray(np.isnan(values).any(axis=1))
        if missing == "error":
            reject_rows(outcome, "must not be missing", y, np.isnan(y), DROP_MISSING)
            reject_rows(name, "must not be missing", np.full(len(y), np.nan), gaps, DROP_MISSING)
        kept = ~(np.isnan(y) | gaps)
        if not kept.any():
            raise InvalidInputError(outcome, "must have a row without missing values", "got none")
        reject_rows(outcome, "must be finite", y, np.isinf(y) & kept)
        rows = np.flatnonzero(kept)
        if values is None:
            form: Form = Distribution(forecast, len(y), rows)
        else:
            form = _form(values, kept, levels, thresholds, name)
        related = clusters_of(clusters, len(y), rows)
        if related is not None and related.number < MIN_CLUSTERS:
            rule, got = f"must have at least {MIN_CLUSTERS} labels", f"got {related.number}"
            raise TooFewClustersError("clusters", rule, got, "resampling so few says nothing")
        made = cls(y[kept], form, int(np.sum(~kept)), checked_draws(draws), recorded_seed(seed))
        if related is None or related.all_single:  # single records are independent
            return made
        return replace(made, clusters=related.by_content(*made.columns))

    @property
    def columns(self) -> list[Array]:
        """What is known of each record."""
        if not isinstance(self.form, Distribution):
            return [self.y, *self.form.values.T]
        quantiles = (self.form.quantile(level)[0] for level in self.form.levels)
        return [self.y, *self.form.pit(self.y), *quantiles]

    def forecasts(self, hit: npt.NDArray[np.bool_], predicted: Array) -> Forecasts:
        """Return the records of one yes or no question about the outcomes."""
        made = Forecasts(hit, predicted)
        return made if self.clusters is None else made.with_clusters(self.clusters.codes)

    @property
    def facts(self) -> tuple[int, int, int, int]:
        """The last fields of every result: records, rows dropped, draws and seed."""
        return len(self.y), self.dropped, self.draws, self.seed


def _numbers(forecast: Any, name: str, n: int) -> Array:
    table = to_array(forecast, name)
    if table.ndim != 2 or table.dtype.kind not in "biufO" or table.shape[1] == 0:
        hint = "one column per member, quantile or threshold; or an object with .cdf"
        got = f"got {table.dtype} of shape {table.shape}"
        raise InvalidInputError(name, "must be a table of numbers", got, hint)
    if len(table) != n:
        got = f"got {pluralize(n, 'outcome')} and {pluralize(len(table), 'row')} of forecasts"
        raise InvalidInputError(f"y_true and {name}", "must have the same length", got)
    return np.column_stack([numeric_vector(column, name) for column in table.T]).astype(np.float64)


def _form(values: Array, kept: npt.NDArray[np.bool_], levels: Any, thresholds: Any, subject: str) -> Form:
    def reject(rule: str, bad: npt.NDArray[np.bool_], hint: str = "") -> None:
        first = np.take_along_axis(values, bad.argmax(axis=1)[:, None], axis=1)[:, 0]
        reject_rows(subject, rule, first, np.asarray(bad.any(axis=1)) & kept, hint)

    reject("must be finite", ~np.isfinite(values))
    if levels is None and thresholds is None:
        return Members(np.sort(values[kept], axis=1))
    name, what, given = "levels", "quantiles", levels
    if thresholds is not None:
        name, what, given = "thresholds", "values of the CDF", thresholds
        reject("must lie in [0, 1]", (values < 0) | (values > 1), "these are values of a CDF")
    places = ascending_numbers(name, given, "order the columns accordingly")
    if len(places) != values.shape[1]:
        got = f"got {len(places)} for {pluralize(values.shape[1], 'column')}"
        raise InvalidInputError(name, "must have one number per column", got)
    if levels is not None and (places[0] <= 0 or places[-1] >= 1):
        got = f"got {places[0]:g} to {places[-1]:g}"
        raise InvalidInputError("levels", "must lie strictly between 0 and 1", got)
    falling = np.diff(values, axis=1, prepend=-np.inf) < 0
    hint = "sort each row, as numpy.sort does, to undo crossings"
    reject(f"must have ascending {what} in each row", falling, hint)
    return Quantiles(values[kept], places) if thresholds is None else CdfValues(values[kept], places)


def ascending_numbers(name: str, given: Any, hint: str = "") -> Array:
    numbers = numeric_vector(given, name).astype(np.float64)
    if not np.all(np.isfinite(numbers)) or np.any(np.diff(numbers) <= 0):
        raise InvalidInputError(name, "must be finite and ascending", f"got {given}", hint)
    return numbers
