"""The gain of a recalibration, with an interval that includes the optimism of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.metrics.scores import CLIP
from calibrant.results import Array

MIN_DEGREES = 1.0  # of freedom of Student's t


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """Loss before minus loss after, per record or per cell, for either outcome.

    `rates` is the share of outcome 1 and `weights` the number of records that each entry counts for. With
    `clusters`, entries of the same cluster are dependent. Entries that are single records (`single`) may
    weigh differently.
    """

    if_one: Array
    if_zero: Array
    rates: Array
    weights: Array
    clusters: npt.NDArray[np.int64] | None = None
    single: bool = True
    rarer: float | None = None  # records of the rarer outcome, where `rates` does not say

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def mean(self) -> float:
        return float(self.weights @ self._expected) / self.total

    @property
    def _expected(self) -> Array:
        return np.asarray(self.rates * self.if_one + (1.0 - self.rates) * self.if_zero)

    @property
    def _squares(self) -> Array:
        """Expected squared deviation from the mean, per entry."""
        mean = self.mean
        squares = self.rates * (self.if_one - mean) ** 2 + (1.0 - self.rates) * (self.if_zero - mean) ** 2
        return np.asarray(squares)

    @property
    def variance(self) -> float:
        return float(self.weights @ self._squares) / self.total

    @property
    def design_effect(self) -> float:
        """How much clusters or unequal weights inflate the variance of the mean; at least 1."""
        plain = self.variance * self.total
        if plain <= 0 or not self.single:
            return 1.0
        if self.clusters is None:
            return max(1.0, float(self.weights**2 @ self._squares) / plain)
        surplus = self.weights * (self._expected - self.mean)
        sums = np.bincount(self.clusters, surplus)
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


def loss_if(predictions: Array, loss: str) -> tuple[Array, Array]:
    if loss == "brier":
        return (1.0 - predictions) ** 2, predictions**2
    safe = np.clip(predictions, CLIP, 1.0 - CLIP)
    return -np.log(safe), -np.log1p(-safe)


def join_gains(parts: Sequence[Gains]) -> Gains:
    clusters = [part.clusters for part in parts if part.clusters is not None]
    return Gains(
        np.concatenate([part.if_one for part in parts]),
        np.concatenate([part.if_zero for part in parts]),
        np.concatenate([part.rates for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate(clusters) if clusters else None,
        all(part.single for part in parts),
        None if parts[0].rarer is None else float(sum(part.rarer or 0.0 for part in parts)),
    )


@dataclass(frozen=True, slots=True)
class GainRule:
    """What the interval needs to know about the procedure and the loss.

    `folds` per deal; `chosen` if the method was chosen from the same records; `unchanged` if the delivered
    map is the identity; `curvature` is how much one nat of optimism is worth in the variance (1 for the log
    loss, 2 mean q (1 - q) for the Brier score); `own_variance` if the variance of the delivered map's gains
    counts too (log loss only); `more_records` if the delivered map was fitted to more records than these.
    """

    folds: int
    chosen: bool = False
    unchanged: bool = False
    curvature: float = 1.0
    own_variance: bool = True
    more_records: bool = False


def gain_interval(
    deals: Sequence[Gains], own: Gains, rule: GainRule, confidence: float
) -> tuple[float, float, float]:
    """Return the mean held-out gain and the limits of the delivered map's gain.

    `deals` are the held-out gains, all records once per deal; `own` are the gains of the delivered map on
    the records it was fitted to. The records alone give too narrow an interval: near a gain of 0, with k
    parameters, the held-out gain misses the true one by about (chi2_k - k) / n. The optimism d = |own - held
    out| of the fit measures k / n, and costs no further fit.
    """
    from scipy.special import stdtrit

    mean = float(np.mean([one.mean for one in deals]))
    spread = float(np.mean([one.variance for one in deals]))
    if rule.own_variance:
        spread = max(spread, own.variance)
    optimism = own.mean - mean
    inflated = float(np.mean([one.design_effect for one in deals])) / own.total
    variance = (spread + rule.curvature * abs(optimism)) * inflated
    if rule.chosen:
        variance += (optimism / 2.0) ** 2
    half = float(stdtrit(own.degrees, (1.0 + confidence) / 2.0)) * variance**0.5
    missing = max(optimism, 0.0) / (2 * rule.folds - 1)  # held-out fits saw (K - 1) / K of the records
    lower, upper = mean - half, mean + half + missing
    if rule.more_records:
        upper = max(upper, own.mean + half)
    if rule.unchanged:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return mean, lower, upper
