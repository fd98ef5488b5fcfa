"""compare: paired, rank-preserving, honest about size, the same whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import InvalidInputError, TooFewRecordsError


def rows(n, rng, a=0.0, b=0.0):
    """One truth, two models that shift it."""
    p = 0.3 + 0.4 * rng.random(n)
    y = rng.random(n) < p
    return y, np.clip(p + a, 0, 1), np.clip(p + b, 0, 1)


def test_a_better_model_is_found():
    y, good, bad = rows(3000, np.random.default_rng(1), 0.0, 0.12)
    found = cb.compare(y, good, bad, names=["good", "bad"], seed=1, draws=299)
    assert found.best == "good"
    (pair,) = found.differences
    assert pair.pvalue < 0.02
    assert pair.lower < pair.difference < pair.upper < 0
    assert found.fair
    assert found.values["good"] == cb.averaged_two_bin_error(y, good)
    assert found.to_dict()["best"] == "good"


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_equal_models_are_seldom_told_apart(shift):
    """Both off by the same amount, one up and one down, so that the null is true and not degenerate."""
    rng = np.random.default_rng(5)
    ps = [
        cb.compare(*rows(300, rng, shift, -shift), draws=99, seed=k, threads=1).differences[0].pvalue
        for k in range(150)
    ]
    assert np.mean(np.array(ps) <= 0.1) <= 0.19


def test_identical_models_have_no_difference():
    y, a, _ = rows(100, np.random.default_rng(2))
    (pair,) = cb.compare(y, a, a, seed=1, draws=99).differences
    assert pair.difference == 0
    assert pair.pvalue == 1


def test_three_models_by_name_with_weights_and_holm():
    rng = np.random.default_rng(3)
    y, a, b = rows(800, rng, 0.0, 0.1)
    models = {"a": a, "b": b, "c": np.clip(a - 0.2, 0, 1)}
    w = rng.random(800)
    w[:50] = 0.0
    found = cb.compare(y, models, sample_weight=w, seed=4, draws=199)
    assert list(found.values) == ["a", "b", "c"]
    assert [(d.first, d.second) for d in found.differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    raw = [d.pvalue for d in found.differences]
    adjusted = [d.adjusted for d in found.differences]
    assert all(p <= q <= 1 for p, q in zip(raw, adjusted, strict=True))
    assert min(adjusted) == pytest.approx(min(1, 3 * min(raw)))
    kept = cb.compare(y[50:], {k: v[50:] for k, v in models.items()}, sample_weight=w[50:], seed=4, draws=19)
    assert kept.values == pytest.approx(found.values)


def test_threads_and_seed():
    y, a, b = rows(2000, np.random.default_rng(8), 0.0, 0.05)
    found = [cb.compare(y, a, b, draws=200, seed=9, threads=t).to_dict() for t in (1, 3)]
    assert found[0] == found[1]
    slow = cb.compare(y[:100], a[:100], b[:100], measure="ici", draws=19, seed=1)
    assert not slow.fair


def test_misuse_is_refused():
    y, a, b = rows(20, np.random.default_rng(0))
    for call in (
        lambda: cb.compare(y, a),
        lambda: cb.compare(y, a, b[:-1]),
        lambda: cb.compare(y, a, b, names=["x", "x"]),
        lambda: cb.compare(y, a, b, measure="nope"),
        lambda: cb.compare(y, a, b, confidence=2),
    ):
        with pytest.raises(cb.CalibrantError):
            call()


@pytest.mark.parametrize("name", ["in-the-large", "slope", "intercept"])
def test_measures_with_a_sign_are_compared_by_their_distance_from_the_ideal(name):
    rng = np.random.default_rng(4)
    p = rng.uniform(0.2, 0.8, 1500)
    y = rng.random(1500) < p
    logit = np.log(p / (1 - p))
    models = {"good": p, "high": 1 / (1 + np.exp(-2 * logit - 1)), "low": 1 / (1 + np.exp(-logit / 2 + 1))}
    found = cb.compare(y, models, measure=name, seed=1, draws=99)
    ideal = cb.measures()[name].ideal
    assert found.best == "good"
    for d in found.differences:
        errors = [abs(found.values[model] - ideal) for model in (d.first, d.second)]
        assert d.difference == pytest.approx(errors[0] - errors[1])
        assert d.lower <= d.difference <= d.upper
        assert d.first != "good" or d.pvalue <= 0.041  # one draw of 99 beyond at most, on two sides


def test_intervals_of_measures_with_a_sign_hold_where_the_sign_changes():
    """Off by as much upwards as downwards: the difference of distances is 0, of values it is not."""
    rng = np.random.default_rng(6)
    pairs = []
    for k in range(150):
        y, a, b = rows(300, rng, 0.03, -0.03)
        pairs += cb.compare(y, a, b, measure="in-the-large", draws=99, seed=k).differences
    assert np.mean([d.lower <= 0 <= d.upper for d in pairs]) >= 0.88
    assert np.mean([d.pvalue <= 0.1 for d in pairs]) <= 0.18


def test_a_frame_of_models():
    import pandas as pd
    import polars as pl

    y, a, b = rows(60, np.random.default_rng(0), 0.0, 0.1)
    models = {"old": a, "new": b}
    expected = cb.compare(y, models, draws=19, seed=1)
    for frame in (pd.DataFrame(models), pl.DataFrame(models), pl.DataFrame(models).lazy()):
        assert cb.compare(y, frame, draws=19, seed=1) == expected
    for named in (models, pd.DataFrame(models)):
        with pytest.raises(InvalidInputError, match="names must not be combined"):
            cb.compare(y, named, names=["x", "y"])


def test_a_row_missing_in_one_model_is_dropped_for_all():
    y, a, b = rows(60, np.random.default_rng(0), 0.0, 0.1)
    holes = b.copy()
    holes[[3, 7]] = np.nan
    with pytest.raises(
        InvalidInputError, match=r"model 'new' must not be missing; got nan in row 3 \(2 rows"
    ):
        cb.compare(y, {"old": a, "new": holes})
    found = cb.compare(y, {"old": a, "new": holes}, missing="drop", draws=19, seed=1)
    kept = np.isfinite(holes)
    assert (found.n, found.dropped) == (58, 2)
    assert found.values == cb.compare(y[kept], {"old": a[kept], "new": b[kept]}, draws=19).values
    with pytest.raises(InvalidInputError, match="none complete"):
        cb.compare([0, 1], [0.5, np.nan], [np.nan, 0.5], missing="drop")


def test_nothing_can_be_resampled_of_one_row():
    with pytest.raises(TooFewRecordsError):
        cb.compare([1], [0.3], [0.4])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binned", "smooth", "atb", "intercept"])
@pytest.mark.parametrize("other", [lambda p: 0.9 * p + 0.1, np.square, lambda p: 0.5 * p])
def test_intervals_cover_where_one_model_is_calibrated(name, other):
    """Noise adds to the error of the calibrated model and hardly to the other's: once .49 for binned."""
    row, grid = cb.measures()[name], (np.arange(1000) + 0.5) / 1000

    def error(values, outcomes):
        value = row.function(outcomes, values)
        return abs(value - row.ideal) if row.signed else value

    truth, covered = error(grid, grid) - error(other(grid), grid), 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.choice(grid, 300)
        (pair,) = cb.compare(rng.random(300) < p, p, other(p), measure=name, draws=99, seed=seed).differences
        covered += pair.lower <= truth <= pair.upper
    assert covered >= 90  # 95 less 2.3 binomial deviations


def test_intervals_allow_for_the_rows_that_came():
    """The error of one model on the other's rows once counted as known: 90% instead of 95 were covered."""
    grid = (np.arange(4000) + 0.5) / 4000
    truth, missed = -cb.smooth_calibration_error(grid, 0.9 * grid + 0.02), 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.random(400)
        y, other = rng.random(400) < p, 0.9 * p + 0.02
        (pair,) = cb.compare(y, p, other, measure="smooth", draws=39, seed=seed, threads=1).differences
        missed += not pair.lower <= truth <= pair.upper
    assert missed <= 2


def test_a_comparison_says_that_it_is_approximate():
    found = cb.compare([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], [0.5] * 4, draws=9, seed=1)
    assert "approximate" in found.method
    assert found.to_dict()["method"] == found.method


def test_many_models_are_drawn_often_enough_for_all_their_pairs():
    rng = np.random.default_rng(4)
    p = rng.uniform(0.05, 0.95, 300)
    models = {f"m{k}": p if k else 1 - p for k in range(8)}  # the first is plainly the worst of eight
    found = cb.compare(rng.random(300) < p, models, measure="brier", seed=1)
    assert found.draws == 1119  # 28 pairs times 2 / 1120 is 0.05
    assert found.real
    assert all("m0" in pair.better for pair in found.real)


def close_models(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(150)
    y = (rng.random(150) < p).astype(int)
    return y, p, np.clip(p + rng.normal(0, 0.12, 150), 0.01, 0.99)


def test_more_is_drawn_where_another_seed_might_change_the_verdict():
    """The p-value with 999 draws lies within two simulation errors of 0.05; with 9,990 it does not."""
    found = cb.compare(*close_models(16), measure="brier")
    assert found.draws == 9990
    assert found.real
    assert not found.undecided
    assert cb.compare(*close_models(16), measure="brier", draws=199).draws == 199
    assert cb.compare(*close_models(0), measure="brier").draws == 999


def test_a_p_value_that_stays_on_the_limit_is_undecided():
    found = cb.compare(*close_models(6), measure="brier")
    assert found.undecided == found.differences
    assert not found.real
    assert str(found).startswith("Undecided between a and b: p = 0.045 is too close to 0.05")
    assert found.to_dict()["undecided"][0]["first"] == "a"


@pytest.mark.parametrize("measure", ["atb", "smooth", "brier", "slope"])
@pytest.mark.parametrize("n", [200, 30_000])
def test_the_order_in_which_models_are_named_changes_nothing_but_the_sign(measure, n):
    rng = np.random.default_rng(4)
    p = rng.random(n)
    models = {"p": p, "q": np.clip(p + 0.05 * rng.normal(size=n), 0.01, 0.99), "r": 0.1 + 0.8 * p}
    y = rng.random(n) < p
    found = cb.compare(y, models, measure=measure, draws=99)
    turned = cb.compare(y, dict(reversed(models.items())), measure=measure, draws=99)
    other = {(pair.second, pair.first): pair for pair in turned.differences}
    assert turned.values == found.values
    assert list(found.values) == list(found.scores) == list(models)
    for pair in found.differences:
        mirror = other[pair.first, pair.second]
        assert (pair.pvalue, pair.adjusted) == (mirror.pvalue, mirror.adjusted)
        assert (pair.lower, pair.upper) == pytest.approx((-mirror.upper, -mirror.lower), rel=1e-9)


def test_labels_of_clusters_do_not_matter_where_rows_are_all_zero():
    y, p, q = [0] * 12 + [1, 0] * 12, [0.0] * 12 + [0.6, 0.4] * 12, [0.0] * 12 + [0.7, 0.2] * 12
    labels = np.append(np.arange(12), np.arange(24))
    found = [
        cb.compare(y, p, q, measure="brier", clusters=named).differences[0] for named in (labels, 23 - labels)
    ]
    assert found[0] == found[1]
