"""P-values, draws and numbers of records, on examples that can be checked by hand."""

from __future__ import annotations

import numpy as np

from calibrant.inference.bootstrap import lower_quantile, upper_quantile
from calibrant.inference.classic_tests import explain_rejection
from calibrant.inference.compare import _enough
from calibrant.inference.inversion import _without_skewness
from calibrant.inference.null import _rounded
from calibrant.inference.planning import least_number, least_records
from calibrant.inference.pvalues import could_flip, draw_until_decided, holm, is_rejected


def test_rounding_of_the_confidence_does_not_decide():
    assert is_rejected(0.2, 0.8)
    assert not 0.2 <= 1 - 0.8


def test_a_pvalue_flips_only_within_simulation_error():
    flips = could_flip(0.03, 199), could_flip(0.03, 1990), could_flip(0.01, 99), could_flip(0.03, 0)
    assert flips == (True, False, False, False)


def test_close_results_are_drawn_again():
    shares = {199: 0.045, 1990: 0.0302}
    found = draw_until_decided(lambda draws: (shares[draws], draws), lambda one, _: could_flip(*one), 199)
    assert found == (0.0302, 1990)


def test_holm_steps_down():
    assert [round(p, 3) for p in holm([0.01, 0.04, 0.03])] == [0.03, 0.06, 0.06]


def test_quantiles_are_ranks_of_draws():
    assert upper_quantile(np.arange(1.0, 100.0), 0.95) == 95.0
    assert lower_quantile(np.arange(1.0, 100.0), 0.05) == 5.0


def test_draws_of_a_comparison_allow_for_its_pairs():
    assert [_enough(999, pairs, 0.95) for pairs in (3, 28, 1225)] == [999, 1119, 999]
    assert _enough(39, 28, 0.95) == 39


def test_skewness_is_taken_from_its_own_side_only():
    found = _without_skewness(2.5, 0.5), _without_skewness(-2.5, 0.5), _without_skewness(0.2, 0.5)
    assert found == (2.0, -2.5, 0.0)


def test_least_numbers():
    assert least_number(lambda n: n >= 37) == 37
    assert least_records(0.05, 0.05, 0.9) == 854
    assert (_rounded(3421.7), _rounded(57.4)) == (3400, 57)


def test_a_rejection_is_explained():
    parts = {"cox_pvalue": 1e-4, "kuiper_pvalue": 0.01, "bias_z": 0.5, "slope_z": -4.2}
    wrong = " Overconfident: predictions are too extreme (slope z = -4.20)."
    assert explain_rejection(parts, True) == wrong
    unseen = " A common bias of up to 0.073 could go unseen."
    assert explain_rejection({"visible_bias": 0.0731}, False) == unseen
