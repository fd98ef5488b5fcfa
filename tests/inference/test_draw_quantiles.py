"""Quantiles of draws, as bounds on the next one."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference.bootstrap import lower_quantile, upper_quantile


@pytest.mark.parametrize("draws", [1, 5, 19, 39, 99, 250, 999])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.975, 0.999])
def test_the_next_draw_lies_beyond_with_no_more_than_the_chance_told(draws, share):
    """Of m + 1 draws in random order the last has each rank alike; too few draws give the extreme."""
    values = np.random.default_rng(draws).permutation(np.arange(1.0, draws + 1))
    above = 1 - upper_quantile(values, share) / (draws + 1)
    below = lower_quantile(values, 1 - share) / (draws + 1)
    assert above <= max(1 - share, 1 / (draws + 1)) + 1e-9
    assert below <= max(1 - share, 1 / (draws + 1)) + 1e-9
    if (1 - share) * (draws + 1) >= 1:  # and no wider than that takes
        assert above > 1 - share - 1 / (draws + 1)
        assert below > 1 - share - 1 / (draws + 1)


def test_values_without_end_do_not_spoil_the_others():
    values = np.array([1.0, 2.0, np.inf, np.inf])
    assert lower_quantile(values, 0.5) == 2.0
    assert upper_quantile(values, 0.5) == np.inf
