"""A map of the prediction, and a list of shifts in groups that rules define."""

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
from calibrant.groups.rules import Rule
from calibrant.groups.stored_rules import rule_from_list, rule_to_list
from calibrant.recalibration.maps.boost import CLIP
from calibrant.recalibration.maps.form import Map, map_of_one_column, map_to_dict
from calibrant.recalibration.maps.patch import patches_from_list, patches_to_list
from calibrant.recalibration.maps.with_columns import ColumnMap
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class RulePatchMap(ColumnMap):
    """logit q = logit of the start, then one shift after another for the members of a rule."""

    form: ClassVar[str] = "patch by rules"
    start: Map
    features: Features  # of the columns that the rules speak of
    rules: tuple[Rule, ...]
    patches: tuple[Patch, ...]
    seen_missing: tuple[str, ...] = ()

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Apply every patch in its turn."""
        from scipy.special import expit

        x = logit(self.start.predict(p), CLIP)
        used = sorted({patch.group for patch in self.patches})
        if used and len(p):
            inside = dict(zip(used, rule_members([self.rules[k] for k in used], covariates), strict=True))
            for patch in self.patches:
                x = applied(x, inside[patch.group], patch)
        return np.asarray(expit(x))

    def to_dict(self) -> dict[str, Any]:
        """Return everything: the start, the columns, the rules and every patch."""
        return {
            "start": map_to_dict(self.start),
            "columns": self.features.to_list(),
            "groups": [{"rule": str(rule), "conditions": rule_to_list(rule)} for rule in self.rules],
            "patches": patches_to_list(self.patches),
            "seen_missing": list(self.seen_missing),
        }

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map; a patch of a rule that is not there is refused."""
        features = Features.from_list(numbers["columns"]) if numbers["columns"] else Features(())
        rules = tuple(rule_from_list(item["conditions"]) for item in numbers["groups"])
        columns = {condition.column for rule in rules for condition in rule.conditions}
        if columns != set(features.names):
            raise InvalidInputError(sentence("columns", "must be those that the rules speak of"))
        patches = patches_from_list(numbers["patches"], len(rules))
        return cls(
            map_of_one_column(numbers["start"]), features, rules, patches, tuple(numbers["seen_missing"])
        )


def rule_members(rules: Sequence[Rule], covariates: Any) -> npt.NDArray[np.bool_]:
    """Return who is in each group, one row per rule; a rule of everyone needs no column of its own."""
    return np.array([rule.members(covariates) for rule in rules], dtype=bool)
