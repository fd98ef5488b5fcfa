"""net_benefits: equal to the definition, intervals that cover, and a frame, a table and a chart."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.decision import difference_limits

import calibrant as cb
from calibrant.report.charts import decision_curves

CELLS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 0.1, 0.5, 1]),
        st.sampled_from([0, 0.2, 0.5, 1]),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=12,
)


def by_definition(y, p, w, t):
    """Return true positives less false ones at the odds, in a loop."""
    total = 0.0
    for outcome, prediction, weight in zip(y, p, w, strict=True):
        if prediction >= t:
            total += weight * (outcome - (1 - outcome) * t / (1 - t))
    return total / sum(w)


@settings(max_examples=60, deadline=None)
@given(CELLS)
def test_values_are_those_of_the_definition_and_lie_in_their_intervals(cells):
    y, a, b, w = map(list, zip(*cells, strict=True))
    thresholds = [0.0, 0.1, 0.3, 0.5, 0.9]
    found = cb.net_benefits(y, {"a": a, "b": b}, thresholds=thresholds, sample_weight=w)
    for k, t in enumerate(thresholds):
        values = [by_definition(y, p, w, t) for p in (a, b)]
        assert [found.models[name].value[k] for name in "ab"] == pytest.approx(values, abs=1e-12)
        assert found.differences[0].value[k] == pytest.approx(values[0] - values[1], abs=1e-12)
        assert found.treat_all.value[k] == pytest.approx(by_definition(y, [1] * len(y), w, t), abs=1e-12)
    for one in (*found.models.values(), found.treat_all, *found.differences):
        assert np.all(one.lower <= one.value)
        assert np.all(one.value <= one.upper)
        assert np.all(np.isfinite(one.lower) & np.isfinite(one.upper))


def sample(rng, n):
    p = rng.beta(1, 4, n)
    return (rng.random(n) < p).astype(int), p, np.clip(p + rng.normal(0, 0.1, n), 0, 1)


def test_one_model_is_the_decision_curve_and_row_order_does_not_count():
    rng = np.random.default_rng(1)
    y, p, q = sample(rng, 500)
    found = cb.net_benefits(y, p, q, names=["one", "two"])
    assert found.models["one"].value == pytest.approx(cb.net_benefit(y, p).model)
    order = rng.permutation(500)
    again = cb.net_benefits(y[order], {"one": p[order], "two": q[order]})
    assert again.to_dict() == found.to_dict()
    frame = {"y": y, "one": p, "two": q}
    assert cb.net_benefits(frame, outcome="y", prediction=["one", "two"]).to_dict() == found.to_dict()
    doubled = cb.net_benefits(y, p, sample_weight=np.full(500, 2.0), names=["one"])
    assert doubled.models["one"].upper == pytest.approx(found.models["one"].upper)


def test_sentence_table_frame_and_chart():
    rng = np.random.default_rng(2)
    y, p, q = sample(rng, 2000)
    found = cb.net_benefits([*y, 1], {"good": [*p, np.nan], "noisy": [*q, 0.5]}, missing="drop")
    assert str(found).startswith("Beyond chance, good is better than noisy at ")
    assert " good has the largest net benefit at " in str(found)
    alike = str(cb.net_benefits(y, {"one": p, "other": p}, thresholds=[0.2, 0.5]))
    assert alike.startswith("one and other differ at none of 2 thresholds by more than chance. 2,000 rows")
    assert (
        "2,000 rows (1 with missing values dropped); approximate 95% intervals for one threshold; claims"
        in str(found)
    )
    frame = found.to_frame("pandas")
    assert len(frame) == 4 * 99
    pair = frame[frame["minus"] == "noisy"]
    assert pair["model"].unique().tolist() == ["good"]
    assert pair["net_benefit"].to_numpy() == pytest.approx(found.differences[0].value)
    assert pair["upper"].to_numpy() == pytest.approx(found.differences[0].upper)
    assert frame["minus"].isna().sum() == 3 * 99
    assert found.sheet().columns == (
        "threshold", "good per 1,000", "noisy per 1,000", "treat all per 1,000", "largest",
    )  # fmt: skip
    table = found.difference_sheet()
    assert table.columns == ("models", "threshold", "difference per 1,000", "better")
    for line, low, high in zip(
        table.lines, found.differences[0].band_lower, found.differences[0].band_upper, strict=True
    ):
        assert line[0].text == "good - noisy"
        assert line[3].text == ("good" if low > 0 else "noisy" if high < 0 else "within chance")
    assert "<svg" in decision_curves(found)._repr_mimebundle_()["image/svg+xml"]
    with pytest.raises(cb.CalibrantError, match="models must be 3 at most to be drawn; got 4"):
        decision_curves(cb.net_benefits(y, p, p, p, q))


@pytest.mark.parametrize("thresholds", [[1.0], [-0.1], [np.nan], "x"])
def test_thresholds_must_be_probabilities_below_one(thresholds):
    with pytest.raises(cb.CalibrantError, match="thresholds"):
        cb.net_benefits([0, 1], [0.2, 0.6], thresholds=thresholds)


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 600])
def test_intervals_cover_also_where_hardly_anybody_is_treated(n):
    rng = np.random.default_rng(3)
    thresholds, sets = np.array([0.05, 0.2, 0.4, 0.6, 0.8]), 800
    truth = cb.net_benefits(*sample(rng, 2_000_000), thresholds=thresholds)
    covered = np.zeros((3, len(thresholds)))
    for _ in range(sets):
        found = cb.net_benefits(*sample(rng, n), thresholds=thresholds)
        parts = [(found.models[k], truth.models[k]) for k in "ab"] + [
            (found.differences[0], truth.differences[0])
        ]
        for row, (one, true) in enumerate(parts):
            covered[row] += (one.lower <= true.value) & (true.value <= one.upper)
    assert np.all(covered >= 0.93 * sets)


def test_memory_does_not_grow_with_the_number_of_thresholds():
    n = 100_000
    p = np.linspace(0, 1, n)
    tracemalloc.start()
    try:
        peaks = []
        for count in (2, 200):
            tracemalloc.reset_peak()
            cb.net_benefits(p > 0.5, {"a": p, "b": p**2}, thresholds=np.linspace(0.1, 0.9, count))
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20 * n + 3 * 8 * 999 * 200  # and three tables of the draws


def test_exchangeable_models_are_rarely_told_apart():
    """Of 120 such pairs 70 were called different beyond chance, when each threshold was judged alone."""
    rng, claims, pointwise = np.random.default_rng(11), 0, 0
    for seed in range(120):
        z = rng.normal(0, 1, 300)
        y = rng.random(300) < 1 / (1 + np.exp(-z))
        p, q = (1 / (1 + np.exp(-3 * (z + rng.normal(0, 0.7, 300)))) for _ in range(2))
        (pair,) = cb.net_benefits(y, p, q, draws=99, seed=seed).differences
        claims += bool(pair.better.any())
        pointwise += bool(((pair.lower > 0) | (pair.upper < 0)).any())
    assert claims <= 13  # 5 % but for a chance of 1 in 1,000
    assert pointwise > 3 * claims
    assert np.all(pair.band_lower <= pair.lower + 1e-12)


def test_intervals_are_those_of_the_oracle_for_any_weights():
    rng = np.random.default_rng(12)
    thresholds = np.array([0.7, 0.2, 0.45])
    for _ in range(5):
        y, p, q = sample(rng, 60)
        w = np.exp(rng.normal(0, 1.5, 60))
        (pair,) = cb.net_benefits(y, p, q, sample_weight=w, thresholds=thresholds, draws=9).differences
        w = w / w.sum()
        for k, t in enumerate(thresholds):
            lower, upper = difference_limits(y, p >= t, q >= t, w, t / (1 - t))
            assert (pair.lower[k], pair.upper[k]) == pytest.approx((lower, upper))


def test_clusters_widen_the_intervals_and_single_ones_do_not():
    rng = np.random.default_rng(13)
    y, p, q = (np.repeat(x, 5) for x in sample(rng, 80))
    plain = cb.net_benefits(y, p, q, thresholds=[0.3, 0.6])
    alone = cb.net_benefits(y, p, q, thresholds=[0.3, 0.6], clusters=np.arange(400))
    assert alone.differences[0].lower == pytest.approx(plain.differences[0].lower)
    together = cb.net_benefits(y, p, q, thresholds=[0.3, 0.6], clusters=np.repeat(np.arange(80), 5))
    wider = (together.models["a"].upper - together.models["a"].lower) / (
        plain.models["a"].upper - plain.models["a"].lower
    )
    assert np.all(wider > 1.8)
    assert "in 80 clusters carry as much information as about 8" in str(together)
