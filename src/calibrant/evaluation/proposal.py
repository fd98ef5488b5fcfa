"""What recalibration would do: the map that `recalibrate` chooses on coarse cells, and whether it helps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.evaluation.recalibration_preview import why_absent
from calibrant.forecasts import Forecasts
from calibrant.inference.merging import coarse
from calibrant.recalibration.assess import Assessment, Folds
from calibrant.recalibration.band import MapBand
from calibrant.recalibration.recalibrate import AUTO, fit_sample
from calibrant.recalibration.result import Recalibration
from calibrant.recalibration.samples import Sample, counted_cells, sample_of
from calibrant.results import Array

CELLS = 256
POINTS = 101  # at which the map is drawn
CANDIDATES = ("platt", "centered-isotonic")  # two numbers, or any increasing shape: quick to refit


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """A recalibration, its assessment, and what to draw of it.

    `before` and `after` hold the same held-out records under the predictions and under the recalibrated ones.
    """

    fitted: Recalibration
    assessment: Assessment
    places: Array
    band: MapBand
    before: Forecasts
    after: Forecasts


def propose(forecasts: Forecasts, *, seed: int) -> Proposal | str:
    """Fit `auto` on coarse cells with few candidates and judge it; the reason as text where it cannot be."""
    absent = why_absent(forecasts)
    if absent:
        return absent
    try:
        fitted = fit_sample(coarse_sample(forecasts), AUTO, {"candidates": CANDIDATES}, seed=seed)
    except CalibrantError as reason:
        return str(reason)
    crossed, assessment = fitted.folds, fitted.assessment
    if isinstance(crossed, str) or assessment is None:
        return fitted.why_not_assessed
    places = np.linspace(fitted.fit.low, fitted.fit.high, POINTS)
    before, after = _held_out(crossed)
    return Proposal(fitted, assessment, places, fitted.band(places), before, after)


def coarse_sample(forecasts: Forecasts) -> Sample:
    """Return the records with neighbouring predictions merged, so that many can be refitted in no time."""
    merged = coarse(forecasts, CELLS)
    if merged is forecasts:
        return sample_of(forecasts)
    if forecasts.record_weights is None and forecasts.binary:
        return counted_cells(merged)
    ends = np.cumsum(merged.counts)
    values = merged.values[np.searchsorted(ends, np.arange(merged.n), side="right")]
    return sample_of(Forecasts(_outcomes(forecasts), values, sample_weight=forecasts.record_weights))


def _outcomes(forecasts: Forecasts) -> Array:
    if forecasts.record_outcomes is not None:
        return forecasts.record_outcomes
    return np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)  # one record per level


def _held_out(crossed: Folds) -> tuple[Forecasts, Forecasts]:
    pairs = crossed.pairs
    sides = []
    for k in (0, 1):
        rates, values, weights = (
            np.concatenate([getattr(pair[k], name) for pair in pairs])
            for name in ("rates", "values", "weights")
        )
        sides.append(Forecasts(rates, values, sample_weight=weights))
    return sides[0], sides[1]
