"""Maps that read covariates: shifts per level of each column, patches of groups, and trees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibrant.columns import EncodedColumns, Feature, Features
from calibrant.errors import InvalidInputError
from calibrant.fits.groups import Block, Patch, applied
from calibrant.fits.levels import expit, logit
from calibrant.fits.logistic import Linear
from calibrant.fits.trees import Forest
from calibrant.groups.rules import Rule, rule_from_list, rule_to_list
from calibrant.recalibration.maps.base import (
    IdentityMap,
    Map,
    map_of_one_column,
    refused,
    stored_clip,
    stored_number,
    stored_numbers,
)
from calibrant.recalibration.maps.columns import BinnedColumn, ColumnMap, codes_of, stored_features
from calibrant.results import Array, json_object

CLIP = 1e-6  # of the start
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnShifts:
    """What the levels of one column add to the logit, with standard errors and numbers of records."""

    column: BinnedColumn
    shifts: Array
    errors: Array
    records: Array
    slopes: Array | None = None  # added to the slope, in units of the logit's deviation; None if not fitted

    @property
    def feature(self) -> Feature:
        return self.column.feature

    def to_dict(self) -> dict[str, Any]:
        numbers = {"shifts": self.shifts, "errors": self.errors, "records": self.records}
        slopes = {} if self.slopes is None else {"slopes": self.slopes}
        return {**self.column.to_dict(), **json_object({**numbers, **slopes})}

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> ColumnShifts:
        column = BinnedColumn.from_dict(item)
        shifts = stored_numbers(item, "shifts")
        errors, records = (stored_numbers(item, name, 0.0, 1.7e308) for name in ("errors", "records"))
        slopes = stored_numbers(item, "slopes") if "slopes" in item else None
        if {len(a) for a in (shifts, errors, records, slopes) if a is not None} != {column.count}:
            raise InvalidInputError(f"column {column.feature.name!r}", f"must have {column.count} shifts")
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
    def seen_missing(self) -> list[str]:  # type: ignore[override]  # known by the columns
        return [one.feature.name for one in self.columns if one.records[-1] > 0]

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        x = logit(self.start.predict(p), self.clip)
        eta = self.intercept + self.slope * x
        given = self.encoded_columns(p, covariates)
        for one, codes in zip(self.columns, codes_of([x.column for x in self.columns], given), strict=True):
            eta = eta + Block(codes, one.column.count).taken(one.shifts)
            if one.slopes is not None:
                scaled = (x - self.centre) / self.deviation
                eta = eta + Block(codes, one.column.count, scaled).taken(one.slopes)
        return expit(eta)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
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


@dataclass(frozen=True, slots=True)
class PatchedGroup:
    column: int
    levels: tuple[int, ...]
    rule: str


class PatchesMap(ColumnMap):
    """logit q = logit of the start, then one shift after another; a range of scores is that at its turn."""

    start: Map
    patches: tuple[Patch, ...]

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        x = logit(self.start.predict(p), CLIP)
        if self.patches and len(p):
            inside = self.members(p, covariates)
            for patch in self.patches:
                x = applied(x, inside[patch.group], patch)
        return expit(x)

    @abstractmethod
    def members(self, p: Array, covariates: Any) -> Mapping[int, Mask] | Mask:
        """Return who is in each group that is patched, by its number."""


@dataclass(frozen=True, slots=True, eq=False)
class PatchMap(PatchesMap):
    form: ClassVar[str] = "patch"
    start: Map
    columns: tuple[BinnedColumn, ...]
    groups: tuple[PatchedGroup, ...]
    patches: tuple[Patch, ...]
    seen_missing: tuple[str, ...] = ()

    def members(self, p: Array, covariates: Any) -> Mask:
        return members(self.columns, self.groups, self.encoded_columns(p, covariates))

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        columns = tuple(BinnedColumn.from_dict(item) for item in numbers["columns"])
        groups = tuple(_group(item) for item in numbers["groups"])
        patches = patches_from_list(numbers["patches"], len(groups))
        if not all(0 <= g.column < len(columns) for g in groups):
            raise InvalidInputError("groups", "must be of the columns listed")
        return cls(
            map_of_one_column(numbers["start"]), columns, groups, patches, tuple(numbers["seen_missing"])
        )


def _group(item: Mapping[str, Any]) -> PatchedGroup:
    places = [item["column"], *item["levels"]]
    if not all(type(place) is int for place in places):
        raise refused("groups", "must hold whole numbers", places)
    return PatchedGroup(item["column"], tuple(item["levels"]), str(item["rule"]))


def patches_from_list(rows: Sequence[Any], groups: int) -> tuple[Patch, ...]:
    for k, row in enumerate(rows):
        stored_numbers({f"patches[{k}]": row}, f"patches[{k}]", size=5)
    patches = tuple(Patch(int(group), *map(float, rest)) for group, *rest in rows)
    if not all(0 <= p.group < groups for p in patches):
        raise InvalidInputError("patches", "must be of the groups listed")
    return patches


def members(
    columns: tuple[BinnedColumn, ...], groups: tuple[PatchedGroup, ...], given: EncodedColumns
) -> Mask:
    """Return who is in each group, one row per group."""
    codes = codes_of(columns, given)
    return np.array([np.isin(codes[group.column], group.levels) for group in groups], dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class RulePatchMap(PatchesMap):
    form: ClassVar[str] = "patch by rules"
    start: Map
    columns: Features  # that the rules read
    rules: tuple[Rule, ...]
    patches: tuple[Patch, ...]
    seen_missing: tuple[str, ...] = ()

    def members(self, p: Array, covariates: Any) -> Mapping[int, Mask]:
        return {k: self.rules[k].members(covariates) for k in {patch.group for patch in self.patches}}

    def to_dict(self) -> dict[str, Any]:
        groups = [{"rule": str(rule), "conditions": rule_to_list(rule)} for rule in self.rules]
        return self.named(groups=groups, without="rules")

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        features = stored_features(numbers["columns"]) if numbers["columns"] else ()
        rules = tuple(rule_from_list(item["conditions"]) for item in numbers["groups"])
        columns = {condition.column for rule in rules for condition in rule.conditions}
        if columns != {feature.name for feature in features}:
            raise InvalidInputError("columns", "must be those of the rules")
        patches = patches_from_list(numbers["patches"], len(rules))
        return cls(
            map_of_one_column(numbers["start"]), features, rules, patches, tuple(numbers["seen_missing"])
        )


@dataclass(frozen=True, slots=True, eq=False)
class BoostMap(ColumnMap):
    """logit q = logit of the start + the leaves of all trees; they read the covariates and that logit."""

    form: ClassVar[str] = "boost"
    start: Map
    columns: Features
    forest: Forest
    seen_missing: tuple[str, ...] = ()

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        x = logit(self.start.predict(p), CLIP)
        if len(self.forest) == 0:
            return expit(x)
        rows = np.column_stack((self.encoded_columns(p, covariates).rows, x))
        return expit(x + self.forest.predict(rows))

    def to_dict(self) -> dict[str, Any]:
        return self.named(trees=self.forest.trees, without="forest")

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        features = stored_features(numbers["columns"])
        forest = Forest.from_list(numbers["trees"], len(features) + 1)
        return cls(map_of_one_column(numbers["start"]), features, forest, tuple(numbers["seen_missing"]))


@dataclass(frozen=True, slots=True, eq=False)
class AugmentMap(ColumnMap):
    """q_0 = p; q_k is what model k says of (covariates, q_{k-1}), as a logit or as a probability."""

    form: ClassVar[str] = "augment"
    columns: Features
    models: tuple[Forest | Linear, ...]
    logits: bool  # whether they return logits
    seen_missing: tuple[str, ...] = ()

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        rows = self.encoded_columns(p, covariates).rows
        q = p
        for model in self.models:
            q = predicted_by(model, np.column_stack((rows, q)), self.logits)
        return q

    def to_dict(self) -> dict[str, Any]:
        forests = [model.trees for model in self.models if isinstance(model, Forest)]
        regressions = [model for model in self.models if isinstance(model, Linear)]
        return self.named(forests=forests, regressions=regressions, without="models")

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        features = stored_features(numbers["columns"])
        width = len(features) + 1
        for name in ("forests", "regressions"):
            if not isinstance(numbers.get(name, []), list):
                raise refused(name, "must be a list", numbers[name])
        models: list[Forest | Linear] = [Forest.from_list(trees, width) for trees in numbers["forests"]]
        models += [Linear.from_dict(item, width) for item in numbers.get("regressions", ())]
        return cls(features, tuple(models), bool(numbers["logits"]), tuple(numbers["seen_missing"]))


def predicted_by(model: Forest | Linear, rows: Array, logits: bool) -> Array:
    predicted = model.predict(rows)
    return expit(predicted) if logits else np.asarray(np.clip(predicted, 0.0, 1.0))
