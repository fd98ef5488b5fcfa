"""A band around a map: how much the map moves when records are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.fits.logits import CLIPS, logit
from calibrant.recalibration.maps.form import Map
from calibrant.results import Array

HOW = (
    "the delete-a-group jackknife on the logit: the map was refitted without each fifth of the records in"
    " turn, its choice of a method included"
)


@dataclass(frozen=True, slots=True, eq=False)
class MapBand:
    """Limits of a map, one pair per prediction, at `confidence`, and how they were made.

    They say how sure the map is, at each prediction by itself. They do not hold for all predictions at once,
    and they know nothing of what a method cannot bend to.
    """

    lower: Array
    upper: Array
    confidence: float
    how: str = HOW

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return ("lower", "upper")

    def to_dict(self) -> dict[str, Any]:
        """Return the limits, ready for JSON."""
        limits = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        rough = list(self.approximate)
        return {**limits, "confidence": self.confidence, "approximate": rough, "how": self.how}


def jackknife_band(whole: Map, without: Sequence[Map], p: Array, confidence: float) -> MapBand:
    """Return the band of a map from the maps fitted without each of K equal groups of records.

    The variance is (K - 1) / K times the squared deviations (Shao & Tu 1995, section 2.3), on K - 1 degrees
    of freedom. Groups must not be stratified by outcome: the rate of outcomes is uncertain too.
    """
    from scipy.special import expit, stdtrit

    centre = logit(whole.predict(p), CLIPS[0])
    table = np.array([logit(one.predict(p), CLIPS[0]) for one in without])
    folds = len(table)
    variance = (folds - 1) / folds * ((table - table.mean(axis=0)) ** 2).sum(axis=0)
    reach = float(stdtrit(folds - 1, (1 + confidence) / 2)) * np.sqrt(variance)
    return MapBand(np.asarray(expit(centre - reach)), np.asarray(expit(centre + reach)), confidence)
