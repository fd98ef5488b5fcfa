"""Inductive Venn-Abers predictors: the isotonic values that a new record would get under either outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.fits.levels import Levels
from calibrant.kernels.venn_abers import values_of_one_more
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class VennAbersPairs:
    """Levels, and the pair of values of each gap before, between and after them."""

    values: Array
    if_zero: Array
    if_one: Array


def venn_abers(levels: Levels) -> VennAbersPairs:
    """Return, for every gap, the isotonic value of a new record with outcome 0 and with outcome 1.

    Vovk and Petej (2014). With exchangeable records of weight 1, one of the two values is perfectly
    calibrated: the guarantee is for the pair.
    """
    weights = np.concatenate(([0.0], np.cumsum(levels.weights)))
    ones = np.concatenate(([0.0], np.cumsum(levels.ones)))
    low = np.clip(values_of_one_more(weights, ones, 0.0), 0.0, 1.0)
    high = np.clip(values_of_one_more(weights, ones, 1.0), 0.0, 1.0)
    return VennAbersPairs(levels.values, np.maximum.accumulate(low), np.maximum.accumulate(high))
