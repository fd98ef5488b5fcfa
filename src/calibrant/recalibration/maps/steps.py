"""Constant in bins: histogram binning and scaling-binning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.recalibration.maps.algebra import Algebra
from calibrant.recalibration.maps.form import Interval, Map, MapBins
from calibrant.recalibration.maps.search import block_by_block, finder
from calibrant.recalibration.maps.stored import stored_numbers, stored_steps
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class StepMap(Map):
    """One rate per bin (-inf, e_1], (e_1, e_2], ..., (e_k, inf); limits of it where they are known."""

    form: ClassVar[str] = "steps"
    edges: Array
    rates: Array
    lower: Array | None = None
    upper: Array | None = None

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Look the bin up."""
        find = finder(self.edges, "left", len(p))
        return block_by_block(lambda block: self.rates[find(block)], p)

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return constant pieces; bins are closed on the right, so the next number above an edge cuts."""
        return algebra.pieces(p, np.nextafter(self.edges, 2.0), (self.rates,), lambda rate: rate)

    def interval(self, p: Array) -> Interval:
        """Return the simultaneous limits of the bin."""
        if self.lower is None or self.upper is None:
            hint = 'use "histogram" with outcomes of 0 and 1'
            raise InvalidInputError(sentence("these bins", "have no interval", hint=hint))
        member = np.searchsorted(self.edges, p, side="left")
        return Interval(self.lower[member], self.upper[member])

    @property
    def bins(self) -> MapBins:
        """Edges, rates and limits."""
        return MapBins(self.edges, self.rates, self.lower, self.upper)

    def to_dict(self) -> dict[str, Any]:
        """Return edges, rates and limits."""
        arrays = {"edges": self.edges, "rates": self.rates, "lower": self.lower, "upper": self.upper}
        return {name: None if array is None else array.tolist() for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild from edges, rates and limits."""
        edges = stored_steps(numbers, "edges", 0.0, 1.0)
        bins = len(edges) + 1
        limits = [
            None if numbers.get(name) is None else stored_numbers(numbers, name, 0.0, 1.0, bins)
            for name in ("lower", "upper")
        ]
        return cls(edges, stored_numbers(numbers, "rates", 0.0, 1.0, bins), *limits)
