"""A map of the prediction, and trees that correct it by covariates.

Models refitted one after another, each with the prediction of the one before as one more column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.columns import Features
from calibrant.fits.forest import Forest
from calibrant.fits.levels import logit
from calibrant.fits.logistic import Linear
from calibrant.recalibration.maps.base import Map, map_of_one_column, map_to_dict, refused
from calibrant.recalibration.maps.columns import ColumnMap
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


@dataclass(frozen=True, slots=True, eq=False)
class AugmentMap(ColumnMap):
    """q_0 = p; q_k is what model k says of (covariates, q_{k-1}), as a logit or as a probability."""

    form: ClassVar[str] = "augment"
    features: Features
    models: tuple[Forest | Linear, ...]
    logits: bool  # whether they speak in logits
    seen_missing: tuple[str, ...] = ()

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Let one model after another speak."""
        rows = self.met(p, covariates).encoded.rows
        q = p
        for model in self.models:
            q = predicted_by(model, np.column_stack((rows, q)), self.logits)
        return q

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "columns": self.features.to_list(),
            "forests": [model.to_list() for model in self.models if isinstance(model, Forest)],
            "regressions": [model.to_dict() for model in self.models if isinstance(model, Linear)],
            "logits": self.logits,
            "seen_missing": list(self.seen_missing),
        }

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild the map."""
        features = Features.from_list(numbers["columns"])
        width = len(features.features) + 1
        for name in ("forests", "regressions"):
            if not isinstance(numbers.get(name, []), list):
                raise refused(name, "must be a list", numbers[name])
        models: list[Forest | Linear] = [Forest.from_list(trees, width) for trees in numbers["forests"]]
        models += [Linear.from_dict(item, width) for item in numbers.get("regressions", ())]
        return cls(features, tuple(models), bool(numbers["logits"]), tuple(numbers["seen_missing"]))


def predicted_by(model: Forest | Linear, rows: Array, logits: bool) -> Array:
    """Return the prediction of one model."""
    from scipy.special import expit

    predicted = model.predict(rows)
    return np.asarray(expit(predicted) if logits else np.clip(predicted, 0.0, 1.0))
