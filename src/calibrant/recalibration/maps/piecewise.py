"""Maps of the prediction alone: piecewise linear, spline, steps, Venn-Abers pairs, and logistic formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.fits.isotonic import Knot
from calibrant.fits.levels import expit, logit
from calibrant.fits.logistic import LogisticFit
from calibrant.kernels.cumulative import kept_knots
from calibrant.recalibration.maps.base import (
    Algebra,
    Interval,
    Map,
    MapBins,
    expit_expression,
    refused,
    stored_clip,
    stored_number,
    stored_numbers,
    stored_steps,
)
from calibrant.results import Array

Places = npt.NDArray[np.intp]

BLOCK = 2**14  # predictions at a time: what is computed on the way stays in the cache
CELLS = 8  # of the grid, per cut
MIN_PREDICTIONS_PER_CUT = 16  # predictions per cut, and
MIN_GRID_PREDICTIONS = 2**12  # in all, from which a grid pays off


def block_by_block(work: Callable[[Array], Array], p: Array) -> Array:
    if len(p) <= BLOCK:
        return work(p)
    result = np.empty(len(p))
    for start in range(0, len(p), BLOCK):
        result[start : start + BLOCK] = work(p[start : start + BLOCK])
    return result


def finder(cuts: Array, side: Literal["left", "right"], size: int) -> Callable[[Array], Places]:
    """Return a function that finds what np.searchsorted finds, made for `size` numbers in all."""

    def bisected(x: Array) -> Places:
        return np.searchsorted(cuts, x, side=side)

    if size < max(MIN_GRID_PREDICTIONS, MIN_PREDICTIONS_PER_CUT * len(cuts)) or len(cuts) < 2:
        return bisected
    # A cell with one cut takes one comparison; a bisection waits for a dozen. Rounding does no harm: the cell
    # never falls as the number rises, so that a cut in another cell is on the side that its cell says.
    last = CELLS * len(cuts) - 1
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = last / (cuts[-1] - cuts[0])
    if not np.isfinite(scale):
        return bisected

    def cell(x: Array) -> Any:
        place = x - cuts[0]
        place *= scale
        return np.clip(place, 0.0, last, out=place).astype(np.intp)

    home = cell(cuts)
    count = np.bincount(home, minlength=last + 1)
    before = np.cumsum(count) - count
    only = np.full(last + 1, np.inf)
    only[home] = cuts
    only[count > 1] = np.nan
    beyond = np.greater_equal if side == "right" else np.greater

    def found(x: Array) -> Places:
        k = cell(x)
        cut = only[k]
        places: Places = before[k]
        places += beyond(x, cut)
        several = np.flatnonzero(np.isnan(cut))
        if len(several):
            places[several] = bisected(x[several])
        return places

    return found


ROUNDING = 1e-12  # more than a linear piece can miss its ends by


def _interpolator(values: Array, heights: Array, size: int) -> Callable[[Array], Array]:
    find, end = finder(values, "right", size), np.append(heights, heights[-1])
    base, slope, height = linear_pieces(values, heights)

    def linear(x: Array) -> Array:
        piece = find(x)
        start, stop = height[piece], end[piece]
        result = x - base[piece]
        result *= slope[piece]
        result += start
        return np.asarray(np.clip(result, np.minimum(start, stop), np.maximum(start, stop), out=result))

    return linear


def linear_pieces(values: Array, heights: Array) -> tuple[Array, Array, Array]:
    """Return start, slope (0 where it would be infinite) and height of each piece, and of those outside."""
    with np.errstate(over="ignore", divide="ignore"):
        slope = np.diff(heights) / np.diff(values)
    slope = np.concatenate(([0.0], np.where(np.isfinite(slope), slope, 0.0), [0.0]))
    return np.concatenate((values[:1], values)), slope, np.concatenate((heights[:1], heights))


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseMap(Map):
    form: ClassVar[str] = "piecewise"
    values: Array
    rates: Array

    @classmethod
    def of(cls, values: Array, rates: Array) -> Self:
        """Return the map without the knots inside plateaus, which change nothing."""
        same = np.diff(rates) == 0
        middle = np.concatenate(([False], same[:-1] & same[1:], [False])) if len(values) > 2 else None
        return cls(values, rates) if middle is None else cls(values[~middle], rates[~middle])

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        return block_by_block(_interpolator(self.values, self.rates, len(p)), p)

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return linear pieces. v + s (p - x), not a p + b: that would cancel."""
        line = algebra.pieces(
            p,
            self.values,
            linear_pieces(self.values, self.rates),
            lambda start, slope, rate: (p - start) * slope + rate,
        )
        inside = self.rates.min() > ROUNDING and self.rates.max() < 1.0 - ROUNDING
        return line if inside else algebra.clip(line, 0.0, 1.0)

    @property
    def knots(self) -> Knot:
        return Knot(self.values, self.rates)

    def thinned(self, tolerance: float) -> PiecewiseMap:
        if tolerance <= 0 or len(self.values) < 3:
            return self
        kept = kept_knots(self.values, self.rates, tolerance)
        return PiecewiseMap(self.values[kept], self.rates[kept])

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        values = stored_numbers(numbers, "values", 0.0, 1.0)
        if not len(values) or np.any(np.diff(values) < 0):
            raise refused("values", "must be numbers that do not fall", numbers["values"])
        return cls(values, stored_numbers(numbers, "rates", 0.0, 1.0, len(values)))


@dataclass(frozen=True, slots=True, eq=False)
class SplineMap(Map):
    """logit q = l + delta(l), delta linear between knots of the logit l of the clipped prediction."""

    form: ClassVar[str] = "spline"
    logits: Array
    shifts: Array
    clip: float

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        shift = _interpolator(self.logits, self.shifts, len(p))

        def shifted(p: Array) -> Array:
            place = logit(p, self.clip)
            return expit(place + shift(place))

        return block_by_block(shifted, p)

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return the logit, shifted by linear pieces; the prediction itself says which piece."""
        clipped = algebra.clip(p, self.clip, 1.0 - self.clip)
        place = algebra.log(clipped / (-clipped + 1.0))
        shifted = algebra.pieces(
            p,
            1.0 / (1.0 + np.exp(-self.logits)),
            linear_pieces(self.logits, self.shifts),
            lambda start, slope, shift: (place - start) * slope + shift,
        )
        largest = float(np.abs(self.shifts).max() - np.log(self.clip))
        return expit_expression(place + shifted, largest, algebra)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        logits = stored_steps(numbers, "logits")
        if not len(logits):
            raise refused("logits", "must hold a number", numbers["logits"])
        return cls(logits, stored_numbers(numbers, "shifts", size=len(logits)), stored_clip(numbers))


@dataclass(frozen=True, slots=True, eq=False)
class StepMap(Map):
    """One rate per bin (-inf, e_1], (e_1, e_2], ..., (e_k, inf); limits of it where they are known."""

    form: ClassVar[str] = "steps"
    edges: Array
    rates: Array
    lower: Array | None = None
    upper: Array | None = None

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        find = finder(self.edges, "left", len(p))
        return block_by_block(lambda block: self.rates[find(block)], p)

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return constant pieces; bins are closed on the right, so the next number above an edge cuts."""
        return algebra.pieces(p, np.nextafter(self.edges, 2.0), (self.rates,), lambda rate: rate)

    def interval(self, p: Array) -> Interval:
        if self.lower is None or self.upper is None:
            hint = 'use "histogram" with outcomes of 0 and 1'
            raise InvalidInputError("these bins", "have no interval", hint=hint)
        member = np.searchsorted(self.edges, p, side="left")
        return Interval(self.lower[member], self.upper[member])

    @property
    def bins(self) -> MapBins:
        return MapBins(self.edges, self.rates, self.lower, self.upper)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        edges = stored_steps(numbers, "edges", 0.0, 1.0)
        bins = len(edges) + 1
        limits = [
            None if numbers.get(name) is None else stored_numbers(numbers, name, 0.0, 1.0, bins)
            for name in ("lower", "upper")
        ]
        return cls(edges, stored_numbers(numbers, "rates", 0.0, 1.0, bins), *limits)


MERGES = ("log", "brier")


def merged_pair(low: Array, high: Array, merge: str) -> Array:
    """Return the one prediction with the smallest worst regret: in log loss, or in Brier score."""
    if merge == "brier":
        return np.asarray(high + (low**2 - high**2) / 2)
    return np.asarray(high / (1.0 - low + high))


@dataclass(frozen=True, slots=True, eq=False)
class PairMap(Map):
    """The values of a record with outcome 0 and 1 in each gap before, between and after the levels."""

    form: ClassVar[str] = "pairs"
    values: Array
    if_zero: Array
    if_one: Array
    merge: str

    @classmethod
    def of(cls, values: Array, if_zero: Array, if_one: Array, merge: str) -> Self:
        """Return the map without the levels between gaps of equal values, which change nothing."""
        kept = (np.diff(if_zero) != 0) | (np.diff(if_one) != 0)
        gaps = np.concatenate(([True], kept))
        return cls(values[kept], if_zero[gaps], if_one[gaps], merge)

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        pair = self._pairs(len(p))
        return block_by_block(lambda block: merged_pair(*pair(block), self.merge), p)

    def interval(self, p: Array) -> Interval:
        return self._pairs(len(p))(p)

    def _pairs(self, size: int) -> Callable[[Array], Interval]:
        find, levels = finder(self.values, "left", size), np.append(self.values, np.inf)

        def pair(p: Array) -> Interval:
            above = find(p)
            below = above + (levels[above] == p)
            return Interval(self.if_zero[below], self.if_one[above])

        return pair

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return constant pieces: gaps between levels, and the levels themselves as pieces of one number."""
        between = merged_pair(self.if_zero, self.if_one, self.merge)
        exact = merged_pair(self.if_zero[1:], self.if_one[:-1], self.merge)
        cuts = np.column_stack((self.values, np.nextafter(self.values, 2.0))).ravel()
        rates = np.concatenate((between[:1], np.column_stack((exact, between[1:])).ravel()))
        moves = np.diff(rates) != 0  # most levels move one value of the pair: at the level, or after it
        kept = np.concatenate(([True], moves))
        return algebra.pieces(p, cuts[moves], (rates[kept],), lambda rate: rate)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        values = stored_steps(numbers, "values", 0.0, 1.0)
        size = len(values) + 1
        if_zero, if_one = (stored_numbers(numbers, name, 0.0, 1.0, size) for name in ("if_zero", "if_one"))
        if numbers["merge"] not in MERGES:
            raise refused("merge", f"must be one of {', '.join(MERGES)}", numbers["merge"])
        return cls(values, if_zero, if_one, numbers["merge"])


@dataclass(frozen=True, slots=True)
class LogisticMap(Map):
    """Shift, temperature, Platt and beta maps: `low` multiplies ln c, `high` -ln(1 - c)."""

    form: ClassVar[str] = "logistic"
    intercept: float
    low: float
    high: float
    clip: float
    lowest: float = 0.0  # values are scaled to lie between these
    highest: float = 1.0

    @classmethod
    def of(cls, fit: LogisticFit) -> Self:
        return cls(fit.intercept, fit.low, fit.high, fit.clip, *fit.limits)

    @property
    def _limited(self) -> bool:
        return (self.lowest, self.highest) != (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        stored = self.named()
        if not self._limited:
            del stored["lowest"], stored["highest"]
        return stored

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        intercept, low, high = (stored_number(numbers, name) for name in ("intercept", "low", "high"))
        ends = {"lowest": 0.0, "highest": 1.0, **numbers}
        lowest = stored_number(ends, "lowest", 0.0, 1.0)
        highest = stored_number(ends, "highest", lowest, 1.0)
        return cls(intercept, low, high, stored_clip(numbers), lowest, highest)

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        def mapped(p: Array) -> Array:
            clipped = np.clip(p, self.clip, 1.0 - self.clip)
            eta = self.intercept + self.low * np.log(clipped) - self.high * np.log1p(-clipped)
            return expit(eta) * (self.highest - self.lowest) + self.lowest if self._limited else expit(eta)

        return block_by_block(mapped, p)

    def expression(self, p: Any, algebra: Algebra) -> Any:
        clipped = algebra.clip(p, self.clip, 1.0 - self.clip)
        rest = -clipped + 1.0
        if self.low == self.high:
            eta = algebra.log(clipped / rest) * self.low + self.intercept
        else:
            eta = algebra.log(clipped) * self.low - algebra.log(rest) * self.high + self.intercept
        largest = abs(self.intercept) - (abs(self.low) + abs(self.high)) * float(np.log(self.clip))
        q = expit_expression(eta, largest, algebra)
        return q * (self.highest - self.lowest) + self.lowest if self._limited else q
