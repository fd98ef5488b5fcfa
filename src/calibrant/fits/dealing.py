"""Records dealt into folds: one by one, or by the number of each kind where many are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.forecasts import Forecasts
from calibrant.options import whole_number
from calibrant.results import Array

MANY = 1_000_000  # records from which on only their numbers are dealt,
CROWDED = 16  # provided that there are this many per level


class Fold(NamedTuple):
    """The records of a fold by level, and those of all others."""

    part: Units
    rest: Units


def deal(forecasts: Forecasts, folds: int, seed: int) -> Iterator[Fold]:
    """Deal the records into folds at random.

    The sizes of folds differ by one record at most. Of very many records that are alike only the numbers are
    dealt, each record independently, so that the sizes differ a little more; memory is one number per level.
    """
    unknown = why_not_dealt(forecasts)
    if unknown:
        raise InvalidInputError(sentence("cross-fitting", f"needs single records: {unknown}"))
    if forecasts.n < 2:
        raise TooFewRecordsError(sentence("recalibrator", "needs two records at least", f"got {forecasts.n}"))
    whole_number("folds", folds, 2, forecasts.n)
    generator = np.random.default_rng(seed)
    if _alike(forecasts) and forecasts.n >= max(MANY, CROWDED * forecasts.levels):
        return _by_numbers(forecasts, folds, generator)
    fold = generator.permutation(forecasts.n) % folds
    if forecasts.record_outcomes is None and forecasts.levels < forecasts.n:
        return _by_rank(forecasts, folds, fold)
    units = _units(forecasts)
    if forecasts.record_weights is not None:  # differences of weights would round away small ones
        return (Fold(units.summed(fold == k), units.summed(fold != k)) for k in range(folds))
    return _beside(units.summed(), (units.summed(fold == k) for k in range(folds)))


def _beside(whole: Units, parts: Iterable[Units]) -> Iterator[Fold]:
    """Pair each part with the rest of the whole, by subtraction, which is exact for numbers of records."""
    return (Fold(part, whole.without(part)) for part in parts)


def _by_numbers(forecasts: Forecasts, folds: int, generator: np.random.Generator) -> Iterator[Fold]:
    ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
    chances = np.full(folds, 1 / folds)
    events = generator.multinomial(ones, chances)
    counts = events + generator.multinomial(forecasts.counts - ones, chances)
    parts = (_counted(counts[:, k], events[:, k], forecasts.n) for k in range(folds))
    return _beside(_counted(forecasts.counts, ones, forecasts.n), parts)


def _by_rank(forecasts: Forecasts, folds: int, fold: npt.NDArray[np.int64]) -> Iterator[Fold]:
    """Deal records that are known by their numbers; in each level those with outcome 1 come first."""
    counts, ones = forecasts.counts, np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
    stops = np.cumsum(counts)
    starts = stops - counts

    def part(k: int) -> Units:
        before = np.concatenate(([0], np.cumsum(fold == k)))  # records of this fold before each record
        held, events = before[stops] - before[starts], before[starts + ones] - before[starts]
        return _counted(held, events, forecasts.n)

    return _beside(_counted(counts, ones, forecasts.n), (part(k) for k in range(folds)))


def _counted(counts: npt.NDArray[np.int64], events: npt.NDArray[np.int64], n: int) -> Units:
    """Return one unit per level that holds a record."""
    level = np.flatnonzero(counts)
    held = counts[level]
    return Units(level, held.astype(np.float64), events[level].astype(np.float64), held, float(n))


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What can be dealt, in the order of the levels: level, weight, weight of y and count of each unit.

    Divided by `scale`, the weights of all units sum to 1.
    """

    level: npt.NDArray[np.intp]
    weights: Array
    outcomes: Array
    counts: npt.NDArray[np.int64]
    scale: float

    def summed(self, which: npt.NDArray[np.bool_] | slice = slice(None)) -> Units:
        """Return one unit for each level that `which` holds something of."""
        level = self.level[which]
        starts = np.flatnonzero(np.diff(level, prepend=-1))
        return Units(
            level[starts],
            np.add.reduceat(self.weights[which], starts),
            np.add.reduceat(self.outcomes[which], starts),
            np.add.reduceat(self.counts[which], starts),
            self.scale,
        )

    def without(self, part: Units) -> Units:
        """Return what is left of all levels, from the lowest on, without a part of them."""
        weights, outcomes, counts = self.weights.copy(), self.outcomes.copy(), self.counts.copy()
        weights[part.level] -= part.weights
        outcomes[part.level] -= part.outcomes
        counts[part.level] -= part.counts
        left = np.flatnonzero(counts)
        return Units(self.level[left], weights[left], outcomes[left], counts[left], self.scale)


def _units(forecasts: Forecasts) -> Units:
    """Return the records, which can be dealt one by one, those of equal prediction too.

    Without weights records weigh 1 each, so that sums and differences of them are exact.
    """
    counts, n = forecasts.counts, forecasts.n
    level, each = np.repeat(np.arange(forecasts.levels), counts), np.ones(n, dtype=np.int64)
    weights = np.ones(n) if forecasts.record_weights is None else forecasts.record_weights
    outcomes = forecasts.record_outcomes
    if outcomes is None:  # one record per level
        outcomes = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
    elif forecasts.levels < n:  # in that order too, so that one odd weight deals no other record elsewhere
        order = np.lexsort((-outcomes, level))
        weights, outcomes = weights[order], outcomes[order]
    scale = float(n) if forecasts.record_weights is None else 1.0
    return Units(level, weights, weights * outcomes, each, scale)


def why_not_dealt(forecasts: Forecasts) -> str:
    """Say why the records cannot be dealt one by one; nothing where they can.

    Records without weights and with outcomes 0 and 1 are known by their numbers, in a sketch too.
    """
    if forecasts.record_outcomes is not None or (forecasts.levels == forecasts.n and forecasts.cells is None):
        return ""
    if not forecasts.binary:
        return "a sketch of fractional outcomes does not know them"
    return "" if _alike(forecasts) else "a sketch of weighted records does not know them"


def _alike(forecasts: Forecasts) -> bool:
    """Return whether records are known by their numbers: outcomes 0 and 1, and equal weights."""
    if not forecasts.binary or forecasts.record_weights is not None or forecasts.record_outcomes is not None:
        return False
    spread = forecasts.squared_weights * forecasts.n
    return bool(np.allclose(spread, forecasts.weights, rtol=1e-6, atol=0))
