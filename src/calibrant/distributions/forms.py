"""The four forms of a forecast distribution, behind one interface: members, quantiles, CDF values, `.cdf`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibrant.errors import DROP_MISSING, InvalidInputError, reject_rows
from calibrant.formatting import pluralize
from calibrant.inputs import check_missing, numeric_vector, to_array
from calibrant.records import Missing
from calibrant.results import Array

MAX_SUPPORT = 100_000  # values of a discrete distribution over which its CRPS is summed
ALPHA = 0.05  # of the tests of a table together
USUAL_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of quantiles, where the forecast has all of them
MISSING_AND_DRAWS = """\
missing
    Refuse rows with a missing value ("error"), or leave them out and count them ("drop").
draws, seed
    Simulated data sets for the p-values, and the seed of everything random.
"""
FORECAST = """\
y_true
    The outcomes: numbers.
forecast
    One row per outcome with the members of an ensemble; or with quantiles, or values of the CDF; or
    any object with a vectorized `cdf`, such as a frozen distribution of SciPy.
levels, thresholds
    The levels of the columns, if they are quantiles; their thresholds, if they are values of the CDF.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ForecastTable:
    """Forecasts that are numbers, one row per outcome."""

    values: Array

    def below_and_equal(self, y: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        return np.sum(self.values < y[:, None], axis=1), np.sum(self.values == y[:, None], axis=1)

    def take(self, rows: npt.NDArray[np.bool_]) -> Self:
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Members(ForecastTable):
    """An ensemble: members exchangeable with the outcome, in ascending order per row."""

    name: ClassVar = "ensemble"
    levels: ClassVar = USUAL_LEVELS

    def pit(self, y: Array) -> tuple[Array, Array]:
        (below, equal), cells = self.below_and_equal(y), self.values.shape[1] + 1
        return below / cells, (below + equal + 1) / cells

    def cdf(self, z: float) -> Array:
        return np.asarray(np.mean(self.values <= z, axis=1))

    def quantile(self, level: float) -> tuple[Array, float, float | Array]:
        """Return the member whose rank is nearest to the level, and twice the level that this rank has."""
        m = self.values.shape[1]
        rank = min(max(round(level * (m + 1)), 1), m)
        return self.values[:, rank - 1], rank / (m + 1), rank / (m + 1)

    def crps(self, y: Array, fair: bool = False) -> Array | None:
        """Return the score; the fair one, for two members at least, does not reward too narrow ensembles."""
        m = self.values.shape[1]
        if fair and m < 2:
            return None
        spread = self.values @ (2 * np.arange(1, m + 1) - m - 1.0)
        away = np.mean(np.abs(self.values - y[:, None]), axis=1)
        return np.asarray(away - spread / (m * (m - 1) if fair else m**2))


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles(ForecastTable):
    """Quantiles at levels, ascending per row; between them the CDF is taken as linear."""

    levels: Array
    name: ClassVar = "quantiles"

    def pit(self, y: Array) -> tuple[Array, Array]:
        bounds = np.concatenate([[0.0], self.levels, [1.0]])
        below, equal = self.below_and_equal(y)
        return bounds[below], bounds[below + np.maximum(equal, 1)]

    def cdf(self, z: float) -> Array:
        ends = self.levels[0] / 2, (1 + self.levels[-1]) / 2
        below = np.sum(self.values <= z, axis=1)
        k, rows = len(self.levels), np.arange(len(self.values))
        low, high = np.clip(below - 1, 0, k - 1), np.clip(below, 0, k - 1)
        left, right = self.values[rows, low], self.values[rows, high]
        share = np.where(right > left, (z - left) / np.where(right > left, right - left, 1.0), 0.0)
        inner = self.levels[low] + share * (self.levels[high] - self.levels[low])
        at_last = (below == k) & (self.values[:, -1] == z)
        inner = np.where(at_last, self.levels[-1], np.where(below == k, ends[1], inner))
        return np.asarray(np.where(below == 0, ends[0], inner))

    def quantile(self, level: float) -> tuple[Array, float, float | Array]:
        place = int(np.argmin(np.abs(self.levels - level)))
        return self.values[:, place], float(self.levels[place]), float(self.levels[place])

    def crps(self, y: Array) -> Array:
        return np.asarray(2 * np.mean(quantile_scores(y, self.values, self.levels), axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class CdfValues(ForecastTable):
    thresholds: Array
    name: ClassVar = "CDF values"
    levels: ClassVar = ()

    def pit(self, y: Array) -> tuple[Array, Array]:
        padded = np.pad(self.values, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        rows, place = np.arange(len(y)), np.searchsorted(self.thresholds, y)
        return padded[rows, place], padded[rows, place + 1]

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
    """Any object with a vectorized `cdf`; `ppf` gives quantiles and CRPS, `pmf` says where F jumps."""

    given: Any
    n: int
    rows: npt.NDArray[np.intp]
    name: ClassVar = "distribution"

    def pit(self, y: Array) -> tuple[Array, Array]:
        high = self._call("cdf", y)
        low = high - self._call("pmf", y) if hasattr(self.given, "pmf") else high
        return np.clip(low, 0, 1), high

    def cdf(self, z: float) -> Array:
        return self._call("cdf", np.full(len(self.rows), float(z)))

    def quantile(self, level: float) -> tuple[Array, float, float | Array]:
        """Return the quantile, its level, and F there, which exceeds the level where F jumps."""
        q = self._quantiles(level)
        return q, level, self._call("cdf", q) if hasattr(self.given, "pmf") else level

    def crps(self, y: Array) -> Array | None:
        if self.inverse is None:
            return None
        low, high = self.pit(y)
        return self._discrete_crps(y) if np.any(high > low) else self._continuous_crps(y, high)

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
            top = (1 - u) * (1 - node)
            score += top * (self._quantiles(above) - y) * (1 - u)
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
        kept = found[self.rows]
        reject_rows("forecast", f"must not have a .{method} of NaN", kept, np.isnan(kept))
        return kept

    def take(self, rows: npt.NDArray[np.bool_]) -> Distribution:
        return replace(self, rows=np.flatnonzero(rows))


Form = Members | Quantiles | CdfValues | Distribution


def quantile_scores(y: Array, quantiles: Array, levels: Array) -> Array:
    """Return the quantile (pinball) score of each row and level."""
    over = quantiles - y[:, None]
    return np.where(over >= 0, (1 - levels) * over, -levels * over)


def as_rows(
    y_true: Any, forecast: Any, levels: Any = None, thresholds: Any = None, missing: Missing = "error"
) -> tuple[Array, Form, int]:
    """Check outcomes and forecasts; return both without rows that have a gap, and how many those are."""
    check_missing(missing=missing)
    y = numeric_vector(y_true, "y_true").astype(np.float64)
    form, gaps = _form(forecast, len(y), levels, thresholds)
    if missing == "error":
        reject_rows("y_true", "must not be missing", y, np.isnan(y), DROP_MISSING)
        reject_rows("forecast", "must not be missing", np.full(len(y), np.nan), gaps, DROP_MISSING)
    absent = np.isnan(y) | gaps
    if absent.all():
        raise InvalidInputError("y_true", "must have a row without missing values", "got none")
    reject_rows("y_true", "must be finite", y, np.isinf(y))
    kept = form.take(~absent) if absent.any() else form
    _check(kept)
    return y[~absent], kept, int(absent.sum())


def _form(forecast: Any, n: int, levels: Any, thresholds: Any) -> tuple[Form, npt.NDArray[np.bool_]]:
    """Return the form that was given, and which rows have a gap."""
    if levels is not None and thresholds is not None:
        hint = "levels= with quantiles, thresholds= with values of the CDF"
        raise InvalidInputError("levels and thresholds", "exclude each other", hint=hint)
    if hasattr(forecast, "cdf"):
        return Distribution(forecast, n, np.arange(n)), np.zeros(n, dtype=bool)
    table = to_array(forecast, "forecast")
    if table.ndim != 2 or table.dtype.kind not in "biufO" or table.shape[1] == 0:
        hint = "one column per member, quantile or threshold; or an object with .cdf"
        got = f"got {table.dtype} of shape {table.shape}"
        raise InvalidInputError("forecast", "must be a table of numbers", got, hint)
    if len(table) != n:
        got = f"got {pluralize(n, 'outcome')} and {pluralize(len(table), 'row')} of forecasts"
        raise InvalidInputError("y_true and forecast", "must have the same length", got)
    values = np.column_stack([numeric_vector(table[:, k], "forecast") for k in range(table.shape[1])])
    values = values.astype(np.float64)
    gaps = np.isnan(values).any(axis=1)
    if thresholds is not None:
        return CdfValues(values, _ascending("thresholds", thresholds, values)), gaps
    if levels is None:
        return Members(np.sort(values, axis=1)), gaps
    taus = _ascending("levels", levels, values)
    if taus[0] <= 0 or taus[-1] >= 1:
        got = f"got {taus[0]:g} to {taus[-1]:g}"
        raise InvalidInputError("levels", "must lie strictly between 0 and 1", got)
    return Quantiles(values, taus), gaps


def _ascending(name: str, given: Any, values: Array) -> Array:
    numbers = numeric_vector(given, name).astype(np.float64)
    if len(numbers) != values.shape[1]:
        got = f"got {len(numbers)} for {pluralize(values.shape[1], 'column')}"
        raise InvalidInputError(name, "must have one number per column", got)
    if not np.all(np.isfinite(numbers)) or np.any(np.diff(numbers) <= 0):
        hint = "order the columns accordingly"
        raise InvalidInputError(name, "must be finite and ascending", f"got {given}", hint)
    return numbers


def _check(form: Form) -> None:
    if isinstance(form, Distribution):
        return
    values = form.values
    rules = [("must be finite", ~np.isfinite(values), "")]
    if isinstance(form, CdfValues):
        outside = (values < 0) | (values > 1)
        rules.append(("must lie in [0, 1]", outside, "these are values of a CDF"))
    if not isinstance(form, Members):
        what = "quantiles" if isinstance(form, Quantiles) else "values of the CDF"
        falling = np.diff(values, axis=1, prepend=-np.inf) < 0
        hint = "sort each row, as numpy.sort does, to undo crossings"
        rules.append((f"must have ascending {what} in each row", falling, hint))
    for rule, bad, hint in rules:
        first = np.take_along_axis(values, bad.argmax(axis=1)[:, None], axis=1)[:, 0]
        reject_rows("forecast", rule, first, np.asarray(bad.any(axis=1)), hint)
