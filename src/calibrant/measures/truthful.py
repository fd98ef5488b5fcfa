"""Truthful measures: in expectation, no forecast scores better than the true probabilities."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrant.errors import reject_name
from calibrant.forecasts import Forecasts
from calibrant.measures.bins import Bins, bin_starts
from calibrant.measures.registry.calling import public
from calibrant.results import Certified


@public
def averaged_two_bin_error(forecasts: Forecasts, *, norm: Literal[1, 2] = 2) -> Certified:
    """Averaged two-bin calibration error: two bins cut at t, averaged over all t in [0, 1].

    ATB of the truthfulness paper, the integral of C(t)^2 + (C_m - C(t))^2. It is perfectly truthful and
    quadratically related to the distance from calibration. With `norm=1` (l1-ATB) absolute values replace
    the squares: a constant-factor approximation of the distance itself, but no longer truthful.

    >>> averaged_two_bin_error([0, 1], [0.25, 0.75])
    0.015625
    """
    if norm not in (1, 2):
        raise reject_name("norm", str(norm), ["1", "2"])
    stretch = np.diff(forecasts.values, prepend=0.0, append=1.0)
    left, right = forecasts.curve, forecasts.curve[-1] - forecasts.curve
    bins = left**2 + right**2 if norm == 2 else np.abs(left) + np.abs(right)
    return Certified.point(float(stretch @ bins))


@public
def binned_squared_error(
    forecasts: Forecasts, *, bins: Bins | None = None, strategy: Literal["quantile", "uniform"] = "quantile"
) -> Certified:
    """Unnormalised binned squared error: the sum over bins of the squared residual sum.

    UBSE of the truthfulness paper, perfectly truthful for every partition that depends on the predictions
    only. By default n^(1/3) bins of about equal weight; equal predictions always share a bin (a level
    goes where the middle of its weight falls), so no tie is broken at random.

    >>> binned_squared_error([0, 1], [0.25, 0.75], bins=1)
    0.0
    """
    if bins is None:
        bins = max(1, round(forecasts.n ** (1 / 3)))
    starts = bin_starts(forecasts, bins, strategy)
    residual = np.add.reduceat(forecasts.residuals, starts)
    return Certified.point(float(residual @ residual), bins=len(starts))
