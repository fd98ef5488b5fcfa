"""The few frozen result types that every room shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

NOTHING: Mapping[str, Any] = MappingProxyType({})


def json_ready(item: Any) -> Any:
    """Return plain lists, dicts and numbers; what JSON has no number for (nan, inf) becomes None."""
    if isinstance(item, (np.ndarray, np.generic)):
        return json_ready(item.tolist())
    if isinstance(item, Mapping):
        return json_object(item)
    if isinstance(item, (tuple, list)):
        return [json_ready(part) for part in item]
    if isinstance(item, float):
        return item if math.isfinite(item) else None
    if item is None or isinstance(item, (bool, int, str)):
        return item
    return item.to_dict() if hasattr(item, "to_dict") else str(item)


def json_object(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping of plain values, ready for JSON."""
    return {str(key): json_ready(part) for key, part in fields.items()}


class Result:
    """What the frozen results have in common: a short repr, and `to_dict`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {part.name: json_ready(getattr(self, part.name)) for part in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = ((part.name, getattr(self, part.name)) for part in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={_short(item)}' for name, item in parts)})"


def _short(item: Any) -> str:
    """Show a number by six digits, an array or a list by its length once it is long."""
    if isinstance(item, (float, np.floating)):
        return f"{item:.6g}"
    if isinstance(item, (np.ndarray, tuple, list)) and len(item) > 4:
        return f"<{len(item):,} {'numbers' if isinstance(item, np.ndarray) else 'items'}>"
    return str(item.tolist()) if isinstance(item, np.ndarray) else repr(item)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Witness(Result):
    """A function of the prediction that proves a value: ``sum(residual * weight)`` attains it.

    `values` are the points where the function is given, `weights` what it is there, `meaning` one sentence
    for a reader.
    """

    values: Array
    weights: Array
    meaning: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certified(Result):
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

    def __repr__(self) -> str:
        bounds = "" if self.exact else f" in [{self.lower:.6g}, {self.upper:.6g}]"
        return f"Certified({self.value:.6g}{bounds})"

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
            "options": json_ready(self.options),
            "details": {key: item for key, item in self.details.items() if isinstance(item, plain)},
        }
