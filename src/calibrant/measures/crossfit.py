"""Outcome rates fitted on other records, so that the noise of a record is not counted as its loss.

On raw continuous predictions every level holds one record, and hindsight knows each outcome: the loss it
finds is noise. Here a recalibration is fitted on all folds but one and judged on that one. What remains
is what a real recalibration would gain; it may come out slightly negative, and a little noise stays in
the maximum over tasks, for which a reference by simulation is at hand (estimate_decision_loss).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.level_sets import warn_if_singletons
from calibrant.measures.thresholds import Responses, hindsight
from calibrant.results import Array

Fitted = Callable[[Array], Array]
Fit = Callable[[Array, Array, Array], Fitted]  # predictions, outcome rates and weights to a map
Recalibrator = Literal["isotonic", "binned"] | Fit

REMEDY = 'Pass recalibrator="isotonic" to estimate the outcome rates on other records, or round first.'


def responses(
    forecasts: Forecasts,
    what: str,
    recalibrator: Recalibrator | None,
    folds: int,
    seed: int,
    *,
    depth: int = 5,
) -> Responses:
    """Return the levels as they are, with a warning where they mean nothing, or cross-fitted rates.

    `depth` is how many calls up the user is, whose line the warning should show.
    """
    if recalibrator is None:
        warn_if_singletons(forecasts, what, REMEDY, depth)
        return hindsight(forecasts)
    return cross_fitted(forecasts, recalibrator, folds, seed)


def cross_fitted(forecasts: Forecasts, recalibrator: Recalibrator, folds: int, seed: int) -> Responses:
    """Return each level, split over the folds, with the rate that the other folds give it."""
    parts = held_out(forecasts, recalibrator, folds, seed)
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
    weights, outcomes, counts = _folded(forecasts, folds, seed)
    parts = []
    for k in range(folds):
        known = counts.sum(axis=1) > counts[:, k]
        mass = (weights.sum(axis=1) - weights[:, k])[known]
        rate = np.clip((outcomes.sum(axis=1) - outcomes[:, k])[known] / mass, 0.0, 1.0)
        held = counts[:, k] > 0
        trusted = forecasts.values[held]
        rates = _applied(fit(forecasts.values[known], rate, mass), trusted)
        parts.append(Responses(trusted, rates, weights[held, k], outcomes[held, k], counts[held, k]))
    return parts


def name_of(recalibrator: Recalibrator | None) -> str:
    """Return how results call it."""
    return getattr(recalibrator, "__name__", str(recalibrator))


def _chosen(recalibrator: Recalibrator) -> Fit:
    known: Mapping[str, Fit] = {"isotonic": isotonic, "binned": binned}
    if callable(recalibrator):
        return recalibrator
    if recalibrator not in known:
        raise reject_name("recalibrator", str(recalibrator), list(known))
    return known[recalibrator]


def _folded(forecasts: Forecasts, folds: int, seed: int) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Deal the records into folds at random: weight, weight of y and count of each level (row) and fold."""
    level, weights, outcomes, counts = _units(forecasts)
    if len(level) < 2:
        raise TooFewRecordsError(sentence("recalibrator", "needs two records at least", f"got {len(level)}"))
    if not 2 <= folds <= len(level):
        raise InvalidInputError(sentence("folds", f"must lie between 2 and {len(level):,}", f"got {folds}"))
    place = level * folds + np.random.default_rng(seed).permutation(len(level)) % folds

    def summed(part: Array) -> Array:
        total = np.bincount(place, part, forecasts.levels * folds)
        return np.asarray(total, dtype=np.float64).reshape(-1, folds)

    return summed(weights), summed(outcomes), summed(counts.astype(np.float64)).astype(np.int64)


def _units(forecasts: Forecasts) -> tuple[npt.NDArray[np.intp], Array, Array, npt.NDArray[np.int64]]:
    """Return what can be dealt: level, weight, weight of y, count.

    Records of unweighted 0/1 data are known one by one. Otherwise those that share a prediction cannot be
    told apart any more, and a whole level goes to one fold.
    """
    level, counts, n = np.arange(forecasts.levels), forecasts.counts, forecasts.n
    if not forecasts.binary or forecasts.record_weights is not None or forecasts.cells is not None:
        return level, forecasts.weights, forecasts.outcomes, counts
    level = np.repeat(level, counts)
    rank = np.arange(n) - (np.cumsum(counts) - counts)[level]
    ones = np.rint(forecasts.outcomes * n)[level]
    return level, np.full(n, 1 / n), (rank < ones) / n, np.ones(n, dtype=np.int64)


def _applied(fitted: Fitted, values: Array) -> Array:
    rates = np.asarray(fitted(values), dtype=np.float64)
    if rates.shape != values.shape or not np.all(np.isfinite(rates)):
        rule = "must fit a map that returns one finite number a prediction"
        raise InvalidInputError(sentence("recalibrator", rule, f"got shape {rates.shape}"))
    return np.clip(rates, 0.0, 1.0)


def isotonic(values: Array, rates: Array, weights: Array) -> Fitted:
    """Fit the best non-decreasing map (pool adjacent violators), linear between the predictions seen."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(rates, weights=weights).x
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
    """Fit the mean outcome of about n^(1/3) bins of equal weight (histogram binning)."""
    bins = max(1, round(len(values) ** (1 / 3)))
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    member = np.minimum((middle * bins).astype(np.intp), bins - 1)
    mass = np.bincount(member, weights, bins)
    means = np.bincount(member, weights * rates, bins) / np.where(mass > 0, mass, 1.0)
    return lambda v: means[member[np.clip(np.searchsorted(values, v, side="right") - 1, 0, None)]]
