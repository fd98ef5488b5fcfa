"""The null: what the largest z of so many subpopulations looks like when every prediction is right.

All subpopulations see the same simulated outcomes, so the simulated maxima carry their overlap, and the
p-values are exact for any number of subpopulations, ties, weights and small sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.groups.batches import Batch, Lists
from calibrant.groups.variants import Variant
from calibrant.kernels.compiled import numba_is_loaded
from calibrant.kernels.segments import (
    LANES,
    Index,
    Words,
    null_ranges,
    partition_curves,
    segment_curves,
    successive_variances,
)
from calibrant.records import Records
from calibrant.results import Array

BLOCK = 1 << 12  # records drawn at a time, so that the work stays in the cache
DIGITS = 5  # binary digits between looks at which records are done
ALL = ~np.uint64(0)
SMALL_WORK = 50_000_000  # steps of simulated curves below which numpy is quicker than starting numba
SMALL_IF_LOADED = 5_000_000  # the same where numba is in the process already
ROUNDING = 1e-10  # a simulated z this close below an observed one counts as equal to it


@dataclass(slots=True, eq=False)
class FamilyNull:
    """Simulated outcomes of every record in every draw, one bit each; `work` counts steps done so far.

    A row of `steps` is a prediction and what its record adds to the curve for outcome 1 and for 0. The range
    of a curve counts only between distinct predictions; where the mean is the statistic, all are written as
    equal, and the range is how far from 0 the curve ends.
    """

    records: Records
    variant: Variant
    draws: int
    bits: Words
    steps: Array
    work: int = 0

    @classmethod
    def simulate(cls, records: Records, variant: Variant, draws: int, rng: np.random.Generator) -> FamilyNull:
        """Draw every outcome: 1 with the predicted probability, or a fair sign for real responses."""
        p, n = records.prediction, len(records)
        chance = np.full(n, 0.5) if variant.real else p
        bits = np.empty((n, -(-draws // LANES)), dtype=np.uint64)
        for start in range(0, n, BLOCK):
            bits[start : start + BLOCK] = bernoulli_words(chance[start : start + BLOCK], bits.shape[1], rng)
        weight = variant.weights(p, records.outcome, records.weight)
        value = np.zeros(n) if variant.statistic == "mean" else p
        return cls(records, variant, draws, bits, np.column_stack((value, weight * (1.0 - p), -weight * p)))

    def z(self, batch: Batch, deviation: Array) -> Array:
        """Return the simulated z, one row per subpopulation, one column per draw.

        `deviation` is that of the end of each curve, not divided by its weight.
        """
        if not self.variant.weights_fixed:
            return self._z_draw_by_draw(batch)
        certain = deviation == 0  # every simulated curve is flat
        return self._ranges(batch.lists) / np.where(certain, 1.0, deviation)[:, None]

    def _ranges(self, batch: Lists) -> Array:
        self.work += len(batch.members) * self.draws
        if self.work >= (SMALL_IF_LOADED if numba_is_loaded() else SMALL_WORK):
            kernel = null_ranges.machine_code()
            if kernel is not null_ranges.plain:
                return self._ranges_by_threads(kernel, batch)
        return self._ranges_by_numpy(batch)

    def _ranges_by_threads(self, kernel: Callable[..., None], batch: Lists) -> Array:
        """Advance many curves at once, the subpopulations shared out among the cores."""
        ranges = np.empty((len(batch), LANES * self.bits.shape[1]))

        def run(part: slice) -> None:
            offsets = batch.offsets[part.start : part.stop + 1]
            kernel(batch.members, offsets, self.steps, self.bits, ranges[part])

        batch.share_out(run)
        return ranges[:, : self.draws]

    def _ranges_by_numpy(self, batch: Lists) -> Array:
        """Compute the same ranges with whole arrays: quick for small work, and where numba is absent."""
        ranges = np.empty((len(batch), self.draws))
        for k in range(len(batch)):
            members = batch.members_of(k)
            value, high, low = self.steps[members].T
            last = np.flatnonzero(np.append(value[1:] != value[:-1], True))
            for word in range(self.bits.shape[1]):
                lanes = slice(LANES * word, min(LANES * (word + 1), self.draws))
                ones = self._ones(members, word)[:, : lanes.stop - lanes.start]
                curve = np.cumsum(np.where(ones, high[:, None], low[:, None]), axis=0)[last]
                top, bottom = curve.max(axis=0), curve.min(axis=0)
                ranges[k, lanes] = np.maximum(top, 0.0) - np.minimum(bottom, 0.0)
        return ranges

    def _ones(self, members: Index, word: int) -> npt.NDArray[np.bool_]:
        column = np.ascontiguousarray(self.bits[members, word], dtype="<u8")
        return np.unpackbits(column.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").astype(bool)

    def _z_draw_by_draw(self, batch: Batch) -> Array:
        """Recompute weights and variances from every draw, where they depend on the responses."""
        self.work += len(self.records) * self.draws
        if self.work >= SMALL_WORK // 100:  # these steps are taken one by one
            for kernel in (segment_curves, partition_curves, successive_variances):
                kernel.expect_much()
        records, out = self.records, np.empty((len(batch), self.draws))
        gap = records.outcome - records.prediction
        for draw in range(self.draws):
            word, lane = divmod(draw, LANES)
            one = ((self.bits[:, word] >> np.uint64(lane)) & np.uint64(1)).astype(np.float64)
            response = records.prediction + (2.0 * one - 1.0) * gap if self.variant.real else one
            terms = self.variant.terms(records.prediction, response, records.weight)
            out[:, draw] = batch.measure(terms).z
        return out


def bernoulli_words(chance: Array, words: int, rng: np.random.Generator) -> Words:
    """Return one row of `words` words for each chance; every bit is 1 with exactly that chance.

    A uniform number is below the chance if it is in the first binary digit where the two differ. They
    differ in a digit by the fall of a fair coin, so 64 lanes are decided at once, digit by digit: a lane
    whose coin falls takes the chance's digit. Doubling a float64 is exact, so this is no approximation,
    however small the chance.
    """
    out = np.zeros((len(chance), words), dtype=np.uint64)
    out[chance >= 1.0] = ALL
    rows = np.flatnonzero((chance > 0.0) & (chance < 1.0))
    rest = chance[rows]
    undecided = np.full((len(rows), words), ALL)
    while len(rows):
        ones = np.zeros_like(undecided)
        for _ in range(DIGITS):
            rest = rest + rest
            digit = rest >= 1.0
            rest -= digit
            coins = rng.integers(0, 2**64, undecided.shape, dtype=np.uint64)
            coins &= undecided
            undecided ^= coins
            coins &= np.where(digit, ALL, np.uint64(0))[:, None]
            ones |= coins
        out[rows] |= ones
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
