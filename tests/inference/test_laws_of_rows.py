"""Laws of rows for every inference function with every measure: order, weights of one, weights of zero.

A result with the same seed is the same in its last digit, not merely close: whatever draws or deals rows does
so in an order that the order of the rows does not decide.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import LevelSetWarning
from calibrant.evaluation.gate import judge

pytestmark = pytest.mark.filterwarnings(f"ignore::{LevelSetWarning.__module__}.LevelSetWarning")

N = 48
NAMES = list(cb.measures())
DRAWS = {name: 2 if name in ("low-degree", "lower-distance", "upper-distance") else 9 for name in NAMES}
OPTIONS = {name: dict(row.law_options) for name, row in cb.measures().items()}
OPTIONS["low-degree"] = {"degree": 1}  # a linear program of every draw: the least of them


def plain(result):
    """All numbers of a result, comparable although some may be NaN."""
    if dataclasses.is_dataclass(result):
        return {f.name: plain(getattr(result, f.name)) for f in dataclasses.fields(result)}
    if isinstance(result, dict):
        return {key: plain(item) for key, item in result.items()}
    if isinstance(result, list | tuple):
        return [plain(item) for item in result]
    if isinstance(result, np.ndarray):
        return result.tolist()
    return "nan" if isinstance(result, float) and np.isnan(result) else result


def chance_of(name):
    def run(y, p, q, g, w):
        return cb.calibration_test(
            y, p, sample_weight=w, measure=name, method="exact", draws=DRAWS[name], seed=1, **OPTIONS[name]
        )

    return run


def interval_of(name):
    def run(y, p, q, g, w):
        return cb.confidence_interval(
            y, p, sample_weight=w, measure=name, draws=DRAWS[name], seed=1, **OPTIONS[name]
        )

    return run


def comparison_of(name):
    def run(y, p, q, g, w):
        return cb.compare(y, p, q, sample_weight=w, measure=name, draws=DRAWS[name], seed=1, **OPTIONS[name])

    return run


def audited(variant):
    def run(y, p, q, g, w):
        return cb.audit(
            y, p, sample_weight=w, groups={"g": g}, draws=9, seed=1, min_size=2, variant=variant
        ).to_dict()

    return run


def tolerated(y, p, q, g, w):
    return cb.tolerance_test(
        y, p, sample_weight=w, accept=0.01, reject=0.2, method="bootstrap", draws=9, seed=1
    )


def decided(y, p, q, g, w):
    return cb.estimate_decision_loss(y, p, sample_weight=w, draws=9, seed=1)


def searched(y, p, q, g, w):
    return cb.search_groups(y, p, {"g": g, "q": q}, sample_weight=w, draws=9, seed=1, min_size=4).to_dict()


def dominated(y, p, q, g, w):
    return cb.dominance(y, p, q, sample_weight=w, draws=9, seed=1)


def cross_fitted(y, p, q, g, w):
    """Resampled records are dealt into folds once more."""
    how = {"sample_weight": w, "measure": "cdl", "recalibrator": "isotonic", "draws": 9, "seed": 1}
    return cb.compare(y, p, q, **how), cb.confidence_interval(y, p, **how)


def evaluated(y, p, q, g, w):
    return cb.evaluate(y, p, sample_weight=w, groups={"g": g}, draws=19, seed=1).to_dict()


CALLS = {
    **{f"calibration_test {name}": chance_of(name) for name in NAMES},
    **{f"confidence_interval {name}": interval_of(name) for name in NAMES},
    **{f"compare {name}": comparison_of(name) for name in NAMES},
    **{
        f"audit {name}": audited(name)
        for name in ("plain", "proportional", "proportional-shifted", "low-prevalence", "real")
    },
    "tolerance_test": tolerated,
    "estimate_decision_loss": decided,
    "dominance": dominated,
    "with a recalibrator": cross_fitted,
    "search_groups": searched,
    "evaluate": evaluated,
}
every = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def tied(weighted: bool):
    """Gridded predictions of two models, labels, a group, and weights that differ among ties."""
    rng = np.random.default_rng(11)
    p, q = rng.integers(1, 10, N) / 10, rng.integers(1, 10, N) / 10
    y = (rng.random(N) < p).astype(int)
    w = rng.choice([0.3, 1.0, 1.7, 40.0], N) if weighted else None
    return y, p, q, rng.choice(["a", "b", "c"], N), w


def shuffled(data, seed=5):
    order = np.random.default_rng(seed).permutation(N)
    return [None if column is None else column[order] for column in data]


@every
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_row_order_changes_nothing(call, weighted):
    data = tied(weighted)
    assert plain(call(*shuffled(data))) == plain(call(*data))


@every
def test_no_weights_are_weights_of_one_and_rows_of_weight_zero_are_not_there(call):
    y, p, q, g, _ = tied(False)
    alone = plain(call(y, p, q, g, None))
    assert plain(call(y, p, q, g, np.ones(N))) == alone
    extra = np.r_[y, 1, 0, 1], np.r_[p, 0.123, p[0], 1.0], np.r_[q, 0.9, 0.1, 0.0], np.r_[g, ["a", "b", "c"]]
    weights = np.r_[np.ones(N), 0, 0, 0]
    assert plain(call(*extra, weights)) == alone
    order = np.random.default_rng(2).permutation(N + 3)
    assert plain(call(*(column[order] for column in extra), weights[order])) == alone


@pytest.mark.parametrize("name", NAMES)
def test_the_interval_of_a_comparison_contains_the_difference(name):
    rng = np.random.default_rng(3)
    p = rng.integers(1, 20, 200) / 20
    y = rng.random(200) < p
    for model in (np.clip(p + 0.1, 0, 0.99), p**2, p[::-1]):
        (pair,) = cb.compare(
            y, p, model, measure=name, draws=DRAWS[name], seed=1, **OPTIONS[name]
        ).differences
        assert pair.lower <= pair.difference <= pair.upper
        assert pair.pvalue <= pair.adjusted <= 1


@pytest.mark.parametrize("name", ["smooth", "atb", "slope", "binned"])
def test_interval_and_pvalue_of_a_comparison_agree(name):
    rng = np.random.default_rng(4)
    for seed in range(6 if name == "slope" else 25):
        p = rng.random(60)
        y = rng.random(60) < p
        (pair,) = cb.compare(y, p, np.clip(p + 0.15, 0, 0.99), measure=name, draws=39, seed=seed).differences
        assert (pair.pvalue <= 0.05) == (not pair.lower <= 0 <= pair.upper)


def test_interval_and_pvalue_agree_on_random_pairs():
    """Near the limit most of all: a smooth error once had an interval of .0003 to .0068 and p = .117."""
    near = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 6])
        n = int(rng.integers(30, 300))
        p = np.round(rng.random(n), int(rng.integers(1, 5))).clip(0.01, 0.99)
        y = rng.random(n) < p
        other = np.clip(p + rng.normal(0, 0.15) + rng.choice([0, 0.1]) * rng.normal(size=n), 0.01, 0.99)
        w = rng.random(n) + 0.1 if seed % 3 == 0 else None
        (pair,) = cb.compare(y, p, other, sample_weight=w, measure="smooth", draws=99, seed=seed).differences
        assert (pair.pvalue <= 0.05) == (not pair.lower <= 0 <= pair.upper)
        near += 0.01 < pair.pvalue < 0.2
    assert near >= 5


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_resampled_rows_keep_their_numbers(weighted, monkeypatch):
    """Counts were once normalised along with the weights; each resample has whole records, n in all."""
    seen = []

    def kept(forecasts, row, drawn, quick):
        seen.append((forecasts, drawn))
        return np.zeros(len(drawn.weights))

    monkeypatch.setattr("calibrant.inference.compare.values_of_resamples", kept)
    y, p, q, _, w = tied(weighted)
    cb.compare(y, p, q, sample_weight=w, measure="ubse", draws=5, seed=1)
    assert len(seen) == 2
    for forecasts, drawn in seen:
        assert np.array_equal(drawn.counts, np.rint(drawn.counts))
        assert np.all(drawn.counts.sum(axis=1) == N)
        np.testing.assert_allclose(drawn.weights.sum(axis=1), 1)
        np.testing.assert_allclose(
            drawn.outcomes.sum(axis=1), seen[0][1].outcomes.sum(axis=1)
        )  # the same rows
        if not weighted:
            np.testing.assert_allclose(drawn.weights * N, drawn.counts)
            np.testing.assert_allclose(drawn.squared_weights * N, drawn.weights)
        assert forecasts.n == N


@pytest.mark.parametrize(("measure", "options"), [("ubse", {}), ("cdl", {"recalibrator": "isotonic"})])
def test_a_clear_difference_is_seen_by_measures_that_use_counts(measure, options):
    rng = np.random.default_rng(0)
    p = np.round(rng.random(600), 2)
    y = rng.random(600) < p
    how = {"measure": measure, "draws": 39, "seed": 1, **options}
    (pair,) = cb.compare(y, p, np.clip(p + 0.4, 0, 1), **how).differences
    assert pair.upper < 0
    assert pair.pvalue <= 0.05


@pytest.mark.parametrize("name", ["slope", "intercept"])
def test_no_interval_of_a_slope_where_predictions_are_0_or_1(name):
    """A clipped prediction in twenty that fails now and then decides the slope: intervals covered 64%."""
    rng = np.random.default_rng(1)
    p = rng.random(100)
    y = rng.random(100) < p
    clipped = np.clip(p + 0.05, 0, 1)
    certain = np.count_nonzero(clipped == 1)
    with pytest.raises(
        cb.CalibrantError, match=rf"model 'b' must lie between 0 and 1 .*; {certain} are 0 or 1"
    ):
        cb.compare(y, p, clipped, measure=name, draws=9)
    with pytest.raises(cb.CalibrantError, match="the predictions must lie between 0 and 1"):
        cb.confidence_interval(y, clipped, measure=name, draws=9)
    found = judge(cb.Forecasts(y, clipped), {name: 0.1}, confidence=0.95, draws=9, seed=1)[0]
    assert found.outcome == "unclear"
    assert "are exactly 0 or 1" in found.reason
