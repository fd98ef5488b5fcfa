"""Shifts of the logit per level of every covariate, on top of intercept and slope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.hierarchical import Block
from calibrant.fits.logits import logit
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import LeveledColumn
from calibrant.recalibration.maps.form import Map, map_of_one_column, map_to_dict
from calibrant.recalibration.maps.identity import IdentityMap
from calibrant.recalibration.maps.stored import refused, stored_clip, stored_number, stored_numbers
from calibrant.recalibration.maps.with_columns import ColumnMap
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class ColumnShifts:
    """The shifts of the levels of one column, with their standard errors and numbers of records.

    `slopes` are changes of the slope per level, in units of the logit's deviation; None where not fitted.
    """

    column: LeveledColumn
    shifts: Array
    errors: Array
    records: Array
    slopes: Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        numbers = {"shifts": self.shifts, "errors": self.errors, "records": self.records}
        slopes = {} if self.slopes is None else {"slopes": self.slopes.tolist()}
        return {**self.column.to_dict(), **{k: v.tolist() for k, v in numbers.items()}, **slopes}

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> ColumnShifts:
        """Read back what `to_dict` wrote; wrong lengths are refused."""
        column = LeveledColumn.from_dict(item)
        shifts = stored_numbers(item, "shifts")
        errors, records = (stored_numbers(item, name, 0.0, 1.7e308) for name in ("errors", "records"))
        slopes = stored_numbers(item, "slopes") if "slopes" in item else None
        if {len(a) for a in (shifts, errors, records, slopes) if a is not None} != {column.count}:
            name = column.feature.name
            raise InvalidInputError(sentence(f"column {name!r}", f"must have {column.count} shifts"))
        return cls(column, shifts, errors, records, slopes)


@dataclass(frozen=True, slots=True, eq=False)
class HierarchicalMap(ColumnMap):
    """logit q = intercept + slope l + the shifts of the record's levels; l is the logit of the start."""

    form: ClassVar[str] = "hierarchical"
    intercept: float
    slope: float
    clip: float
    centre: float  # mean and deviation of the logits that the fit saw
    deviation: float
    columns: tuple[ColumnShifts, ...]
    start: Map = field(default_factory=IdentityMap)  # files of version 0.2.0 have none

    @property
    def features(self) -> Features:  # type: ignore[override]  # known by the columns
        """The covariates that the map reads."""
        return Features(tuple(one.column.feature for one in self.columns))

    @property
    def seen_missing(self) -> list[str]:  # type: ignore[override]  # known by the columns
        """The covariates with missing values in the fit."""
        return [one.column.feature.name for one in self.columns if one.records[-1] > 0]

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Add the shifts of each record's levels to its logit."""
        from scipy.special import expit

        x = logit(self.start.predict(p), self.clip)
        eta = self.intercept + self.slope * x
        given = self.met(p, covariates)
        for j, one in enumerate(self.columns):
            codes = one.column.codes(given.encoded.rows[:, j], given.missing[j])
            eta = eta + Block(codes, one.column.count).taken(one.shifts)
            if one.slopes is not None:
                scaled = (x - self.centre) / self.deviation
                eta = eta + Block(codes, one.column.count, scaled).taken(one.slopes)
        return np.asarray(expit(eta))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers."""
        names = ("intercept", "slope", "clip", "centre", "deviation")
        columns = [one.to_dict() for one in self.columns]
        return {**{k: getattr(self, k) for k in names}, "columns": columns, "start": map_to_dict(self.start)}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map."""
        if not numbers["columns"]:
            raise refused("columns", "must hold a column", numbers["columns"])
        return cls(
            intercept=stored_number(numbers, "intercept"),
            slope=stored_number(numbers, "slope"),
            clip=stored_clip(numbers),
            centre=stored_number(numbers, "centre"),
            deviation=stored_number(numbers, "deviation", 5e-324, 1.7e308),
            columns=tuple(ColumnShifts.from_dict(item) for item in numbers["columns"]),
            start=map_of_one_column(numbers["start"]) if "start" in numbers else IdentityMap(),
        )
