"""Outcome rates fitted on other records: with hindsight of single records, noise would count as loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.inputs import whole_number
from calibrant.kernels.fits import isotonic_rates
from calibrant.results import Array

MIN_NUMBERED_RECORDS = 1_000_000  # records from which on only their numbers are dealt,
MIN_RECORDS_PER_LEVEL = 16  # provided that there are this many per level


def split_folds(forecasts: Forecasts, folds: int, seed: int) -> Iterator[tuple[FoldUnits, FoldUnits]]:
    """Deal the records at random; return those of each fold by level, and those of all others."""
    unknown = why_not_dealt(forecasts)
    if unknown:
        raise InvalidInputError("cross-fitting", f"needs single records: {unknown}")
    if forecasts.n < 2:
        raise TooFewRecordsError("recalibrator", "needs two records at least", f"got {forecasts.n}")
    whole_number("folds", folds, 2, forecasts.n)
    generator = np.random.default_rng(seed)
    if _alike(forecasts):
        return _by_numbers(forecasts, folds, generator)
    fold = generator.permutation(forecasts.n) % folds
    units = _units(forecasts)
    return ((units.summed(fold == k), units.summed(fold != k)) for k in range(folds))


def _by_numbers(
    forecasts: Forecasts, folds: int, generator: np.random.Generator
) -> Iterator[tuple[FoldUnits, FoldUnits]]:
    """Count the records of each level in each fold: faster than to take them from arrays fold by fold."""
    n, totals = forecasts.n, forecasts.counts
    ones = np.rint(forecasts.outcomes * n).astype(np.int64)
    if n >= max(MIN_NUMBERED_RECORDS, MIN_RECORDS_PER_LEVEL * forecasts.levels):
        chances = np.full(folds, 1 / folds)
        events = generator.multinomial(ones, chances)
        counts = events + generator.multinomial(totals - ones, chances)
    else:  # one by one, those with outcome 1 first in each level
        cells = forecasts.levels * folds
        place = np.repeat(np.arange(forecasts.levels) * folds, totals) + generator.permutation(n) % folds
        is_one = np.arange(n) < np.repeat(np.cumsum(totals) - totals + ones, totals)
        counts, events = (
            np.bincount(chosen, minlength=cells).reshape(-1, folds) for chosen in (place, place[is_one])
        )
    for held, held_events in zip(counts.T, events.T, strict=True):
        yield _counted(held, held_events, n), _counted(totals - held, ones - held_events, n)


def _counted(counts: npt.NDArray[np.int64], events: npt.NDArray[np.int64], n: int) -> FoldUnits:
    level = np.flatnonzero(counts)
    held = counts[level]
    return FoldUnits(level, held.astype(np.float64), events[level].astype(np.float64), held, float(n))


@dataclass(frozen=True, slots=True, eq=False)
class FoldUnits:
    """What can be dealt, in the order of the levels; divided by `scale`, all weights sum to 1."""

    level: npt.NDArray[np.intp]
    weights: Array
    outcomes: Array
    counts: npt.NDArray[np.int64]
    scale: float

    def summed(self, which: npt.NDArray[np.bool_]) -> FoldUnits:
        rows = np.flatnonzero(which)  # several columns are taken faster by places than by a mask
        level, counts = self.level[rows], self.counts[rows]
        weights, outcomes = self.weights[rows], self.outcomes[rows]
        starts = np.flatnonzero(np.diff(level, prepend=-1))
        if len(starts) < len(rows):
            level, counts = level[starts], np.add.reduceat(counts, starts)
            weights, outcomes = np.add.reduceat(weights, starts), np.add.reduceat(outcomes, starts)
        return FoldUnits(level, weights, outcomes, counts, self.scale)


def _units(forecasts: Forecasts) -> FoldUnits:
    """Return the records one by one, in each level by falling outcome; without weights they weigh 1 each."""
    counts, n = forecasts.counts, forecasts.n
    level, each = np.repeat(np.arange(forecasts.levels), counts), np.ones(n, dtype=np.int64)
    weights = np.ones(n) if forecasts.record_weights is None else forecasts.record_weights
    outcomes = forecasts.record_outcomes
    if outcomes is None:
        outcomes = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
    elif forecasts.levels < n:  # in that order too, so that one odd weight deals no other record elsewhere
        order = np.lexsort((-outcomes, level))
        weights, outcomes = weights[order], outcomes[order]
    scale = float(n) if forecasts.record_weights is None else 1.0
    return FoldUnits(level, weights, weights * outcomes, each, scale)


def why_not_dealt(forecasts: Forecasts) -> str:
    if forecasts.record_outcomes is not None or (forecasts.levels == forecasts.n and forecasts.cells is None):
        return ""
    if not forecasts.binary:
        return "a sketch of fractional outcomes does not know them"
    return "" if _alike(forecasts) else "a sketch of weighted records does not know them"


def _alike(forecasts: Forecasts) -> bool:
    if not forecasts.binary or forecasts.record_weights is not None or forecasts.record_outcomes is not None:
        return False
    spread = forecasts.squared_weights * forecasts.n
    return bool(np.allclose(spread, forecasts.weights, rtol=1e-6, atol=0))


Fitted = Callable[[Array], Array]
Fit = Callable[[Array, Array, Array], Fitted]  # predictions, outcome rates and weights to a map
Recalibrator = Literal["isotonic", "binned"] | Fit


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """Groups of records, with the rate used instead of the trusted prediction: observed, or of others."""

    trusted: Array
    rates: Array
    weights: Array
    outcomes: Array
    counts: npt.NDArray[np.int64]


def cross_fitted(forecasts: Forecasts, recalibrator: Recalibrator, folds: int, seed: int) -> Responses:
    return joined_folds(held_out(forecasts, recalibrator, folds, seed))


def joined_folds(parts: Sequence[Responses]) -> Responses:
    order = np.argsort(np.concatenate([part.trusted for part in parts]), kind="stable")
    names = [one.name for one in fields(Responses)]
    return Responses(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in names))


def held_out(forecasts: Forecasts, recalibrator: Recalibrator, folds: int, seed: int) -> list[Responses]:
    """Return the folds one by one, with the rates that the others give them."""
    known: Mapping[str, Fit] = {"isotonic": isotonic_interpolation, "binned": binned}
    if not callable(recalibrator) and recalibrator not in known:
        raise reject_name("recalibrator", str(recalibrator), list(known))
    fit = recalibrator if callable(recalibrator) else known[recalibrator]
    # kept apart: a fold that is high pushes the rates of the others up, so pooled residuals nearly cancel
    values, judged = forecasts.values, []
    for part, rest in split_folds(forecasts, folds, seed):
        rate = np.clip(rest.outcomes / rest.weights, 0.0, 1.0)
        trusted = values[part.level]
        fitted = fit(values[rest.level], rate, rest.weights / rest.scale)
        rates = np.asarray(fitted(trusted), dtype=np.float64)
        if rates.shape != trusted.shape or not np.all(np.isfinite(rates)):
            rule = "must fit a map that returns one finite number per prediction"
            raise InvalidInputError("recalibrator", rule, f"got shape {rates.shape}")
        weights, outcomes = part.weights / part.scale, part.outcomes / part.scale
        judged.append(Responses(trusted, np.clip(rates, 0.0, 1.0), weights, outcomes, part.counts))
    return judged


def name_of(recalibrator: Recalibrator | None) -> str:
    return getattr(recalibrator, "__name__", str(recalibrator))


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
