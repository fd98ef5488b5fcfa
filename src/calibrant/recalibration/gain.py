"""The gain of a recalibration, with an interval that includes the optimism of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Costs

MIN_DEGREES = 1.0  # of freedom of Student's t


@dataclass(frozen=True, slots=True, eq=False)
class Gains(Costs):
    """Loss before minus loss after, per record or per cell, for either outcome; dependent in `clusters`."""

    clusters: npt.NDArray[np.int64] | None = None
    single: bool = True
    rarer: float | None = None  # records of the rarer outcome, where `rates` does not say

    @property
    def design_effect(self) -> float:
        """How much clusters or unequal weights inflate the variance of the mean; at least 1."""
        plain = self.variance * self.total
        if plain <= 0 or not self.single:
            return 1.0
        if self.clusters is None:
            return max(1.0, float(self.weights**2 @ self.squares) / plain)
        sums = np.bincount(self.clusters, self.weights * (self.expected - self.mean))
        groups = len(np.unique(self.clusters))
        return max(1.0, float(sums @ sums) / plain * groups / max(groups - 1, 1))

    @property
    def degrees(self) -> float:
        """Degrees of freedom: records of the rarer outcome, or clusters, less one."""
        ones = float(self.weights @ self.rates)
        rarer = min(ones, self.total - ones) if self.rarer is None else self.rarer
        if self.clusters is not None:
            rarer = min(rarer, float(len(np.unique(self.clusters))))
        return max(rarer - 1.0, MIN_DEGREES)


def gain_interval(
    splits: Sequence[Gains], own: Gains, *, folds: int, confidence: float, chosen: bool = False,
    unchanged: bool = False, variance: float | None = None, more_records: bool = False,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the mean held-out gain and the limits of the delivered map's gain.

    The records alone give too narrow an interval: near a gain of 0, with k parameters, the held-out gain
    misses the true one by about (chi2_k - k) / n. The optimism of the fit, its gain on its `own` records
    less the held-out one, measures k / n. For the Brier score, `variance` is the mean variance of an
    outcome under the map.
    """
    from scipy.special import stdtrit

    mean = float(np.mean([one.mean for one in splits]))
    spread = float(np.mean([one.variance for one in splits]))
    optimism = own.mean - mean
    if variance is None:
        spread = max(spread, own.variance) + abs(optimism)
    else:
        spread += 2.0 * variance * abs(optimism)
    squared_error = spread * float(np.mean([one.design_effect for one in splits])) / own.total
    if chosen:
        squared_error += (optimism / 2.0) ** 2
    half = float(stdtrit(own.degrees, (1.0 + confidence) / 2.0)) * squared_error**0.5
    missing = max(optimism, 0.0) / (2 * folds - 1)  # held-out fits saw (K - 1) / K of the records
    lower, upper = mean - half, mean + half + missing
    if more_records:
        upper = max(upper, own.mean + half)
    if unchanged:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return mean, lower, upper
