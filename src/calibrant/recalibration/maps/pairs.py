"""Venn-Abers pairs: two values per prediction, merged into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.recalibration.maps.algebra import Algebra
from calibrant.recalibration.maps.form import Interval, Map
from calibrant.recalibration.maps.search import block_by_block, finder
from calibrant.recalibration.maps.stored import refused, stored_numbers, stored_steps
from calibrant.results import Array

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
        """Return the merged pair."""
        pair = self._pairs(len(p))
        return block_by_block(lambda block: merged_pair(*pair(block), self.merge), p)

    def interval(self, p: Array) -> Interval:
        """Return the pair; a prediction equal to a level joins it."""
        return self._pairs(len(p))(p)

    def _pairs(self, size: int) -> Callable[[Array], Interval]:
        """Return how the pairs of `size` predictions are looked up, some of them at a time."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the levels and the pairs."""
        arrays = {"values": self.values, "if_zero": self.if_zero, "if_one": self.if_one}
        return {name: array.tolist() for name, array in arrays.items()} | {"merge": self.merge}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild from the levels and the pairs."""
        values = stored_steps(numbers, "values", 0.0, 1.0)
        size = len(values) + 1
        if_zero, if_one = (stored_numbers(numbers, name, 0.0, 1.0, size) for name in ("if_zero", "if_one"))
        if numbers["merge"] not in MERGES:
            raise refused("merge", f"must be one of {', '.join(MERGES)}", numbers["merge"])
        return cls(values, if_zero, if_one, numbers["merge"])
