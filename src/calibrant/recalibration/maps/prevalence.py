"""A map for another base rate: the odds multiplied by a constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.recalibration.maps.algebra import Algebra
from calibrant.recalibration.maps.form import Interval, Map, map_from_dict
from calibrant.recalibration.maps.stored import refused, stored_number
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class PrevalenceMap(Map):
    """The inner map, its odds multiplied by `ratio`: right where only the share of outcomes 1 has changed."""

    form: ClassVar[str] = "prevalence"
    inner: Map
    ratio: float

    @property
    def needs_covariates(self) -> bool:  # type: ignore[override]  # the inner map decides
        """Whether the inner map reads covariates."""
        return self.inner.needs_covariates

    @property
    def column_names(self) -> list[str]:
        """The covariates that the inner map reads."""
        return self.inner.column_names

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Say what new covariates have that the fit has not seen."""
        return self.inner.remarks(p, covariates)

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Multiply the odds."""
        return self._moved(self.inner.predict(p, covariates))

    def interval(self, p: Array) -> Interval:
        """Multiply the odds of both limits."""
        return Interval(*(self._moved(limit) for limit in self.inner.interval(p)))

    def _moved(self, q: Array) -> Array:
        return np.asarray(q * self.ratio / (1.0 - q + q * self.ratio))

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return the inner expression with its odds multiplied."""
        q = self.inner.expression(p, algebra)
        return algebra.clip(q * self.ratio / (-q + 1.0 + q * self.ratio), 0.0, 1.0)  # rounding

    def to_dict(self) -> dict[str, Any]:
        """Return the ratio and the inner map."""
        return {"ratio": self.ratio, "inner": {"form": self.inner.form, **self.inner.to_dict()}}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild from the ratio and the inner map."""
        inner = map_from_dict(numbers["inner"])
        if inner.several:
            raise refused("inner", "must be a map of two classes", inner.form)
        return cls(inner, stored_number(numbers, "ratio", 5e-324, 1.7e308))
