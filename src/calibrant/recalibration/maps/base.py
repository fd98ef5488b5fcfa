"""Map, what every fitted map can do; Algebra, what it is written in; and checks of stored numbers.

Maps are written once, for SQL text and narwhals expressions alike. A column may be added to, subtracted from,
multiplied with and divided by a column or number on its right (`-p + 1.0`, not `1.0 - p`), negated, and
compared by `<` and `==` only; an Algebra has the functions.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.fits.isotonic import Knot
from calibrant.fits.levels import MIN_CLIP
from calibrant.results import Array, json_object

MAX_LOGIT = 700.0  # the logit beyond which exp would overflow


class Algebra(Protocol):
    """The functions that maps need besides arithmetic; engines may have better `pieces`."""

    def log(self, x: Any) -> Any: ...
    def exp(self, x: Any) -> Any: ...
    def clip(self, x: Any, low: float, high: float) -> Any: ...
    def greatest(self, columns: Sequence[Any]) -> Any: ...
    def when(self, condition: Any, then: Any, otherwise: Any) -> Any: ...
    def number(self, value: float) -> Any: ...

    def pieces(self, p: Any, cuts: Array, tables: Sequence[Array], formula: Callable[..., Any]) -> Any:
        """Return the formula of the numbers of piece k, one of each table, where cuts[k-1] <= p < cuts[k]."""

        def tree(first: int, last: int) -> Any:
            if first == last:
                return formula(*(self.number(float(table[first])) for table in tables))
            middle = (first + last) // 2  # balanced: the depth stays below any parser's limit
            return self.when(p < float(cuts[middle]), tree(first, middle), tree(middle + 1, last))

        return tree(0, len(cuts))


def expit_expression(eta: Any, largest: float, algebra: Algebra) -> Any:
    """Return 1 / (1 + e^-eta); `largest` bounds |eta|, which is held back where exp could overflow."""
    held = eta if largest <= MAX_LOGIT else algebra.clip(eta, -MAX_LOGIT, MAX_LOGIT)
    return algebra.number(1.0) / (algebra.exp(-held) + 1.0)


MAX_COEFFICIENT = 1e300  # of a coefficient: sums and products of a few with logits stay finite
MIN_COEFFICIENT = -MAX_COEFFICIENT


def stored_number(
    fields: Mapping[str, Any], name: str, low: float = MIN_COEFFICIENT, high: float = MAX_COEFFICIENT
) -> float:
    value = fields[name]
    if not _is_finite(value) or not low <= value <= high:
        raise refused(name, f"must be a finite number{_within(low, high)}", value)
    return float(value)


def stored_numbers(
    fields: Mapping[str, Any],
    name: str,
    low: float = MIN_COEFFICIENT,
    high: float = MAX_COEFFICIENT,
    size: int | None = None,
) -> Array:
    items = fields[name]
    plain = isinstance(items, list) and all(map(_is_finite, items))
    values = np.array(items, dtype=np.float64) if plain else np.array([math.nan])
    if not np.all(np.isfinite(values) & (values >= low) & (values <= high)):
        raise refused(name, f"must be a list of finite numbers{_within(low, high)}", items)
    if size is not None and len(values) != size:
        raise refused(name, f"must hold {size} numbers", items)
    return values


def stored_steps(
    fields: Mapping[str, Any], name: str, low: float = MIN_COEFFICIENT, high: float = MAX_COEFFICIENT
) -> Array:
    values = stored_numbers(fields, name, low, high)
    if np.any(np.diff(values) <= 0):
        raise refused(name, "must rise", fields[name])
    return values


def stored_clip(fields: Mapping[str, Any]) -> float:
    return stored_number(fields, "clip", MIN_CLIP, 0.5)


def _is_finite(item: Any) -> bool:
    """Return whether something is a number that a float can hold; JSON knows whole numbers of any length."""
    return type(item) in (int, float) and abs(item) <= sys.float_info.max


def refused(name: str, rule: str, got: Any) -> UnreadableFileError:
    shown = repr(got)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return UnreadableFileError(f"field {name!r}", rule, f"got {shown}", "it may have been edited")


def _within(low: float, high: float) -> str:
    return "" if low == MIN_COEFFICIENT and high == MAX_COEFFICIENT else f" from {low:g} to {high:g}"


class Interval(NamedTuple):
    lower: Array
    upper: Array


class MapBins(NamedTuple):
    """Bins (-inf, e_1], (e_1, e_2], ..., (e_k, inf): the rate of each, and limits where they are known."""

    edges: Array
    rates: Array
    lower: Array | None
    upper: Array | None


FORMS: dict[str, type[Map]] = {}  # kinds of maps that have been imported


class Map(ABC):
    """A fitted map. Its numbers are all in `to_dict`; `form` is what files call its kind."""

    form: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "form"):
            FORMS[cls.form] = cls

    needs_covariates: ClassVar[bool] = False
    multiclass: ClassVar[bool] = False  # whether it maps rows of several classes

    @abstractmethod
    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Return the recalibrated predictions; `p` is checked, one number per row."""

    def to_dict(self) -> dict[str, Any]:
        return self.named()

    def named(self, without: str = "", **others: Any) -> dict[str, Any]:
        """Return form and fields as files name them: `others` in place of the field that is left out."""
        names = [one.name for one in fields(self) if one.name != without]  # type: ignore[arg-type]
        return json_object({"form": self.form, **{name: getattr(self, name) for name in names}, **others})

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map from what `to_dict` returned; here one without fields."""
        return cls()

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return the map as an expression of a column, within [0, 1], or say that it cannot be one."""
        hint = "fit a method that reads the prediction alone; predict and apply take this map"
        raise InvalidInputError(f"the map of {self.form!r}", "cannot be written as an expression", hint=hint)

    def interval(self, p: Array) -> Interval:
        raise InvalidInputError(
            f"a {self.form} map", "has no interval", hint='use "venn-abers" or "histogram"'
        )

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Say what new covariates have that the fit has not seen; nothing where none are read."""
        return ()

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def knots(self) -> Knot | None:
        return None

    @property
    def bins(self) -> MapBins | None:
        return None

    def thinned(self, tolerance: float) -> Map:
        """Return a map with fewer numbers that differs by at most `tolerance`; itself where it has few."""
        return self


def map_from_dict(numbers: Mapping[str, Any]) -> Map:
    form = numbers.get("form")
    if form not in FORMS:
        raise UnreadableFileError("form of a map", f"must be one of {', '.join(FORMS)}", f"got {form!r}")
    return FORMS[form].from_dict(numbers)


def map_of_one_column(stored: Mapping[str, Any]) -> Map:
    fitted = map_from_dict(stored)
    if fitted.multiclass or fitted.needs_covariates:
        raise refused("form", "must be that of a map of one column", fitted.form)
    return fitted


@dataclass(frozen=True, slots=True)
class IdentityMap(Map):
    form: ClassVar[str] = "identity"

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        return p.copy()

    def expression(self, p: Any, algebra: Algebra) -> Any:
        return p


@dataclass(frozen=True, slots=True, eq=False)
class PrevalenceMap(Map):
    """The inner map, its odds multiplied by `ratio`: right where only the share of outcomes 1 has changed."""

    form: ClassVar[str] = "prevalence"
    ratio: float
    inner: Map

    @property
    def needs_covariates(self) -> bool:  # type: ignore[override]  # the inner map decides
        return self.inner.needs_covariates

    @property
    def column_names(self) -> list[str]:
        return self.inner.column_names

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        return self.inner.remarks(p, covariates)

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        return self.shifted(self.inner.predict(p, covariates))

    def interval(self, p: Array) -> Interval:
        return Interval(*(self.shifted(limit) for limit in self.inner.interval(p)))

    def shifted(self, q: Array) -> Array:
        return np.asarray(q * self.ratio / (1.0 - q + q * self.ratio))

    def expression(self, p: Any, algebra: Algebra) -> Any:
        q = self.inner.expression(p, algebra)
        return algebra.clip(q * self.ratio / (-q + 1.0 + q * self.ratio), 0.0, 1.0)  # rounding

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        inner = map_from_dict(numbers["inner"])
        if inner.multiclass:
            raise refused("inner", "must be a map of two classes", inner.form)
        return cls(stored_number(numbers, "ratio", 5e-324, 1.7e308), inner)
