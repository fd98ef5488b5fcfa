"""Values that rounding, underflow or a solver once spoilt, each against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.metrics.cox import logits
from calibrant.sketch.sketch import Sketch

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")


def wide_weights(n, orders=15):
    return st.lists(st.integers(-orders, orders).map(lambda k: 10.0**k), min_size=n, max_size=n)


@st.composite
def weighted(draw, least=2, most=9, orders=15):
    n = draw(st.integers(least, most))
    p = draw(st.lists(st.integers(0, 10).map(lambda k: k / 10), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return y, p, draw(wide_weights(n, orders))


@given(case=weighted(least=14, most=40, orders=60))
@settings(max_examples=12)
def test_upper_distance_of_many_levels_with_tiny_weights_is_a_number(case):
    y, p, w = case
    p = np.asarray(p) / 2 + np.arange(len(p)) / 100  # distinct: more than 13 levels
    found = cb.upper_distance.core(cb.Forecasts(y, p, sample_weight=w), time_limit=1)
    assert 0 <= found.lower <= found.value <= found.upper <= 1
    assert np.isfinite(cb.distances(y, p, sample_weight=w).upper)


@pytest.mark.parametrize("norm", [3, 40, 1000, 1e6])
def test_the_root_of_a_high_power_tends_to_the_largest_gap(norm):
    y, p = [0, 1, 1, 1], [0.3, 0.3, 0.9, 0.9]
    found = cb.level_set_error(y, p, norm=norm, root=True)
    gaps, weights = np.array([0.2, 0.1]), np.array([0.5, 0.5])
    assert found == pytest.approx(0.2 * (weights @ (gaps / 0.2) ** norm) ** (1 / norm), rel=1e-12)
    assert found <= cb.level_set_error(y, p, norm=np.inf)
    batch = cb.measures()["level-set"].null.batch
    f = cb.Forecasts(y, p)
    settings_ = {"norm": norm, "root": True}
    assert batch(f, f.residuals[None], settings_)[0] == pytest.approx(found, rel=1e-12)


def debiased_square(y, p, w, bins):
    """Kumar, Liang & Ma's estimate in fractions, before the root; bins are [k / bins, (k + 1) / bins)."""
    mass = [Fraction(x) for x in w]
    total = Fraction(0)
    for k in range(bins):
        inside = [i for i, v in enumerate(p) if min(bins - 1, int(np.floor(v * bins))) == k]
        if inside:
            weight = sum(mass[i] for i in inside)
            mean = sum(mass[i] * y[i] for i in inside) / weight
            gap = sum(mass[i] * (y[i] - Fraction(p[i])) for i in inside) / weight
            squares = sum(mass[i] ** 2 for i in inside)
            noise = mean * (1 - mean) * squares / (weight**2 - squares) if weight**2 > squares else 0
            total += weight / sum(mass) * (gap**2 - noise)
    return max(Fraction(0), total)


@given(case=weighted())
@settings(max_examples=200)
def test_the_debiased_error_keeps_its_digits_whatever_the_weights(case):
    y, p, w = case
    found = cb.binned_calibration_error(y, p, sample_weight=w, bins=2, norm=2, debiased=True)
    assert found**2 == pytest.approx(float(debiased_square(y, p, w, 2)), abs=1e-14)


def test_weights_too_far_apart_to_be_shares_are_refused():
    with pytest.raises(cb.CalibrantError, match=r"sample_weight .* got 1e-300 in row 1"):
        cb.level_set_error([0, 1], [0.2, 0.3], sample_weight=[1e300, 1e-300])


@pytest.mark.parametrize("degree", [1, 3, 6])
@pytest.mark.parametrize("failing", [lambda call: True, lambda call: call > 1], ids=["at once", "later"])
def test_a_solver_that_gives_up_leaves_a_bracket(monkeypatch, degree, failing):
    import scipy.optimize

    rng = np.random.default_rng(degree)
    f = cb.Forecasts(rng.integers(0, 2, 9), rng.random(9))
    exact = cb.low_degree_error.core(f, degree=degree)
    solve, calls = scipy.optimize.linprog, []

    def tired(*args, **options):
        calls.append(1)
        return SimpleNamespace(status=4, x=None) if failing(len(calls)) else solve(*args, **options)

    monkeypatch.setattr(scipy.optimize, "linprog", tired)
    found = cb.low_degree_error.core(f, degree=degree)
    assert found.lower - 1e-9 <= exact.upper
    assert found.upper + 1e-9 >= exact.lower
    assert 0 < found.lower <= found.value <= found.upper < 4


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60)
def test_the_slope_is_where_the_gradient_vanishes_in_extended_precision(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 60))
    p = rng.random(n) ** rng.choice([0.2, 1, 5])
    y = rng.random(n) < p
    try:
        found = cb.cox_calibration(y, p)
    except cb.CalibrantError:
        return
    f = cb.Forecasts(y, p)
    x, w, ones = (a.astype(np.longdouble) for a in (logits(f), f.weights, f.outcomes))
    intercept, slope = np.longdouble(found.intercept), np.longdouble(found.slope)
    rate = 1 / (1 + np.exp(-(intercept + slope * x)))
    surplus, spread = ones - w * rate, w * rate * (1 - rate)
    a, b, c = spread.sum(), (spread * x).sum(), (spread * x * x).sum()
    step = (a * (surplus * x).sum() - b * surplus.sum()) / (a * c - b * b)
    assert abs(float(step)) <= 1e-12 * max(1.0, abs(found.slope))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=150)
def test_one_task_never_loses_more_than_the_worst_task_however_close_the_predictions(seed):
    rng = np.random.default_rng(seed)
    threshold, m = int(rng.integers(1, 10)) / 10, int(rng.integers(2, 6))
    p = [threshold - 5e-16 * int(rng.integers(0, 3))]
    while len(p) < m:
        p.append(np.nextafter(p[-1], 1) if rng.random() < 0.7 else p[-1] + 5e-16 * int(rng.integers(1, 4)))
    table = rng.integers(0, 11, (int(rng.integers(2, 4)), 2)) / 10
    f = cb.Forecasts(rng.integers(0, 2, m), p, sample_weight=rng.integers(1, 5, m))
    worst = cb.decision_loss(f)
    for payoff in (threshold, table):
        for ties in ("worst", "first"):
            assert cb.fixed_decision_loss(f, payoff=payoff, ties=ties) <= worst + 1e-12


def test_a_tie_within_rounding_is_still_a_tie():
    """0.1 / (0.1 + 0.7) is 1/8, but the two rows differ there by a rounding error."""
    payoff = [[0.0, 1.0], [0.1, 0.3]]
    worst = cb.fixed_decision_loss([0, 1, 1, 1], [0.125] * 4, payoff=payoff, ties="worst")
    assert worst == pytest.approx(0.75 * 0.7 - 0.25 * 0.1)


def test_the_sum_of_one_sketch_is_a_copy():
    one = Sketch.from_arrays([0, 1, 1], [0.2, 0.4, 0.9])
    total = sum([one])
    total.update([1, 1], [0.4, 0.9])
    assert (one.n, total.n) == (3, 5)
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 0.4], "g": ["a", "b"]})
    whole = Sketch.from_frame(frame, outcome="y", prediction="p", by="g")
    whole.groups["a"].update([1], [0.2])
    assert whole.n == 2


def test_a_program_is_not_solved_again_on_the_same_points(monkeypatch):
    import scipy.optimize

    solved = []

    def counted(*given, **options):
        solved.append(given)
        return linprog(*given, **options)

    linprog = scipy.optimize.linprog
    monkeypatch.setattr(scipy.optimize, "linprog", counted)
    found = cb.measure(cb.Forecasts([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.6]), "low-degree", degree=20)
    assert found.value == pytest.approx(0.4, abs=1e-9)
    assert len(solved) <= 60  # two per round: of 50 rounds half added nothing
