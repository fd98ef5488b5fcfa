"""The truthfulness paper's identity by enumeration, and its Table 1 to the printed digits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb

TRUTHFUL = [
    (cb.averaged_two_bin_error, {}),
    (cb.binned_squared_error, {}),
    (cb.binned_squared_error, {"bins": 2}),
    (cb.binned_squared_error, {"bins": 3, "strategy": "uniform"}),
]
probabilities = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]), min_size=6, max_size=6)


def expectation(function, options, reports, truth):
    """Average the measure over all 2^T outcomes, each with its probability."""
    total = 0.0
    for outcome in itertools.product([0, 1], repeat=len(truth)):
        y = np.array(outcome)
        total += np.prod(np.where(y == 1, truth, 1 - truth)) * function(y, reports, **options)
    return total


@pytest.mark.parametrize(("function", "options"), TRUTHFUL)
@given(reports=probabilities, truth=probabilities, size=st.integers(1, 6))
@settings(max_examples=40)
def test_expected_error_is_the_population_error_plus_a_constant(function, options, reports, truth, size):
    """E_y[UBSE(r, y)] = UBSE(r, p) + sum p(1-p)/T^2: the constant does not depend on the report r.

    ATB averages two bins each of which is unbiased in the same way, so it obeys the same identity.
    """
    r, p = np.array(reports[:size]), np.array(truth[:size])
    constant = float(np.sum(p * (1 - p))) / size**2
    expected = function(p, r, **options) + constant
    assert expectation(function, options, r, p) == pytest.approx(expected, abs=1e-12)


TABLE_1 = {  # states: (probability, smooth avg, smooth truth, ATB avg, ATB truth)
    (0, 0): (3 / 16, 0.5, 0.5, 0.25, 0.203125),
    (1, 1): (3 / 16, 0.5, 0.5, 0.25, 0.203125),
    (0, 1): (9 / 16, 0, 0.0625, 0, 0.015625),
    (1, 0): (1 / 16, 0, 0.1875, 0, 0.140625),
}


def test_table_1_of_the_truthfulness_paper():
    average, truth = [0.5, 0.5], [0.25, 0.75]
    totals = np.zeros(4)
    for y, (chance, *printed) in TABLE_1.items():
        found = [
            cb.smooth_calibration_error(y, average),
            cb.smooth_calibration_error(y, truth),
            cb.averaged_two_bin_error(y, average),
            cb.averaged_two_bin_error(y, truth),
        ]
        assert found == pytest.approx(printed, abs=1e-15)
        totals += chance * np.array(found)
    assert totals == pytest.approx([0.1875, 0.234375, 0.09375, 0.09375], abs=1e-15)
