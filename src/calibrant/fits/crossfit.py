"""Outcome rates fitted on other records, so that the noise of a record is not counted as its loss.

On raw continuous predictions every level holds one record, and hindsight knows each outcome: the loss it
finds is noise. Here a recalibration is fitted on all folds but one and judged on that one. What remains
is what a real recalibration would gain; it may come out slightly negative, and a little noise stays in
the maximum over tasks, for which a reference by simulation is at hand (estimate_decision_loss).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.fits.dealing import Fold, deal
from calibrant.forecasts import Forecasts
from calibrant.kernels.pooling import isotonic_rates
from calibrant.results import Array

Fitted = Callable[[Array], Array]
Fit = Callable[[Array, Array, Array], Fitted]  # predictions, outcome rates and weights to a map
Recalibrator = Literal["isotonic", "binned"] | Fit


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """Groups of records: trusted prediction, the rate used instead, weight, weight of the outcome, number.

    With `rates` = outcomes / weights they say what hindsight would do; with rates fitted on other records,
    what acting on the fit would have done.
    """

    trusted: Array
    rates: Array
    weights: Array
    outcomes: Array
    counts: npt.NDArray[np.int64]


def cross_fitted(forecasts: Forecasts, recalibrator: Recalibrator, folds: int, seed: int) -> Responses:
    """Return each level, split over the folds, with the rate that the other folds give it."""
    return joined_folds(held_out(forecasts, recalibrator, folds, seed))


def joined_folds(parts: Sequence[Responses]) -> Responses:
    """Return the groups of all folds as one, in the order of the predictions."""
    trusted = np.concatenate([part.trusted for part in parts])
    order = np.argsort(trusted, kind="stable")
    return Responses(
        trusted=trusted[order],
        rates=np.concatenate([part.rates for part in parts])[order],
        weights=np.concatenate([part.weights for part in parts])[order],
        outcomes=np.concatenate([part.outcomes for part in parts])[order],
        counts=np.concatenate([part.counts for part in parts])[order],
    )


def held_out(forecasts: Forecasts, recalibrator: Recalibrator, folds: int, seed: int) -> list[Responses]:
    """Return each fold by itself, with the rates that the other folds give it.

    Errors of calibration must be judged fold by fold: over all folds together the residuals nearly cancel,
    because a fold that is high on average pushes the rates of the others up.
    """
    fit = _chosen(recalibrator)
    return [_held(forecasts.values, dealt, fit) for dealt in deal(forecasts, folds, seed)]


def _held(values: Array, dealt: Fold, fit: Fit) -> Responses:
    """Fit the rest of the records, and apply the fit to the part held out."""
    part, rest = dealt
    rate = np.clip(rest.outcomes / rest.weights, 0.0, 1.0)
    trusted = values[part.level]
    rates = _applied(fit(values[rest.level], rate, rest.weights / rest.scale), trusted)
    return Responses(trusted, rates, part.weights / part.scale, part.outcomes / part.scale, part.counts)


def name_of(recalibrator: Recalibrator | None) -> str:
    """Return how results call it."""
    return getattr(recalibrator, "__name__", str(recalibrator))


def _chosen(recalibrator: Recalibrator) -> Fit:
    known: Mapping[str, Fit] = {"isotonic": isotonic_interpolation, "binned": binned}
    if callable(recalibrator):
        return recalibrator
    if recalibrator not in known:
        raise reject_name("recalibrator", str(recalibrator), list(known))
    return known[recalibrator]


def _applied(fitted: Fitted, values: Array) -> Array:
    rates = np.asarray(fitted(values), dtype=np.float64)
    if rates.shape != values.shape or not np.all(np.isfinite(rates)):
        rule = "must fit a map that returns one finite number per prediction"
        raise InvalidInputError(sentence("recalibrator", rule, f"got shape {rates.shape}"))
    return np.clip(rates, 0.0, 1.0)


def isotonic_interpolation(values: Array, rates: Array, weights: Array) -> Fitted:
    """Fit the best non-decreasing map (pool adjacent violators), linear between the predictions seen."""
    fit = isotonic_rates(rates, weights)
    if len(values) == 1:
        return lambda v: np.full(len(v), fit[0])

    def interpolated(v: Array) -> Array:
        # numpy.interp forms a slope, which overflows between predictions that nearly agree
        right = np.clip(np.searchsorted(values, v), 1, len(values) - 1)
        low, high = values[right - 1], values[right]
        share = (np.clip(v, low, high) - low) / (high - low)
        return np.asarray((1 - share) * fit[right - 1] + share * fit[right])

    return interpolated


def binned(values: Array, rates: Array, weights: Array) -> Fitted:
    """Fit the mean outcome of bins of equal weight, about the cube root of the predictions in number."""
    bins = max(1, round(len(values) ** (1 / 3)))
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    member = np.minimum((middle * bins).astype(np.intp), bins - 1)
    mass = np.bincount(member, weights, bins)
    means = np.bincount(member, weights * rates, bins) / np.where(mass > 0, mass, 1.0)
    return lambda v: means[member[np.clip(np.searchsorted(values, v, side="right") - 1, 0, None)]]
