"""The null: what the largest z of so many subpopulations looks like when every prediction is right.

All subpopulations see the same simulated outcomes, so the simulated maxima carry their overlap, and the
p-values are exact for any number of subpopulations, ties, weights and small sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.groups.metric import Batch, measure_batch
from calibrant.groups.records import Records
from calibrant.groups.variants import Variant
from calibrant.kernels.segments import LANES, Words, null_ranges
from calibrant.results import Array

BLOCK = 1 << 15  # records drawn at a time
SMALL_WORK = 50_000_000  # steps of simulated curves below which numpy is quicker than starting numba
ROUNDING = 1e-10  # a simulated z this close below an observed one counts as equal to it


@dataclass(slots=True, eq=False)
class Null:
    """Simulated outcomes of every record in every draw, one bit each; `work` counts steps done so far."""

    records: Records
    variant: Variant
    draws: int
    bits: Words
    work: int = 0

    @classmethod
    def simulate(cls, records: Records, variant: Variant, draws: int, rng: np.random.Generator) -> Null:
        """Draw every outcome: 1 with the predicted probability, or a fair sign for real responses."""
        chance = np.full(len(records), 0.5) if variant.real else records.prediction
        words = -(-draws // LANES)
        bits = np.empty((len(records), words), dtype=np.uint64)
        for start in range(0, len(records), BLOCK):
            bits[start : start + BLOCK] = bernoulli_words(chance[start : start + BLOCK], words, rng)
        return cls(records, variant, draws, bits)

    def z(self, batch: Batch) -> Array:
        """Return the simulated z, one row a subpopulation, one column a draw."""
        if not self.variant.weights_fixed:
            return self._z_draw_by_draw(batch)
        records = self.records
        terms = self.variant.terms(records.prediction, records.outcome, records.weight)
        high = terms.weight * (1.0 - records.prediction)
        low = -terms.weight * records.prediction
        ranges = self._ranges(batch, high, low)
        deviation = np.sqrt(np.add.reduceat(_variance(terms.variance)[batch.members], batch.offsets[:-1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = ranges / deviation[:, None]
        z[deviation == 0] = 0.0  # all outcomes certain, so every simulated curve is flat
        return z

    def _ranges(self, batch: Batch, high: Array, low: Array) -> Array:
        self.work += len(batch.members) * self.draws
        if self.work >= SMALL_WORK:
            kernel = null_ranges.machine_code()
            if kernel is not null_ranges.plain:
                ranges = np.empty((len(batch), LANES * self.bits.shape[1]))
                kernel(batch.members, batch.offsets, self.records.prediction, high, low, self.bits, ranges)
                return ranges[:, : self.draws]
        return self._ranges_by_numpy(batch, high, low)

    def _ranges_by_numpy(self, batch: Batch, high: Array, low: Array) -> Array:
        """Compute the same ranges with whole arrays: quick for small work, and where numba is absent."""
        ranges = np.empty((len(batch), self.draws))
        for k in range(len(batch)):
            members = batch.members_of(k)
            value = self.records.prediction[members]
            last = np.flatnonzero(np.append(value[1:] != value[:-1], True))
            for word in range(self.bits.shape[1]):
                lanes = slice(LANES * word, min(LANES * (word + 1), self.draws))
                ones = self._ones(members, word)[:, : lanes.stop - lanes.start]
                steps = np.where(ones, high[members][:, None], low[members][:, None])
                curve = np.cumsum(steps, axis=0)[last]
                top, bottom = curve.max(axis=0), curve.min(axis=0)
                ranges[k, lanes] = np.maximum(top, 0.0) - np.minimum(bottom, 0.0)
        return ranges

    def _ones(self, members: np.ndarray, word: int) -> np.ndarray:
        column = np.ascontiguousarray(self.bits[members, word], dtype="<u8")
        return np.unpackbits(column.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").astype(bool)

    def _z_draw_by_draw(self, batch: Batch) -> Array:
        """Recompute weights and variances from every draw, where they depend on the responses."""
        records, out = self.records, np.empty((len(batch), self.draws))
        gap = records.outcome - records.prediction
        for draw in range(self.draws):
            word, lane = divmod(draw, LANES)
            one = ((self.bits[:, word] >> np.uint64(lane)) & np.uint64(1)).astype(np.float64)
            response = records.prediction + (2.0 * one - 1.0) * gap if self.variant.real else one
            terms = self.variant.terms(records.prediction, response, records.weight)
            out[:, draw] = measure_batch(batch, records.prediction, terms).z
        return out


def _variance(variance: Array | None) -> Array:
    assert variance is not None  # fixed weights have fixed variances
    return variance


def bernoulli_words(chance: Array, words: int, rng: np.random.Generator) -> Words:
    """Return one row of `words` words for each chance; every bit is 1 with exactly that chance.

    Sixty-four uniform numbers are compared with the chance at once, binary digit by binary digit: a lane is
    decided at the first digit in which the two differ. Doubling a float64 is exact, so this is no
    approximation however small the chance.
    """
    out = np.zeros((len(chance), words), dtype=np.uint64)
    out[chance >= 1.0] = ~np.uint64(0)
    rows = np.flatnonzero((chance > 0.0) & (chance < 1.0))
    rest = chance[rows]
    undecided = np.full((len(rows), words), ~np.uint64(0))
    while len(rows):
        rest = rest + rest
        digit = rest >= 1.0
        rest -= digit
        uniform = rng.integers(0, 2**64, undecided.shape, dtype=np.uint64)
        ones = np.where(digit, ~np.uint64(0), np.uint64(0))[:, None]
        out[rows] |= undecided & ~uniform & ones
        undecided &= ~(uniform ^ ones)
        alive = (rest > 0.0) & undecided.any(axis=1)  # a chance with no digits left loses every lane
        rows, rest, undecided = rows[alive], rest[alive], undecided[alive]
    return out


def adjusted_pvalues(z: Array, simulated: Array) -> Array:
    """Return step-down max-statistic p-values (Westfall and Young): family-wise error exact, strongly.

    Subpopulations are taken from the largest z down; each is compared with the simulated maximum over
    itself and all after it. A subpopulation whose predictions are right has the same simulated z whatever
    the others are, which is what the step down needs.
    """
    order = np.argsort(-z, kind="stable")
    draws = simulated.shape[1]
    least = np.where(np.isinf(z), np.inf, z * (1.0 - ROUNDING))
    running = np.full(draws, -np.inf)
    exceeded = np.empty(len(z))
    for k in order[::-1]:
        np.maximum(running, simulated[k], out=running)
        exceeded[k] = np.count_nonzero(running >= least[k])
    pvalue = np.empty(len(z))
    pvalue[order] = np.maximum.accumulate((1.0 + exceeded[order]) / (draws + 1.0))
    return pvalue
