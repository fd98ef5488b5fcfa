"""Columns as levels: categories, quantile ranges of numbers, and missing as a level of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.columns import Column, Encoded, Feature, Features, code_columns
from calibrant.formatting import pluralize
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
        return [_written(self.feature, cut) for cut in self.cuts]

    def to_dict(self) -> dict[str, Any]:
        return {**self.feature.to_dict(), "cuts": self.cuts.tolist()}

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> BinnedColumn:
        cuts = stored_steps(item, "cuts", -MAX_FLOAT, MAX_FLOAT)
        return cls(Features.from_list([item]).features[0], cuts)


def _written(feature: Feature, cut: float) -> str:
    if feature.kind == "ordered":
        return str(feature.labels[int(cut)])
    if feature.kind == "moment":
        return str(np.datetime64(round(cut), "s"))
    return f"{cut:.12g}"


def coded(covariates: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Column]:
    chosen = {name: covariates[name] for name in (names or covariates)}
    return code_columns(chosen, len(next(iter(chosen.values()))), "covariates")


@dataclass(frozen=True, slots=True, eq=False)
class EncodedColumns:
    features: Features
    encoded: Encoded
    missing: tuple[npt.NDArray[np.bool_], ...]

    @classmethod
    def of(cls, features: Features, columns: Sequence[Column]) -> EncodedColumns:
        gaps = tuple((column.codes == 0) & column.missing for column in columns)
        return cls(features, features.encode(columns), gaps)

    @classmethod
    def of_sample(cls, covariates: Mapping[str, Any], names: Sequence[str] | None = None) -> EncodedColumns:
        columns = coded(covariates, names)
        return cls.of(Features.of(columns), columns)

    @property
    def with_gaps(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.encoded.missing.items() if count)

    def binned(self, bins: int) -> tuple[BinnedColumn, ...]:
        numbers, features = self.encoded.rows, self.features.features
        return tuple(BinnedColumn.of(one, numbers[:, j], bins) for j, one in enumerate(features))

    def codes(self, binned: Sequence[BinnedColumn]) -> list[Codes]:
        return [one.codes(self.encoded.rows[:, j], self.missing[j]) for j, one in enumerate(binned)]


def remarks(seen_missing: Sequence[str], given: EncodedColumns) -> tuple[str, ...]:
    """Say what new rows have that the fit has not seen."""
    texts = []
    for name, count in given.encoded.unseen.items():
        if count:
            texts.append(
                f"column {name!r} has categories that were not seen in the fit, in {pluralize(count, 'row')}."
            )
    for name, count in given.encoded.missing.items():
        if count and name not in seen_missing:
            texts.append(f"column {name!r} is missing in {pluralize(count, 'row')}; in the fit it never was.")
    return tuple(texts)


class ColumnMap(Map):
    """A map of the prediction and of `features`; `seen_missing` names columns with gaps in the fit."""

    needs_covariates: ClassVar[bool] = True
    features: Features
    seen_missing: Sequence[str]

    def encoded_columns(self, p: Array, covariates: Mapping[str, Any] | None) -> EncodedColumns:
        return EncodedColumns.of(self.features, self.features.columns(covariates, len(p)))

    @property
    def column_names(self) -> list[str]:
        return self.features.names

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        if not self.features.features:
            return ()
        return remarks(self.seen_missing, self.encoded_columns(p, covariates))
