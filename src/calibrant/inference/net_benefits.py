"""net_benefits: decision curves of several models on the same rows, with intervals.

At one threshold t a record adds 1 (treated and an event), -t / (1 - t) (treated and none) or 0, so a net
benefit, and the difference of two, is a linear function of a few shares. Each share has Wilson's interval,
and the ends are put together as Zou & Donner 2008 do (MOVER), with the shares' correlation: where hardly
anybody is treated the interval does not shrink to a point, as a resampled one would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.inference.benefit_curves import Benefit, BenefitDifference, NetBenefits
from calibrant.inference.interval import check_confidence
from calibrant.inference.paired_rows import PairedRows, models_given, named_models, paired_rows
from calibrant.measures.decisions.net_benefit import checked_thresholds
from calibrant.records import Missing
from calibrant.results import Array


def net_benefits(
    y_true: Any,
    *predictions: Any,
    thresholds: npt.ArrayLike | None = None,
    sample_weight: Any = None,
    names: list[str] | None = None,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: Sequence[str] | str | None = None,
    weight: str | None = None,
    confidence: float = 0.95,
) -> NetBenefits:
    """Return the decision curves of one or more models on the same rows, with intervals.

    Parameters
    ----------
    y_true, predictions, sample_weight, names
        Outcomes, then the predictions one after the other, or one mapping from names to predictions, or a
        frame with a column for each model. Or one frame with `outcome`, `prediction` and `weight`.
    thresholds
        Probabilities from which on somebody is treated; 0.01, 0.02, ..., 0.99 unless given.
    missing, pos_label, outcome, prediction, weight
        As in `compare`: a row that lacks a value for one model is left out for all.
    confidence
        Of the intervals, which are for one threshold at a time.

    Returns
    -------
    NetBenefits

    Examples
    --------
    >>> y, p = [0, 1, 1, 0] * 50, [0.2, 0.4, 0.8, 0.6] * 50
    >>> found = net_benefits(y, {"model": p, "coin": [0.5] * 200}, thresholds=[0.3, 0.7])
    >>> found.best()
    ['model', 'model']
    """
    y_true, predictions, sample_weight = models_given(
        y_true, predictions, sample_weight, outcome=outcome, prediction=prediction, weight=weight
    )
    check_confidence(confidence)
    asked = checked_thresholds(thresholds)
    rows = paired_rows(y_true, named_models(predictions, names, 1), sample_weight, missing, pos_label)
    shares = _Shares.of(rows, confidence)
    return NetBenefits(
        thresholds=asked,
        models={name: shares.benefit(p, asked) for name, p in rows.models.items()},
        treat_all=shares.benefit(np.ones(len(rows.outcomes)), asked),
        differences=tuple(
            BenefitDifference(first, second, *shares.difference(p, q, asked))
            for (first, p), (second, q) in combinations(rows.models.items(), 2)
        ),
        confidence=confidence,
        n=len(rows.outcomes),
        dropped=rows.dropped,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """What is needed for shares of the records: weighted events and others, and how many records they say."""

    events: Array
    others: Array
    records: float
    reach: float

    @classmethod
    def of(cls, rows: PairedRows, confidence: float) -> _Shares:
        from scipy.special import ndtri

        w = np.ones(len(rows.outcomes)) if rows.weights is None else rows.weights
        w = w / w.sum()
        reach = float(ndtri((1 + confidence) / 2))
        return cls(w * rows.outcomes, w * (1 - rows.outcomes), 1 / float(w @ w), reach)

    def benefit(self, predictions: Array, thresholds: Array) -> Benefit:
        """Return true positives less false ones at the odds of the threshold."""
        odds = thresholds / (1 - thresholds)
        treated = (predictions >= t for t in thresholds)
        shares = np.array([[self.events[who].sum(), self.others[who].sum()] for who in treated]).T
        return Benefit(*self._combined(np.stack([np.ones(len(odds)), -odds]), shares))

    def difference(self, one: Array, other: Array, thresholds: Array) -> tuple[Array, Array, Array]:
        """Return what one model gains over another; records that both or neither treat add nothing."""
        odds = thresholds / (1 - thresholds)
        shares = np.array([self._alone(one >= t, other >= t) for t in thresholds]).T
        ones = np.ones(len(odds))
        return self._combined(np.stack([ones, -ones, -odds, odds]), shares)

    def _alone(self, one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> list[float]:
        first, second = one & ~other, other & ~one
        return [float(part[who].sum()) for part in (self.events, self.others) for who in (first, second)]

    def _combined(self, factors: Array, shares: Array) -> tuple[Array, Array, Array]:
        """Return the sum of factors times shares (rows) at each threshold (columns), and its interval."""
        low, high = self._wilson(shares)
        value = (factors * shares).sum(axis=0)
        down = np.where(factors > 0, factors * (shares - low), factors * (shares - high))
        up = np.where(factors > 0, factors * (high - shares), factors * (low - shares))
        return value, value - self._joint(down, factors, shares), value + self._joint(up, factors, shares)

    def _wilson(self, shares: Array) -> tuple[Array, Array]:
        n, z = self.records, self.reach
        centre = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(shares * (1 - shares) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return np.clip(centre - half, 0, shares), np.clip(centre + half, shares, 1)

    @staticmethod
    def _joint(parts: Array, factors: Array, shares: Array) -> Array:
        """Add errors of correlated shares: shares of one whole have correlation -sqrt(a b / (1-a) (1-b))."""
        root = np.sqrt(shares / np.maximum(1 - shares, 1e-16)) * np.sign(factors)
        total = (parts**2).sum(axis=0)
        for i, j in combinations(range(len(parts)), 2):
            total = total - 2 * (root[i] * root[j]) * parts[i] * parts[j]
        return np.asarray(np.sqrt(np.maximum(total, 0.0)))
