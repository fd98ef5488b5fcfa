"""Known answers of the papers' examples, to the digits that other programs or plain arithmetic gave."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.truthfulness.lies import reports_of
from calibrant.truthfulness.search import Expected, Scored
from reproduce import multi_appendix_f, multi_protocol, truthful_examples, truthful_gaps
from tests.reproduce.test_papers import CLOSE

OUTCOMES = np.array(list(itertools.product((0.0, 1.0), repeat=2)))
TABLE_1 = {  # of the truthfulness paper: y = 00, 01, 10, 11, every prediction .5, and the truth .25 and .75
    ("smooth", None): ((0.5, 0, 0, 0.5), (0.5, 0.0625, 0.1875, 0.5)),
    ("lower-distance", None): ((0.5, 0, 0, 0.5), (0.5, 0.125, 0.25, 0.5)),
    ("lower-distance", 2): ((0.25, 0, 0, 0.25), (0.3125, 0.0625, 0.0625, 0.3125)),
    ("atb", None): ((0.25, 0, 0, 0.25), (0.203125, 0.015625, 0.140625, 0.203125)),
}


@pytest.mark.parametrize(("name", "alpha"), TABLE_1)
def test_table_1_of_the_truthfulness_paper_outcome_by_outcome(name, alpha):
    scored = Scored(name, {} if alpha is None else {"alpha": alpha})
    for report, printed in zip(([0.5, 0.5], [0.25, 0.75]), TABLE_1[name, alpha], strict=True):
        assert scored.values(np.array(report), OUTCOMES) == pytest.approx(printed, abs=2e-7)


def test_the_algorithm_of_section_4_4_is_off_by_one_as_printed():
    """With the values at the left end of each gap, row (0, 0) of Table 1 comes out as .2266."""
    r, residual = np.array([0.25, 0.75]), np.array([0.25, 0.75])
    ends = np.array([0.0, 0.25, 0.75, 1.0])

    def squares(below):
        return (residual[below].sum() / 2) ** 2 + (residual[~below].sum() / 2) ** 2

    as_printed = sum(width * squares(r < q) for q, width in zip(ends[:3], np.diff(ends), strict=True))
    as_defined = sum(width * squares(r < q) for q, width in zip(ends[1:], np.diff(ends), strict=True))
    assert as_printed == pytest.approx(0.2265625)
    assert as_defined == pytest.approx(0.203125)
    assert cb.averaged_two_bin_error([0, 0], r) == pytest.approx(0.203125)


MEANS = {("level-set", 1): (0.1875, 0.375), ("level-set", 2): (0.09375, 0.1875)}


@pytest.mark.parametrize(("name", "norm"), MEANS)
def test_means_of_the_level_set_error(name, norm):
    expected = Expected(Scored(name, {"norm": norm}), np.array([0.25, 0.75]))
    assert (expected(np.array([0.5, 0.5])), expected(np.array([0.25, 0.75]))) == pytest.approx(
        MEANS[name, norm]
    )


BEST = {  # what a liar reports in two and in three rounds
    "ECE": ((0.5, 0.5), (2 / 3,) * 3),
    "ECE, squared": ((0.5, 0.5), (0.566667,) * 3),
    "Kuiper": ((0.5, 0.5), (2 / 3,) * 3),
    "CDL": ((0, 1), None),
    "2 quantile bins": ((0, 1), None),
}


@pytest.mark.parametrize("name", BEST)
def test_the_best_lie_is_the_one_found_independently(name):
    two, three = BEST[name]
    assert truthful_gaps.gap(name, truthful_gaps.TWO).report == pytest.approx(two, abs=2e-4)
    if three:
        assert truthful_gaps.gap(name, truthful_gaps.THREE).report == pytest.approx(three, abs=2e-4)


@pytest.mark.parametrize("name", ["brier", "log-loss"])
@pytest.mark.parametrize("truth", [(0.5, 0.5), (0.25, 0.75)])
def test_scores_reward_no_lie_in_sequence(name, truth):
    assert cb.truthfulness_gap(name, truth, sequential=True).gap <= 1e-9


def test_the_identity_of_truthful_errors_holds_to_rounding():
    """E[m(r, y)] = m(r, p) + sum p (1 - p) / n^2: 200 truths and reports of six rounds, with ties."""
    rng, apart = np.random.default_rng(0), 0.0
    for k in range(200):
        truth, report = rng.random(6), rng.choice([0.1, 0.25, 0.5, 0.75], 6)
        name = ("atb", "kernel-squared", "ubse")[k % 3]
        expected = Expected(Scored(name, {}), truth)
        constant = float(truth @ (1 - truth)) / 36
        apart = max(apart, abs(expected(report) - expected.of_population(report) - constant))
    assert apart < 1e-15


def test_limits_of_example_1_1():
    """Predictions uniform on [1/3, 2/3]: E[2 p (1 - p)] = 13/27 when every prediction is distinct."""
    p = 1 / 3 + (np.arange(3000) + 0.5) / 9000
    limits = truthful_examples.limits(10_000)
    assert limits["ECE truth"] == pytest.approx(np.mean(2 * p * (1 - p)), abs=1e-8)
    assert limits["ECE truth"] == pytest.approx(0.481481, abs=5e-7)
    assert limits["ECE constant"] == pytest.approx(0.39894 / 100, rel=2e-5)
    assert limits["ATB truth"] == pytest.approx(np.mean(p * (1 - p)) / 10_000, rel=1e-7)
    assert limits["ATB constant"] == 1 / 40_000


@pytest.mark.parametrize(("n", "share"), [(10, 0.99), (100, 1.0), (1000, 1.0)])
def test_calibrated_forecasts_pass_the_validity_test(n, share):
    """Lemma 6.2 promises 3/4."""
    assert truthful_examples.accepted(n, runs=400) >= share - 0.012


def test_duels_of_two_hundred_questions():
    p = np.random.default_rng(0).beta(2, 2, 200)
    wins = {row.measure: row.wins for row in _pooled(p)}
    assert wins["atb"] == pytest.approx(0.62, abs=0.04)
    assert min(wins[name] for name in ("level-set", "binned", "l1-atb", "kuiper")) > 0.995
    assert wins["brier"] < 0.005


def _pooled(p):
    names = ["atb", "level-set", "binned", "l1-atb", "kuiper", "brier"]
    return cb.incentives(p, names, lies=["mean"], draws=1500, seed=4).table


def test_duels_of_twenty_questions_by_a_forecaster_who_sharpens():
    p = np.array(CLOSE)
    sharp = reports_of(["sharpen 1.2"], p, np.ones(20))["sharpen 1.2"]
    rng = np.random.default_rng(1)
    y = rng.random((20_000, 20)) < p
    share = float(np.mean(((p - y) ** 2).sum(axis=1) > ((sharp - y) ** 2).sum(axis=1)))
    assert share == pytest.approx(0.47, abs=0.02)
    (row,) = cb.incentives(p, "brier", lies=["sharpen 1.2"], draws=4000, seed=3).table
    assert row.wins == pytest.approx(share, abs=0.035)


def test_random_ties_of_example_3_4():
    value = cb.binned_squared_error([0, 1, 1, 0, 1, 0], [0.5] * 6, bins=2, ties="random")
    assert value == pytest.approx(0.025, abs=1e-12)


@pytest.mark.parametrize(("accept", "reject"), [(0.02, 0.05), (0.0, 0.1)])
def test_records_that_guarantee_a_verdict(accept, reject):
    width = 2 * math.sqrt(2 * math.log(1 / 0.05)) + math.sqrt(2)
    planned = cb.required_samples(accept=accept, reject=reject, confidence=0.95)
    assert planned.n == pytest.approx((width / (reject - accept)) ** 2, rel=1e-3)


def test_the_ablation_of_appendix_f_grows_like_a_root():
    metric, ablated = multi_appendix_f.closed_form(2001)
    assert ablated / metric == pytest.approx(math.sqrt(1.5 * 2001), rel=2e-3)


ADULT = {
    "p_lgbm": ("0.1798", "0.0469"),
    "p_lgbm_platt": ("0.1526", "0.0121"),
    "p_lgbm_iso": ("0.1513", "0.0062"),
}


@pytest.mark.parametrize("column", ADULT)
def test_error_and_kuiper_of_the_adult_predictions(column, shared_data, monkeypatch):
    monkeypatch.setattr(multi_protocol, "DATA", shared_data)
    data = multi_protocol.read("adult_predictions.parquet")
    y, p = np.asarray(data["y"], dtype=int), np.asarray(data[column], dtype=float)
    assert (f"{np.mean((p >= 0.5) != y):.4f}", f"{cb.kuiper_error(y, p):.4f}") == ADULT[column]


def two_bins(cuts, predictions, outcomes, weigh):
    """Sum the squared biases below and from each cut, weighted by the stretch that `weigh` gives it."""
    total = 0.0
    for i in range(len(cuts) - 1):
        below = predictions < weigh(cuts, i)
        biases = [np.sum((predictions - outcomes)[part]) / len(outcomes) for part in (below, ~below)]
        total += (cuts[i + 1] - cuts[i]) * float(np.dot(biases, biases))
    return total


def test_the_printed_algorithm_for_atb_is_off_by_one():
    """Section 4.4 takes the biases at the left end of each stretch, where those at its right end hold."""
    p, y = np.array([0.25, 0.75]), np.zeros(2)
    cuts = [0.0, *p, 1.0]
    assert two_bins(cuts, p, y, lambda cuts, i: cuts[i]) == pytest.approx(0.2265625)
    assert two_bins(cuts, p, y, lambda cuts, i: cuts[i + 1]) == pytest.approx(0.203125)
    assert cb.averaged_two_bin_error(y, p) == pytest.approx(0.203125)
