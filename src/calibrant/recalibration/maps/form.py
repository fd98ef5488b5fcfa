"""What every fitted map can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

from calibrant.errors import InvalidInputError, UnreadableFileError, sentence
from calibrant.recalibration.maps.algebra import Algebra
from calibrant.recalibration.maps.stored import refused
from calibrant.results import Array


class Interval(NamedTuple):
    """Lower and upper limits, one pair per prediction."""

    lower: Array
    upper: Array


class Knot(NamedTuple):
    """The points between which a map is linear: predictions and what they become."""

    values: Array
    rates: Array


class MapBins(NamedTuple):
    """Bins (-inf, e_1], (e_1, e_2], ..., (e_k, inf): the rate of each, and limits where they are known."""

    edges: Array
    rates: Array
    lower: Array | None
    upper: Array | None


class Map(ABC):
    """A fitted map. Its numbers are all in `to_dict`; `form` is what files call its kind."""

    form: ClassVar[str]
    needs_covariates: ClassVar[bool] = False
    several: ClassVar[bool] = False  # whether it maps rows of several classes

    @abstractmethod
    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Return the recalibrated predictions; `p` is checked, one number per row."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the map, ready for JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map from what `to_dict` returned."""

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return the map as an expression of a column, within [0, 1], or say that it cannot be one."""
        hint = "use apply, or a method that reads the prediction alone"
        raise InvalidInputError(
            sentence(f"a {self.form} map", "cannot be written as an expression", hint=hint)
        )

    def interval(self, p: Array) -> Interval:
        """Return limits per prediction, where the method has them."""
        raise InvalidInputError(
            sentence(f"a {self.form} map", "has no interval", hint='use "venn-abers" or "histogram"')
        )

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Say what new covariates have that the fit has not seen; nothing where none are read."""
        return ()

    @property
    def column_names(self) -> list[str]:
        """The covariates that the map reads."""
        return []

    @property
    def knots(self) -> Knot | None:
        """The points between which the map is linear, or None."""
        return None

    @property
    def bins(self) -> MapBins | None:
        """The bins in which the map is constant, or None."""
        return None

    def thinned(self, tolerance: float) -> Map:
        """Return a map with fewer numbers that differs by at most `tolerance`; itself where it has few."""
        return self


def map_to_dict(fitted: Map) -> dict[str, Any]:
    """Return a map as JSON: its form and its numbers."""
    return {"form": fitted.form, **fitted.to_dict()}


def map_from_dict(numbers: Mapping[str, Any]) -> Map:
    """Rebuild a map, or say that its form is not known here."""
    known = {form.form: form for form in _subclasses(Map) if hasattr(form, "form")}
    form = numbers.get("form")
    if form not in known:
        raise UnreadableFileError(
            sentence("form of a map", f"must be one of {', '.join(known)}", f"got {form!r}")
        )
    return known[form].from_dict(numbers)


def map_of_one_column(stored: Mapping[str, Any]) -> Map:
    """Rebuild a map that another one is made of, which must read the prediction alone."""
    fitted = map_from_dict(stored)
    if fitted.several or fitted.needs_covariates:
        raise refused("form", "must be that of a map of one column", fitted.form)
    return fitted


def _subclasses(kind: Any) -> list[type[Map]]:
    """Return every kind of map below this one."""
    return [one for below in kind.__subclasses__() for one in (below, *_subclasses(below))]
