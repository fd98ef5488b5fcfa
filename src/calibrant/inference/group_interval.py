"""The interval of a group's difference: observed rate minus mean prediction.

No variance is borrowed from the predictions, which may be wrong. The interval is the union of Student's t
interval for the mean residual and, where rare events show too little variance, Wilson's interval for the
rate, minus the mean prediction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

MIN_WEIGHTED_RECORDS = 5  # of either outcome: with fewer, weighted 95% intervals covered only 65%
MIN_EFFECTIVE_RECORDS = 2.0  # a record that outweighs all others together shows no variance
MIN_CLUSTERS = 10.0 - 1e-9  # effective number below which nothing keeps its promise; 10 equal ones may round
GUARD_RECORDS = 2.0  # records of the rarer outcome that are assumed to show no gain from the predictions
Codes = npt.NDArray[np.intp]


class Moments(NamedTuple):
    """What the interval needs of each group; numbers of records are effective where these have weights."""

    mean_prediction: Array
    mean_outcome: Array
    residual_variance: Array  # of the mean
    outcome_variance: Array  # of the mean
    freedom: Array  # how many records, or clusters, show the variances, less one
    size: Array  # of the sample, where all outcomes are equal
    rarer: Array  # number of records with the rarer outcome


def binary_moments(size: Array, mean_prediction: Array, mean_outcome: Array, squares: Array) -> Moments:
    """Return the moments of groups without weights and outcomes of 0 or 1, from their sums."""
    fewer = np.maximum(size - 1.0, 1e-9)
    gap = mean_outcome - mean_prediction
    return Moments(
        mean_prediction,
        mean_outcome,
        np.maximum(squares - gap**2, 0.0) / fewer,
        mean_outcome * (1 - mean_outcome) / fewer,
        size - 1.0,
        size,
        size * np.minimum(mean_outcome, 1 - mean_outcome),
    )


def row_moments(
    prediction: Array, outcome: Array, weight: Array | None = None, cluster: Codes | None = None
) -> Moments:
    n = len(outcome)
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    predicted, observed = float(share @ prediction), float(share @ outcome)
    present = None if cluster is None else np.bincount(cluster) > 0

    def summed(values: Array) -> Array:
        if cluster is None:
            return values
        return np.asarray(np.bincount(cluster, values)[present], dtype=np.float64)

    def kish(masses: Array) -> float:
        sums = summed(masses)
        if not sums.any():
            return 0.0
        sums = sums / np.abs(sums).max()  # squares of tiny weights would vanish
        return float(sums.sum() ** 2 / (sums @ sums))

    whole = summed(share)
    effective, count = 1 / float(whole @ whole), len(whole)
    enlarge = count / max(count - 1, 1e-9)

    def variance(values: Array, mean: float) -> float:
        sums = summed(share * (values - mean))
        return float(sums @ sums) * enlarge

    one = (
        predicted,
        observed,
        variance(outcome - prediction, observed - predicted),
        variance(outcome, observed),
        min(count, effective) - 1.0,
        min(effective, 1 / float(whole.max())),
        min(kish(share * outcome), kish(share * (1 - outcome))),
    )
    return Moments(*(np.array([value]) for value in one))


def difference_interval(moments: Moments, confidence: float, *, rates: bool = True) -> tuple[Array, Array]:
    """Return the ends of each group's interval: Student's, or for `rates` the wider of it and Wilson's."""
    from scipy.special import ndtri, stdtrit

    predicted, rate = moments.mean_prediction, moments.mean_outcome
    gap = rate - predicted
    reach: Array = np.asarray(stdtrit(np.maximum(moments.freedom, 1.0), (1 + confidence) / 2), np.float64)
    half = reach * np.sqrt(moments.residual_variance)
    half = np.where(moments.freedom > 0, half, np.inf)
    if not rates:
        return gap - half, gap + half
    z, varies = float(ndtri((1 + confidence) / 2)), moments.outcome_variance > 0
    # Wilson's is at the size that the residuals amount to: `ratio` is the share of the variance that the
    # predictions leave unexplained, drawn toward 1 because few records of the rarer outcome show it badly
    known = np.where(varies, moments.outcome_variance, 1.0)
    ratio = np.where(varies, moments.residual_variance / known, 1.0)
    ratio = np.maximum(ratio, (moments.rarer * ratio + GUARD_RECORDS) / (moments.rarer + GUARD_RECORDS))
    size = rate * (1 - rate) / (known * ratio) * (z / reach) ** 2
    low, high = wilson_interval(rate, np.where(varies, size, moments.size), z)
    low = np.minimum(low - predicted, np.maximum(gap - half, -predicted))  # no rate leaves [0, 1]
    high = np.maximum(high - predicted, np.minimum(gap + half, 1 - predicted))
    return np.minimum(low, gap), np.maximum(high, gap)


def wilson_interval(rate: Array, size: Array, z: float) -> tuple[Array, Array]:
    extra = z**2 / np.maximum(size, 1e-9)
    center = (rate + extra / 2) / (1 + extra)
    half = np.sqrt(np.maximum(extra * (rate * (1 - rate) + extra / 4), 0.0)) / (1 + extra)
    return np.clip(center - half, 0.0, rate), np.clip(center + half, rate, 1.0)


def row_interval(
    prediction: Array,
    outcome: Array,
    weight: Array | None = None,
    cluster: Codes | None = None,
    confidence: float = 0.95,
    *,
    rates: bool = True,
) -> tuple[float, float]:
    """Return the interval of one group of rows; (nan, nan) where there is too little data to give one."""
    few = len(outcome) == 0
    if rates and not few and weight is not None and np.ptp(weight) > 0:
        few = bool(min(np.sum(outcome > 0), np.sum(outcome < 1)) < MIN_WEIGHTED_RECORDS)
    if few:
        return float("nan"), float("nan")
    moments = row_moments(prediction, outcome, weight, cluster)
    effective = float(moments.freedom[0]) + 1
    lone = len(outcome) > 1 and effective < MIN_EFFECTIVE_RECORDS - 1e-9
    if lone or (cluster is not None and effective < MIN_CLUSTERS):
        return float("nan"), float("nan")
    low, high = difference_interval(moments, confidence, rates=rates)
    return float(low[0]), float(high[0])
