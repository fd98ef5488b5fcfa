"""A map of the prediction, and a list of shifts in named groups and ranges of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.logits import logit
from calibrant.fits.patching import Patch, applied
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import LeveledColumn, Met
from calibrant.recalibration.maps.boost import CLIP
from calibrant.recalibration.maps.form import Map, map_of_one_column, map_to_dict
from calibrant.recalibration.maps.stored import refused, stored_numbers
from calibrant.recalibration.maps.with_columns import ColumnMap
from calibrant.results import Array


@dataclass(frozen=True, slots=True)
class PatchedGroup:
    """Records of one column whose level is among `levels`."""

    column: int
    levels: tuple[int, ...]
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class PatchMap(ColumnMap):
    """logit q = logit of the start, then one shift after another; a range of scores is that at its turn."""

    form: ClassVar[str] = "patch"
    start: Map
    columns: tuple[LeveledColumn, ...]
    groups: tuple[PatchedGroup, ...]
    patches: tuple[Patch, ...]
    seen_missing: tuple[str, ...] = ()

    @property
    def features(self) -> Features:  # type: ignore[override]  # known by the columns
        """The columns that the map reads."""
        return Features(tuple(one.feature for one in self.columns))

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Apply every patch in its turn."""
        from scipy.special import expit

        x = logit(self.start.predict(p), CLIP)
        if self.patches:
            inside = members(self.columns, self.groups, self.met(p, covariates))
            for patch in self.patches:
                x = applied(x, inside[patch.group], patch)
        return np.asarray(expit(x))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers: the start, the columns, the groups and every patch."""
        return {
            "start": map_to_dict(self.start),
            "columns": [column.to_dict() for column in self.columns],
            "groups": [{"column": g.column, "levels": list(g.levels), "rule": g.words} for g in self.groups],
            "patches": patches_to_list(self.patches),
            "seen_missing": list(self.seen_missing),
        }

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map; a patch of a group that is not there is refused."""
        columns = tuple(LeveledColumn.from_dict(item) for item in numbers["columns"])
        groups = tuple(_group(item) for item in numbers["groups"])
        patches = patches_from_list(numbers["patches"], len(groups))
        if not all(0 <= g.column < len(columns) for g in groups):
            raise InvalidInputError(sentence("groups", "must be of the columns listed"))
        return cls(
            map_of_one_column(numbers["start"]), columns, groups, patches, tuple(numbers["seen_missing"])
        )


def _group(item: Mapping[str, Any]) -> PatchedGroup:
    """Read a group back: places of a column and of its levels."""
    places = [item["column"], *item["levels"]]
    if not all(type(place) is int for place in places):
        raise refused("groups", "must hold whole numbers", places)
    return PatchedGroup(item["column"], tuple(item["levels"]), str(item["rule"]))


def patches_to_list(patches: Sequence[Patch]) -> list[list[float]]:
    """Return the numbers of every patch."""
    return [[p.group, p.low, p.high, p.shift, p.z] for p in patches]


def patches_from_list(rows: Sequence[Any], groups: int) -> tuple[Patch, ...]:
    """Read the numbers of patches back; each must be of one of so many groups."""
    for k, row in enumerate(rows):
        stored_numbers({f"patches[{k}]": row}, f"patches[{k}]", size=5)
    patches = tuple(Patch(int(group), *map(float, rest)) for group, *rest in rows)
    if not all(0 <= p.group < groups for p in patches):
        raise InvalidInputError(sentence("patches", "must be of the groups listed"))
    return patches


def members(
    columns: tuple[LeveledColumn, ...], groups: tuple[PatchedGroup, ...], given: Met
) -> npt.NDArray[np.bool_]:
    """Return who is in each group, one row per group."""
    codes = [c.codes(given.encoded.rows[:, j], given.missing[j]) for j, c in enumerate(columns)]
    rows = len(given.encoded.rows)
    result = np.zeros((len(groups), rows), dtype=bool)
    for k, group in enumerate(groups):
        result[k] = np.isin(codes[group.column], group.levels)
    return result
