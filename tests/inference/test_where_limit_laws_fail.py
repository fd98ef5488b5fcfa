"""Limit laws are used only where they hold, and say nothing that is not a number however far out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.metrics import null_laws

TAILS = {
    "normal": null_laws.log_normal_tail,
    "range": null_laws.log_range_tail,
    "largest": null_laws.log_largest_tail,
    "chi-square": lambda x: null_laws.log_chi_square_tail(x, 10),
}


@pytest.mark.parametrize("law", TAILS)
def test_tails_fall_from_one_to_nothing(law):
    points = [0.0, 5e-324, 1e-200, 0.0999, 0.1001, 1.0, 40.0, 1e4, 1e149, 1e151, 1e200, 1e308, math.inf]
    logs = [TAILS[law](x) for x in points]
    assert logs[0] == 0.0
    assert logs[-1] == -math.inf
    assert all(later <= sooner for sooner, later in itertools.pairwise(logs))


@pytest.mark.parametrize("measure", ["brier", "spiegelhalter"])
def test_records_next_to_one_half_do_not_make_a_brier_score_normal(measure):
    """They add nothing to it: three others do, and all three fail with probability 0.001, not 2e-7."""
    rng = np.random.default_rng(0)
    p = np.concatenate((0.5 + 1e-6 * rng.random(20_000), [0.9, 0.901, 0.902]))
    y = np.concatenate((rng.random(20_000) < 0.5, [0, 0, 0]))
    tested = cb.calibration_test(y, p, measure=measure, draws=199, seed=1)
    assert tested.method == "exact"
    assert tested.pvalue == pytest.approx(1 / 200)


def test_hosmer_lemeshow_is_simulated_where_a_bin_has_hardly_an_event():
    rng = np.random.default_rng(1)
    p = np.concatenate((np.full(20_000, 1e-5), np.full(20_000, 0.3))) + 1e-7 * rng.random(40_000)
    y = rng.random(40_000) < p
    assert cb.calibration_test(y, p, measure="hosmer-lemeshow", draws=19, seed=1).method == "exact"
    even = rng.uniform(0.2, 0.8, 40_000)
    tested = cb.calibration_test(rng.random(40_000) < even, even, measure="hosmer-lemeshow")
    assert tested.method == "asymptotic"


def test_a_bin_that_cannot_vary_has_no_degree_of_freedom():
    p = np.concatenate((np.zeros(50), np.linspace(0.1, 0.9, 50), np.ones(25)))
    y = np.concatenate((np.zeros(50), np.arange(50) % 2, np.ones(25)))
    how = {"measure": "hosmer-lemeshow", "method": "asymptotic"}
    found = cb.calibration_test(y, p, **how)
    others = cb.calibration_test(y[50:100], p[50:100], groups=4, **how)
    assert (found.details["bins"], found.details["degrees_of_freedom"]) == (6, 4)
    assert found.pvalue == pytest.approx(others.pvalue)


def test_a_wrong_certain_prediction_rejects_by_hosmer_lemeshow_too():
    found = cb.calibration_test([0, 0], [0.0, 1.0], measure="hosmer-lemeshow", method="asymptotic")
    assert found.statistic == math.inf
    assert (found.pvalue, found.log_pvalue) == (0.0, -math.inf)
    assert found.rejects()
    right = cb.calibration_test([0, 1], [0.0, 1.0], measure="hosmer-lemeshow", method="asymptotic")
    assert right.pvalue == 1.0


@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "ks", "hosmer-lemeshow"])
@pytest.mark.parametrize("method", ["exact", "asymptotic"])
def test_events_that_were_next_to_impossible_have_a_pvalue(measure, method):
    for p in (5e-324, 1e-320, 1e-300):
        none = cb.calibration_test([0, 0, 0], [p] * 3, measure=measure, method=method, draws=19, seed=1)
        one = cb.calibration_test([1, 0, 0], [p] * 3, measure=measure, method=method, draws=19, seed=1)
        assert none.pvalue == 1.0
        assert one.pvalue <= 0.05
