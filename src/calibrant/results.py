"""The few frozen result types that every room shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A function of the prediction that proves a value: ``sum(residual * weight)`` attains it.

    `values` are the points where the function is given, `weights` what it is there, `meaning` one sentence
    for a reader.
    """

    values: Array
    weights: Array
    meaning: str


@dataclass(frozen=True, slots=True, eq=False)
class Certified:
    """What a measure found: a value, and proven bounds on the exact value on the same data.

    `exact` says that the value itself is exact (up to rounding), not merely bracketed. `details` holds
    what a reader may want next (the arg-max interval, the plan, the bins), by name.
    """

    value: float
    lower: float
    upper: float
    exact: bool = True
    witness: Witness | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def __float__(self) -> float:
        return self.value

    @classmethod
    def point(cls, value: float, witness: Witness | None = None, **details: Any) -> Certified:
        """Return an exact value, with what was learnt on the way."""
        return cls(value, value, value, True, witness, MappingProxyType(details))


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A measure taken of some forecasts: the value, and an interval that provably contains the exact one.

    For exact data `lower` and `upper` differ from `value` only where the algorithm stops at a tolerance
    (`exact` is then False). For a sketch they hold the value on the raw rows.
    """

    name: str
    value: float
    lower: float
    upper: float
    exact: bool
    n: int
    levels: int
    witness: Witness | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        bounds = "" if self.exact else f" in [{self.lower:.6g}, {self.upper:.6g}]"
        return f"Measurement({self.name} = {self.value:.6g}{bounds}, n = {self.n:,})"

    def to_dict(self) -> dict[str, Any]:
        """Return the scalar fields, ready for JSON (no witness, no arrays)."""
        plain = (bool, int, float, str, type(None))
        return {
            "name": self.name,
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "exact": self.exact,
            "n": self.n,
            "levels": self.levels,
            "options": dict(self.options),
            "details": {key: item for key, item in self.details.items() if isinstance(item, plain)},
        }
