"""Columns as levels: categories, quantile ranges of numbers, and missing as a level of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.columns import Column, EncodedColumns, Feature, Features, code_columns
from calibrant.errors import InvalidInputError, reject_name
from calibrant.recalibration.maps.base import Map, stored_steps
from calibrant.results import Array

Codes = npt.NDArray[np.int64]
MAX_FLOAT = float(np.finfo(np.float64).max)  # JSON has no word for infinity


@dataclass(frozen=True, slots=True, eq=False)
class BinnedColumn:
    """One column: its feature, and for numbers the cuts between levels. The last level is missing."""

    feature: Feature
    cuts: Array

    @classmethod
    def of(cls, feature: Feature, numbers: Array, bins: int) -> BinnedColumn:
        """Cut numbers at their quantiles, of which equal ones are one cut; infinity counts as the largest."""
        known = numbers[~np.isnan(numbers)]
        if feature.kind == "category" or len(known) == 0:
            return cls(feature, np.empty(0))
        known = np.clip(known, -MAX_FLOAT, MAX_FLOAT)
        cuts = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="higher"))
        return cls(feature, cuts[cuts > known.min()])

    @property
    def count(self) -> int:
        return 1 + (len(self.feature.labels) if self.feature.kind == "category" else len(self.cuts) + 1)

    def codes(self, numbers: Array, missing: npt.NDArray[np.bool_]) -> Codes:
        """Return the level of each number; -1 for a category that was never seen."""
        if self.feature.kind == "category":
            result = np.where(np.isnan(numbers), -1.0, numbers).astype(np.int64)
        else:
            result = np.searchsorted(self.cuts, numbers, side="right").astype(np.int64)
            result[np.isnan(numbers)] = -1  # an ordered category that was never seen
        result[missing] = self.count - 1
        return result

    def words(self) -> list[str]:
        name = self.feature.name
        if self.feature.kind == "category":
            known = [f"{name} = {label}" for label in self.feature.labels]
        elif len(self.cuts) == 0:
            known = [f"{name} is not missing"]
        else:
            at = self.written_cuts()
            inner = [f"{low} <= {name} < {high}" for low, high in pairwise(at)]
            known = [f"{name} < {at[0]}", *inner, f"{name} >= {at[-1]}"]
        return [*known, f"{name} is missing"]

    def written_cuts(self) -> list[str]:
        if self.feature.kind == "ordered":
            return [str(self.feature.labels[int(cut)]) for cut in self.cuts]
        if self.feature.kind == "moment":
            return [str(np.datetime64(round(cut), "s")) for cut in self.cuts]
        return [f"{cut:.12g}" for cut in self.cuts]

    def to_dict(self) -> dict[str, Any]:
        return {**self.feature.to_dict(), "cuts": self.cuts.tolist()}

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> BinnedColumn:
        cuts = stored_steps(item, "cuts", -MAX_FLOAT, MAX_FLOAT)
        return cls(Feature.from_dict(item), cuts)


def coded(covariates: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Column]:
    chosen = {name: covariates[name] for name in (names or covariates)}
    return code_columns(chosen, len(next(iter(chosen.values()))), "covariates")


def stored_features(items: Sequence[Mapping[str, Any]]) -> Features:
    if not items:
        raise InvalidInputError("columns", "must hold a column", "got none")
    return tuple(map(Feature.from_dict, items))


def binned_columns(given: EncodedColumns, bins: int) -> tuple[BinnedColumn, ...]:
    return tuple(BinnedColumn.of(one, given.rows[:, j], bins) for j, one in enumerate(given.features))


def codes_of(binned: Sequence[BinnedColumn], given: EncodedColumns) -> list[Codes]:
    return [one.codes(given.rows[:, j], given.missing[j]) for j, one in enumerate(binned)]


def encoded_sample(covariates: Mapping[str, Any], names: Sequence[str] | None = None) -> EncodedColumns:
    return EncodedColumns.of(coded(covariates, names))


class ColumnMap(Map):
    """A map of the prediction and `columns`, features or what has one; `seen_missing` had gaps in the fit."""

    needs_covariates: ClassVar[bool] = True
    columns: Sequence[Any]
    seen_missing: Sequence[str]

    @property
    def features(self) -> Features:
        return tuple(getattr(column, "feature", column) for column in self.columns)

    def encoded_columns(self, p: Array, covariates: Any) -> EncodedColumns:
        """Encode the columns needed of any container, in order; one that is absent is refused by name."""
        names = self.column_names
        nominal = [feature.name for feature in self.features if feature.kind == "category"]
        if isinstance(covariates, Mapping):  # other columns of a mapping cost nothing then
            covariates = {name: x for name, x in covariates.items() if str(name) in names} or covariates
        found = {column.name: column for column in code_columns(covariates, len(p), "covariates", nominal)}
        for name in names:
            if name not in found:
                raise reject_name("covariates", name, sorted(found))
        return EncodedColumns.of([found[name] for name in names], self.features)

    @property
    def column_names(self) -> list[str]:
        return [feature.name for feature in self.features]

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        return self.encoded_columns(p, covariates).remarks(self.seen_missing) if self.features else ()
