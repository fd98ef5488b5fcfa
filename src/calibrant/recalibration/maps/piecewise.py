"""Linear between knots, constant outside; on the scale of the prediction, or as a shift of its logit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.fits.logits import logit
from calibrant.kernels.thinning import kept_knots
from calibrant.recalibration.maps.algebra import Algebra, expit
from calibrant.recalibration.maps.form import Knot, Map
from calibrant.recalibration.maps.search import block_by_block, finder
from calibrant.recalibration.maps.stored import refused, stored_clip, stored_numbers, stored_steps
from calibrant.results import Array

ROUNDING = 1e-12  # more than a linear piece can miss its ends by


def interpolated(x: Array, values: Array, heights: Array) -> Array:
    """Return heights at x, linear between values and constant outside; never beyond the two neighbours."""
    return block_by_block(_interpolator(values, heights, len(x)), x)


def _interpolator(values: Array, heights: Array, size: int) -> Callable[[Array], Array]:
    """Return how to interpolate `size` numbers, some of them at a time."""
    if size < len(values):
        return lambda x: _among_many(x, values, heights)
    find = finder(values, "right", size)
    base, slope, height, lowest, highest = bounded_pieces(values, heights)

    def linear(x: Array) -> Array:
        piece = find(x)
        result = x - base[piece]
        result *= slope[piece]
        result += height[piece]
        np.maximum(result, lowest[piece], out=result)
        return np.asarray(np.minimum(result, highest[piece], out=result))

    return linear


def _among_many(x: Array, values: Array, heights: Array) -> Array:
    """Interpolate fewer numbers than there are pieces: those of their pieces alone."""
    right = np.searchsorted(values, x, side="right")
    left, right = np.maximum(right - 1, 0), np.minimum(right, len(values) - 1)
    start, stop = heights[left], heights[right]
    with np.errstate(invalid="ignore"):  # before and after all knots a piece has no length
        rise = slopes(stop - start, values[right] - values[left])
    result = start + rise * (x - values[left])
    return np.asarray(np.clip(result, np.minimum(start, stop), np.maximum(start, stop)))


def slopes(rises: Array, runs: Array) -> Array:
    """Return the slope of each piece; 0 where it is too short to have a finite one."""
    with np.errstate(over="ignore", divide="ignore"):
        slope = rises / runs
    return np.where(np.isfinite(slope), slope, 0.0)


def linear_pieces(values: Array, heights: Array) -> tuple[Array, Array, Array]:
    """Return start, slope and height of each piece, the constant ones before and after all knots included."""
    slope = np.concatenate(([0.0], slopes(np.diff(heights), np.diff(values)), [0.0]))
    return np.concatenate((values[:1], values)), slope, np.concatenate((heights[:1], heights))


def bounded_pieces(values: Array, heights: Array) -> Array:
    """Return start, slope and height of each piece, and the lowest and highest of the heights it joins."""
    base, slope, height = linear_pieces(values, heights)
    end = np.append(heights, heights[-1])
    return np.vstack([base, slope, height, np.minimum(height, end), np.maximum(height, end)])


def without_flat_middles(values: Array, heights: Array) -> tuple[Array, Array]:
    """Drop the knots inside plateaus, which change nothing."""
    same = np.diff(heights) == 0
    middle = np.concatenate(([False], same[:-1] & same[1:], [False])) if len(values) > 2 else None
    return (values, heights) if middle is None else (values[~middle], heights[~middle])


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseMap(Map):
    """Isotonic, centered isotonic and bounded slope maps."""

    form: ClassVar[str] = "piecewise"
    values: Array
    rates: Array

    @classmethod
    def of(cls, values: Array, rates: Array) -> Self:
        """Return the map, without the knots that change nothing."""
        return cls(*without_flat_middles(values, rates))

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Look up and interpolate."""
        return interpolated(p, self.values, self.rates)

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
        """The points between which the map is linear."""
        return Knot(self.values, self.rates)

    def thinned(self, tolerance: float) -> PiecewiseMap:
        """Return a map on fewer knots, nowhere further away than the tolerance."""
        if tolerance <= 0 or len(self.values) < 3:
            return self
        kept = kept_knots(self.values, self.rates, tolerance)
        return PiecewiseMap(self.values[kept], self.rates[kept])

    def to_dict(self) -> dict[str, Any]:
        """Return the knots."""
        return {"values": self.values.tolist(), "rates": self.rates.tolist()}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild from the knots."""
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
        """Shift the logit."""
        from scipy.special import expit as rate

        shift = _interpolator(self.logits, self.shifts, len(p))

        def shifted(p: Array) -> Array:
            place = logit(p, self.clip)
            return np.asarray(rate(place + shift(place)), dtype=np.float64)

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
        return expit(place + shifted, largest, algebra)

    def to_dict(self) -> dict[str, Any]:
        """Return knots, shifts and clip."""
        return {"logits": self.logits.tolist(), "shifts": self.shifts.tolist(), "clip": self.clip}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild from knots, shifts and clip."""
        logits = stored_steps(numbers, "logits")
        if not len(logits):
            raise refused("logits", "must hold a number", numbers["logits"])
        return cls(logits, stored_numbers(numbers, "shifts", size=len(logits)), stored_clip(numbers))
