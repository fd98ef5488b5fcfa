"""A map of the prediction, and trees that correct it by covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.fits.forest import Forest
from calibrant.fits.logits import logit
from calibrant.groups.features import Features
from calibrant.recalibration.maps.form import Map, map_of_one_column, map_to_dict
from calibrant.recalibration.maps.with_columns import ColumnMap
from calibrant.results import Array

CLIP = 1e-6  # of the start


@dataclass(frozen=True, slots=True, eq=False)
class BoostMap(ColumnMap):
    """logit q = logit of the start + the leaves of all trees; they read the covariates and that logit."""

    form: ClassVar[str] = "boost"
    start: Map
    features: Features
    forest: Forest
    seen_missing: tuple[str, ...] = ()  # columns in which the fit saw missing values

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Walk every record down every tree."""
        from scipy.special import expit

        x = logit(self.start.predict(p), CLIP)
        if len(self.forest) == 0:
            return np.asarray(expit(x))
        rows = np.column_stack((self.met(p, covariates).encoded.rows, x))
        return np.asarray(expit(x + self.forest.predict(rows)))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers: the start, the columns, and the trees as tables."""
        return {
            "start": map_to_dict(self.start),
            "columns": self.features.to_list(),
            "seen_missing": list(self.seen_missing),
            "trees": self.forest.to_list(),
        }

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map."""
        features = Features.from_list(numbers["columns"])
        forest = Forest.from_list(numbers["trees"], len(features.features) + 1)
        return cls(map_of_one_column(numbers["start"]), features, forest, tuple(numbers["seen_missing"]))
