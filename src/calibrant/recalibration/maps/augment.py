"""Models refitted one after another, each with the prediction of the one before as one more column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.fits.forest import Forest
from calibrant.fits.linear import Linear
from calibrant.groups.features import Features
from calibrant.recalibration.maps.with_columns import ColumnMap
from calibrant.results import Array


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
        models: list[Forest | Linear] = [Forest.from_list(trees, width) for trees in numbers["forests"]]
        models += [Linear.from_dict(item, width) for item in numbers.get("regressions", ())]
        return cls(features, tuple(models), bool(numbers["logits"]), tuple(numbers["seen_missing"]))


def predicted_by(model: Forest | Linear, rows: Array, logits: bool) -> Array:
    """Return the prediction of one model."""
    from scipy.special import expit

    predicted = model.predict(rows)
    return np.asarray(expit(predicted) if logits else np.clip(predicted, 0.0, 1.0))
