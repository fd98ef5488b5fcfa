"""The band of a map: limits of the true calibration curve, together with the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.fits.calibration_curve import fit_calibration_curve
from calibrant.recalibration.maps.base import Map, PrevalenceMap
from calibrant.recalibration.samples import ForecastSample, RowSample, Sample
from calibrant.results import Array

HOW = (
    "limits of the true calibration curve at each prediction, by a restricted cubic spline of the logit with"
    " four knots, widened to contain the map"
)


@dataclass(frozen=True, slots=True, eq=False)
class MapBand:
    """Limits of the true calibration curve, one pair per prediction, at `confidence`.

    They hold for each prediction individually, not for all of them at once.
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


def map_band(sample: Sample, fitted: Map, p: Array, confidence: float) -> MapBand:
    """Return the band of a map that was fitted to these records; no map is refitted."""
    rows = sample.rows if isinstance(sample, ForecastSample) and sample.weighted else sample
    if isinstance(rows, RowSample) and (rows.weighted or rows.clusters is not None):
        curve = fit_calibration_curve(rows.unmerged, rows.clusters, single=True)
    else:
        curve = fit_calibration_curve(sample.levels)
    lower, upper = curve.limits(p, confidence)
    if isinstance(fitted, PrevalenceMap):
        lower, upper = fitted.shifted(lower), fitted.shifted(upper)
    own = fitted.predict(p)
    return MapBand(np.minimum(lower, own), np.maximum(upper, own), confidence)
