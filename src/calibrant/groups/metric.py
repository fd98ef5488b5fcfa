"""D_k, sigma_k and z of each subpopulation: eqs. (1)-(6), measuring-multicalibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.groups.variants import Terms
from calibrant.kernels.segments import Offsets
from calibrant.results import Array

SUMS = 9  # that the kernels fill for each subpopulation
WORTH_SHARING = 1 << 17  # members, below which one core is as quick
UNDERFLOW = 1e-150  # below it a sigma of 0 may be the rounded root of predictions like 1e-320
NEARLY_ZERO = 1e-13  # of the predictions and responses that were subtracted: below it a range is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What the curves of some subpopulations say, one number each.

    `kuiper` is D_k, `gap` the mean residual, `sigma` the null deviation (5) or (6) and `z` the statistic in
    such deviations. `first` and `last` are the members that bound the interval of predictions where residuals
    add up most (-1 where there is none, or all count) and `direction` is +1 where outcomes exceed predictions
    there, -1 where they fall short, 0 for neither. The statistic on the raw rows lies in `lower` to `upper`,
    and `tested` is the z that simulated ones are compared with: both differ from it for a sketch alone.
    """

    size: Offsets
    weight: Array
    mean_prediction: Array
    mean_outcome: Array
    kuiper: Array
    gap: Array
    sigma: Array
    z: Array
    first: Offsets
    last: Offsets
    direction: Offsets
    mark: Array  # equal for equal sets of members
    lower: Array
    upper: Array
    tested: Array

    def take(self, kept: Sequence[int]) -> Curves:
        """Return some of the subpopulations."""
        return Curves(*(getattr(self, name)[list(kept)] for name in self.__slots__))


def curves_of(sums: Array, ends: Offsets, terms: Terms) -> Curves:
    """Turn what the kernels filled into what the curves say."""
    size, total, moment, variance, end, top, bottom, mark, scale = sums.T
    total = np.where(size > 0, total, 1.0)
    kuiper, sigma = (top - bottom) / total, np.sqrt(variance) / total
    after_high, after_low = ends[:, 1], ends[:, 3]
    rising = np.sign(ends[:, 0] - ends[:, 2])  # 1 where the highest point comes last
    z = quotient(kuiper, sigma, scale / total)
    curves = Curves(
        size=size.astype(np.int64),
        weight=total,
        mean_prediction=moment / total,
        mean_outcome=(moment + end) / total,
        kuiper=kuiper,
        gap=end / total,
        sigma=sigma,
        z=z,
        first=np.where(rising > 0, after_low, np.where(rising < 0, after_high, -1)),
        last=np.where(rising != 0, np.maximum(ends[:, 0], ends[:, 2]), -1),
        direction=rising,
        mark=mark,
        lower=kuiper,
        upper=kuiper,
        tested=z,
    )
    return by_mean(curves, scale / total) if terms.statistic == "mean" else curves


def by_mean(curves: Curves, scale: Array) -> Curves:
    """Judge the same curves by where they end: all predictions count, and the sign is that of the gap."""
    nowhere = np.full(len(curves.size), -1)
    size = np.abs(curves.gap)
    direction = np.where(size > NEARLY_ZERO * scale, np.sign(curves.gap), 0.0).astype(np.int64)
    z = quotient(size, curves.sigma, scale)
    curves = replace(curves, z=z, tested=z, lower=size, upper=size)
    return replace(curves, first=nowhere, last=nowhere, direction=direction)


def quotient(statistic: Array, sigma: Array, scale: Array) -> Array:
    """D_k / sigma_k; 0 where both are nearly 0, infinite where only sigma is (an impossible outcome)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = statistic / sigma
    return np.where(statistic <= np.maximum(NEARLY_ZERO * scale, UNDERFLOW), 0.0, z)
