"""Ugly samples: ties, one record, all equal, 0 and 1, tiny probabilities, weights, fractional outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy.stats import binom

from calibrant import Forecasts

_GRIDS = (
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.3]),
    st.floats(0, 1),
    st.floats(0, 1e-9),
    st.integers(0, 20).map(lambda k: k / 20),
)


@dataclass(frozen=True)
class Sample:
    """Raw arrays as a user would pass them; `w` is None when unweighted."""

    y: np.ndarray
    p: np.ndarray
    w: np.ndarray | None

    @property
    def forecasts(self) -> Forecasts:
        return Forecasts(self.y, self.p, sample_weight=self.w)

    @property
    def weights(self) -> np.ndarray:
        w = np.ones(len(self.p)) if self.w is None else self.w
        return w / w.sum()


@st.composite
def samples(
    draw, max_size: int = 30, min_size: int = 1, fractional: bool = True, weighted: bool = True
) -> Sample:
    """Draw one ugly sample."""
    n = draw(st.integers(min_size, max_size))
    grid = draw(st.sampled_from(_GRIDS))
    p = np.array(draw(st.lists(grid, min_size=n, max_size=n)))
    kinds = ["labels", "ones", "zeros"] + (["fractions"] if fractional else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "labels":
        y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    elif kind == "fractions":
        y = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 0.123, 0.9999]), min_size=n, max_size=n)))
    else:
        y = np.full(n, int(kind == "ones"))
    w = None
    if weighted and draw(st.booleans()):
        w = 10.0 ** np.array(draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)))
    return Sample(y, p, w)


@st.composite
def calibrated_samples(draw) -> Sample:
    """Draw data that is perfectly calibrated: the outcome of each record is its own probability."""
    sample = draw(samples(fractional=False))
    return Sample(sample.p.copy(), sample.p, sample.w)


def size_bound(level, runs):
    """Most rejections out of `runs` that chance would allow a valid test, but once in 100,000."""
    return binom.ppf(1 - 1e-5, runs, level)
