"""One task at a time: tables, cost-loss ratios, proper scores, decisions taken, decision curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import decision as oracle
from samples import samples

import calibrant as cb

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.metrics.binned.LevelSetWarning")

numbers = st.floats(-10, 10, allow_subnormal=False)
tables = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5).map(np.array)


@given(sample=samples(max_size=12), payoff=tables)
def test_a_table_equals_its_oracle(sample, payoff):
    report = cb.decision_report(sample.forecasts, payoff=payoff)
    assert report.loss == pytest.approx(oracle.table_loss(sample, payoff), abs=1e-9)
    assert report.loss == pytest.approx(sum(change.gain for change in report.changes), abs=1e-9)
    assert report.recalibrated == pytest.approx(report.trusting + report.loss, abs=1e-9)
    assert report.loss == cb.fixed_decision_loss(sample.forecasts, payoff=payoff)


@given(sample=samples(), payoff=tables)
def test_no_table_loses_more_than_the_decision_loss(sample, payoff):
    """CDL is the supremum over payoffs in [0, 1]; the range of a table is the unit."""
    spread = max(np.ptp(payoff[:, 0]), np.ptp(payoff[:, 1]))
    bound = spread * cb.decision_loss(sample.forecasts)
    assert cb.fixed_decision_loss(sample.forecasts, payoff=payoff) <= bound + 1e-9


@given(sample=samples())
def test_the_worst_task_loses_the_decision_loss(sample):
    task = cb.worst_task(sample.forecasts)
    found = cb.fixed_decision_loss(sample.forecasts, payoff=task.payoff)
    assert found == pytest.approx(task.loss, abs=1e-9)


@given(sample=samples(), mu=st.integers(0, 100))
def test_a_cost_loss_ratio_reads_off_the_curve(sample, mu):
    curve = cb.threshold_loss_curve(sample.forecasts)
    assume(np.all((curve.thresholds == mu / 100) | (np.abs(curve.thresholds - mu / 100) > 1e-9)))
    assert cb.fixed_decision_loss(sample.forecasts, payoff=mu / 100) == pytest.approx(
        float(curve.at(mu / 100)), abs=1e-9
    )


@given(sample=samples())
def test_quadratic_payoff_gives_the_squared_l2_error(sample):
    """Eq. (4.6) of the survey."""
    f = sample.forecasts
    squared = cb.level_set_error(f, norm=2)
    assert cb.fixed_decision_loss(f, payoff="quadratic") == pytest.approx(squared, abs=1e-12)
    found = cb.fixed_decision_loss(f, payoff=lambda v: v**2, gradient=lambda v: 2 * v)
    assert found == pytest.approx(squared, abs=1e-12)
    assert cb.fixed_decision_loss(f, payoff=np.square) == pytest.approx(squared, abs=2e-6)


@given(sample=samples())
def test_scores_are_integrals_of_the_threshold_loss(sample):
    """Spherical: phi = sqrt(v^2 + (1 - v)^2), whose curvature is phi'' = (v^2 + (1 - v)^2)^(-3/2)."""
    curve = cb.threshold_loss_curve(sample.forecasts)
    mu = curve.thresholds
    nodes, weights = np.polynomial.legendre.leggauss(40)
    middle, half = (mu[1:] + mu[:-1]) / 2, np.diff(mu) / 2
    at = middle[:, None] + half[:, None] * nodes
    slope = ((curve.before[1:] - curve.after[:-1]) / np.diff(mu))[:, None]
    h = curve.after[:-1][:, None] + slope * (at - mu[:-1][:, None])
    integral = np.sum(half[:, None] * weights * h * (at**2 + (1 - at) ** 2) ** -1.5)
    assert cb.fixed_decision_loss(sample.forecasts, payoff="spherical") == pytest.approx(integral, abs=1e-8)


@given(sample=samples())
def test_log_payoff_gives_the_log_loss_that_recalibration_removes(sample):
    f = sample.forecasts
    rates = np.clip(f.outcomes / f.weights, 0, 1)
    clip = 1e-6
    recalibrated = cb.Forecasts(rates, rates, sample_weight=f.weights)
    expected = cb.log_loss(f, clip=clip) - cb.log_loss(recalibrated, clip=clip)
    assert cb.fixed_decision_loss(f, payoff="log", clip=clip) == pytest.approx(expected, abs=1e-9)


def test_ties_are_broken_as_asked():
    task = {"wait": (0, -1), "act": (-0.5, -0.5)}
    f = cb.Forecasts([0, 0, 0, 1], [0.5] * 4)
    assert cb.fixed_decision_loss(f, payoff=task) == pytest.approx(0.25)
    assert cb.fixed_decision_loss(f, payoff=task, ties="first") == pytest.approx(0)
    report = cb.decision_report(f, payoff=task)
    assert [(c.trusted, c.better, c.records) for c in report.changes] == [("act", "wait", 4)]


@pytest.mark.parametrize(("ones", "records"), [(1, 3), (1, 5), (2, 12), (7, 18), (9, 19)])
def test_a_rate_at_the_threshold_changes_no_action(ones, records):
    outcomes = [0] * (records - ones) + [1] * ones
    report = cb.decision_report(outcomes, [0.9999] * records, payoff=ones / records)
    assert report.changes == ()
    assert report.loss == 0


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_convexity_is_judged_in_the_unit_of_the_payoffs(unit):
    y, p = [0, 0, 1, 0, 1, 1] * 9, [0.1, 0.2, 0.3, 0.6, 0.7, 0.9] * 9
    lost = cb.fixed_decision_loss(y, p, payoff=lambda v: unit * np.maximum(v - 0.5, 0.0))
    assert lost == pytest.approx(unit / 6)
    with pytest.raises(cb.InvalidInputError, match="must be convex"):
        cb.fixed_decision_loss(y, p, payoff=lambda v: -unit * v**2)


def test_scores_say_which_way_the_predictions_should_move():
    f = cb.Forecasts([0, 0, 0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.9, 0.9])
    report = cb.decision_report(f, payoff="quadratic")
    assert [(c.better, c.records, c.lowest) for c in report.changes] == [
        ("lower", 4, 0.5),
        ("higher", 2, 0.9),
    ]
    assert report.total == pytest.approx(6 * report.loss)
    assert "prediction -> lower: 4 records" in str(report)


@pytest.mark.parametrize(
    ("payoff", "message"),
    [
        ("brier", "quadratic, log, spherical"),
        (1.5, "cost-loss ratio"),
        (-0.1, "cost-loss ratio"),
        ([[1, 2, 3], [4, 5, 6]], "transpose"),
        ([1, 2], "two columns"),
        ([], "two columns"),
        ([["a", "b"]], "two columns"),
        ([[1, np.inf]], "finite"),
        (None, "two columns"),
        (lambda v: -(v**2), "convex"),
        (lambda v: v[:1], "one finite number"),
        (lambda v: np.full(len(v), np.nan), "one finite number"),
    ],
)
def test_payoffs_that_make_no_sense_are_refused(payoff, message):
    with pytest.raises(cb.CalibrantError, match=message):
        cb.fixed_decision_loss([0, 1, 1, 1], [0.2, 0.2, 0.6, 0.6], payoff=payoff)


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(cb.CalibrantError, match="ties"):
        cb.fixed_decision_loss([0, 1], [0.2, 0.8], payoff=0.3, ties="random")
    with pytest.raises(cb.CalibrantError, match="clip"):
        cb.fixed_decision_loss([0, 1], [0.2, 0.8], payoff="log", clip=0)
    with pytest.raises(cb.CalibrantError, match="clip"):
        cb.fixed_decision_loss([0, 1], [0.2, 0.8], payoff=0.3, clip=7)
    with pytest.raises(cb.CalibrantError, match="gradient needs a convex function"):
        cb.fixed_decision_loss([0, 1], [0.2, 0.8], payoff=0.3, gradient=lambda v: v)


@given(sample=samples(max_size=10), payoff=tables, seed=st.integers(0, 9))
def test_swap_regret_equals_the_best_of_all_maps(sample, payoff, seed):
    assume(len(payoff) <= 4)
    taken = np.random.default_rng(seed).integers(len(payoff), size=len(sample.p))
    found = cb.swap_regret(sample.y, taken, payoff=payoff, sample_weight=sample.w)
    assert found.swap == pytest.approx(oracle.swap_regret(sample.y, sample.weights, taken, payoff), abs=1e-9)
    assert found.external <= found.swap + 1e-9
    assert found.swap == pytest.approx(sum(swap.gain for swap in found.swaps), abs=1e-9)


@given(sample=samples(), payoff=tables)
def test_decisions_that_trust_forecasts_have_no_more_swap_regret_than_their_loss(sample, payoff):
    taken = np.argmax(np.outer(1 - sample.p, payoff[:, 0]) + np.outer(sample.p, payoff[:, 1]), axis=1)
    found = cb.swap_regret(sample.y, taken, payoff=payoff, sample_weight=sample.w)
    assert found.swap <= cb.fixed_decision_loss(sample.forecasts, payoff=payoff) + 1e-9


def test_actions_by_name_and_by_number():
    by_name = cb.swap_regret([0, 1, 1], ["wait", "wait", "act"], payoff=0.4)
    assert by_name == cb.swap_regret([0, 1, 1], [0, 0, 1], payoff=0.4)
    assert by_name.swaps[0].better == "act"
    for actions, message in (
        ([0, 2, 1], "0 to 1"),
        (["wait", "run", "act"], "wait, act"),
        ([0, 1], "length"),
    ):
        with pytest.raises(cb.CalibrantError, match=message):
            cb.swap_regret([0, 1, 1], actions, payoff=0.4)
    with pytest.raises(cb.CalibrantError, match="finitely many"):
        cb.swap_regret([0, 1, 1], [0, 0, 1], payoff="log")
    with pytest.raises(cb.CalibrantError, match="missing"):
        cb.swap_regret([0, np.nan, 1], [0, 0, 1], payoff=0.4)


@given(sample=samples(), threshold=st.integers(0, 99))
def test_net_benefit_equals_its_oracle(sample, threshold):
    found = cb.net_benefit(sample.forecasts, thresholds=[threshold / 100])
    assert found.model[0] == pytest.approx(oracle.net_benefit(sample, threshold / 100), abs=1e-9)
    everybody = oracle.Sample(sample.y, np.ones(len(sample.p)), sample.w)
    assert found.treat_all[0] == pytest.approx(oracle.net_benefit(everybody, threshold / 100), abs=1e-9)


@given(sample=samples())
def test_recalibration_adds_the_threshold_loss_at_the_odds(sample):
    curve = cb.threshold_loss_curve(sample.forecasts)
    inside = curve.thresholds < 0.999
    t = curve.thresholds[inside]
    found = cb.net_benefit(sample.forecasts, thresholds=t)
    # a prediction that equals the threshold is treated: the limit from the left
    assert (found.recalibrated - found.model) * (1 - t) == pytest.approx(curve.before[inside], abs=1e-9)


def test_a_model_that_treats_all_does_not_beat_treating_all():
    rng = np.random.default_rng(0)
    for n in range(5, 105):
        p = rng.uniform(0.3, 1.0, n)
        found = cb.net_benefit(rng.random(n) < p, p, thresholds=np.arange(1, 30) / 100)
        assert not found.useful.any()
    assert "at 0 of 29 thresholds" in str(found)


def test_net_benefit_refuses_a_threshold_of_one():
    with pytest.raises(cb.CalibrantError, match="thresholds"):
        cb.net_benefit([0, 1], [0.2, 0.8], thresholds=[0.5, 1.0])
    assert len(cb.net_benefit([0, 1], [0.2, 0.8]).useful) == 99
