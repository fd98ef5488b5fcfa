"""calibration_test: exact against enumeration, sizes against the binomial, the same whatever the threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import null as oracle
from oracles import simple
from samples import Sample, samples, size_bound

import calibrant as cb
from calibrant.errors import LevelSetWarning
from calibrant.inference.bootstrap import coarse
from calibrant.inference.null import Drawing, NullOutcomes, null_values
from calibrant.inference.testing import law_serves
from calibrant.metrics.null_laws import BROWNIAN_RANGE

ROWS = list(cb.measures().values())
QUICK = [row for row in ROWS if row.null.batch is not None]
pytestmark = pytest.mark.filterwarnings(f"ignore::{LevelSetWarning.__module__}.LevelSetWarning")

DRAWS = 2999
ENUMERATED = [
    ("omnibus", simple.omnibus),
    ("kuiper", simple.kuiper),
    ("ks", simple.ks),
    ("atb", simple.atb),
    ("l1-atb", lambda s: simple.atb(s, norm=1)),
    ("level-set", simple.ece),
    ("binned", simple.binned),
    ("ubse", simple.ubse),
    ("in-the-large", lambda s: abs(simple.in_the_large(s))),
    ("brier", lambda s: abs(simple.brier(s) - np.sum(s.weights * s.p * (1 - s.p)))),
    ("ici", simple.ici),
]
TINY = [
    Sample(np.array([1, 0, 0, 1, 1]), np.array([0.2, 0.2, 0.5, 0.9, 0.35]), None),
    Sample(np.array([1, 1, 0, 0, 0, 0]), np.array([0.3] * 6), None),
    Sample(
        np.array([0, 1, 0, 1, 1]), np.array([0.1, 0.1, 0.4, 0.4, 0.8]), np.array([1.0, 3.0, 1.0, 0.5, 2.0])
    ),
    Sample(np.array([1, 0, 0, 0, 0]), np.array([0.01, 0.02, 0.01, 0.02, 0.03]), None),
]


@pytest.mark.parametrize(("name", "badness"), ENUMERATED, ids=[name for name, _ in ENUMERATED])
@pytest.mark.parametrize("sample", TINY, ids=["plain", "one level", "weighted", "rare"])
def test_equals_the_enumerated_pvalue(sample, name, badness):
    truth = min(1.0, oracle.exact_pvalue(sample, badness))  # a sum, which rounding may carry past 1
    found = cb.calibration_test(sample.forecasts, measure=name, method="exact", draws=DRAWS, seed=11)
    assert found.pvalue == pytest.approx(truth, abs=4 * math.sqrt(truth * (1 - truth) / DRAWS) + 2 / DRAWS)
    assert found.log_pvalue == math.log(found.pvalue)


@pytest.mark.parametrize("row", [row for row in ROWS if row.null.mean is not None], ids=lambda row: row.name)
@pytest.mark.parametrize("sample", TINY, ids=["plain", "one level", "weighted", "rare"])
def test_declared_null_means_are_exact(row, sample):
    def value(drawn):
        return cb.measure(drawn.forecasts, row.name).value

    declared = row.null.mean(sample.forecasts, row.options)
    assert declared == pytest.approx(oracle.null_mean(sample, value), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
@settings(max_examples=60)
@given(sample=samples(max_size=15))
def test_a_batch_is_the_measure_row_by_row(row, sample):
    f = sample.forecasts
    for extra in ({}, *row.variants):
        options = {**row.options, **extra}
        rows = row.null.batch(f, np.stack([f.residuals, f.residuals * 0.5]), options)
        if rows is not None:
            assert rows[0] == pytest.approx(row.function(f, **options), rel=1e-9, abs=1e-12)


def test_a_batch_of_long_rows_is_the_same():
    rng = np.random.default_rng(4)
    p = rng.random(30_000)
    f = cb.Forecasts(rng.random(30_000) < p**1.1, p)
    for name in ("kuiper", "ks", "atb", "l1-atb"):
        row = cb.measures()[name]
        found = row.null.batch(f, f.residuals[None].copy(), row.options)
        assert found[0] == pytest.approx(cb.measure(f, name).value, rel=1e-9)


@pytest.mark.parametrize("shape", ["records", "levels", "weights"])
def test_the_threads_do_not_change_the_result(shape):
    rng = np.random.default_rng(3)
    p = rng.random(3000) if shape != "levels" else rng.integers(0, 40, 3000) / 40
    w = rng.random(3000) if shape == "weights" else None
    f = cb.Forecasts(rng.random(3000) < p, p, sample_weight=w)
    found = [
        cb.calibration_test(f, measure="atb", draws=150, seed=5, threads=threads).pvalue
        for threads in (1, 2, 5)
    ]
    assert found[0] == found[1] == found[2]


def test_a_seed_is_drawn_and_recorded():
    f = TINY[0].forecasts
    assert cb.calibration_test(f).seed == 0
    first = cb.calibration_test(f, seed=None)
    assert cb.calibration_test(f, seed=first.seed) == first
    assert cb.calibration_test(f, seed=None).seed != first.seed


def test_progress_is_told():
    reported = []
    cb.calibration_test(
        TINY[0].forecasts, draws=99, seed=1, progress=lambda done, of: reported.append((done, of))
    )
    assert reported[-1] == (99, 99)


def calibrated(shape, n, rng):
    w = None
    if shape == "uniform":
        p = rng.random(n)
    elif shape == "rare":
        p = rng.beta(0.5, 30, n)
    elif shape == "ties":
        p = rng.integers(1, 6, n) / 6
    else:
        p, w = rng.beta(2, 2, n), 10 ** rng.normal(0, 0.7, n)
    return cb.Forecasts(rng.random(n) < p, p, sample_weight=w)


SHAPES = ["uniform", "rare", "ties", "weights"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "atb"])
def test_size_on_few_records(measure, shape):
    rng = np.random.default_rng(17)
    runs = 300
    ps = [
        cb.calibration_test(calibrated(shape, 20, rng), measure=measure, draws=99, seed=run).pvalue
        for run in range(runs)
    ]
    for level in (0.05, 0.2):
        assert np.sum(np.array(ps) <= level) <= size_bound(level, runs)


SIZES = [
    (20, "omnibus"),
    (3000, "omnibus"),
    (30_000, "omnibus"),
    (20, "kuiper"),
    (20, "smooth"),
    (300, "ks"),
    (300, "atb"),
    (3000, "kuiper"),
    (3000, "brier"),
    (20_000, "kuiper"),
    (20_000, "atb"),
]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n", "measure"), SIZES)
def test_size_at_5_and_1_percent(n, measure, shape):
    if n > 20_000 and shape in ("rare", "weights"):
        pytest.skip("this size is for the limit law, which this shape does not use")
    rng = np.random.default_rng(n)
    runs = 2000
    ps = np.array(
        [
            cb.calibration_test(calibrated(shape, n, rng), measure=measure, draws=99, seed=run).pvalue
            for run in range(runs)
        ]
    )
    for level in (0.05, 0.01):
        assert np.sum(ps <= level) <= size_bound(level, runs)
    if n >= 300 and shape != "ties":  # and the test is not timid either
        assert np.sum(ps <= 0.05) >= runs * 0.05 - 5 * math.sqrt(runs * 0.05)


def test_auto_takes_the_law_only_where_it_serves():
    rng = np.random.default_rng(2)
    big = calibrated("uniform", 30_000, rng)
    for measure in ("omnibus", "kuiper"):
        assert cb.calibration_test(big, measure=measure).method == "asymptotic"
        assert cb.calibration_test(big, measure=measure).draws == 0
    assert cb.calibration_test(calibrated("uniform", 500, rng), seed=1).method == "exact"
    assert cb.calibration_test(calibrated("ties", 20_000, rng), seed=1).method == "exact"
    assert cb.calibration_test(calibrated("rare", 20_000, rng), seed=1).method == "exact"
    assert cb.calibration_test(big, measure="atb", seed=1, draws=19).method == "exact"
    heavy = np.ones(20_000)
    heavy[7] = 5000
    p = rng.random(20_000)
    assert not law_serves(cb.Forecasts(rng.random(20_000) < p, p, sample_weight=heavy), BROWNIAN_RANGE)


@pytest.mark.parametrize(
    "measure", ["omnibus", "kuiper", "ks", "brier", "in-the-large", "spiegelhalter", "hosmer-lemeshow"]
)
def test_law_and_simulation_agree_at_large_n(measure):
    rng = np.random.default_rng(8)
    f = calibrated("uniform", 8000, rng)
    law = cb.calibration_test(f, measure=measure, method="asymptotic")
    drawn = cb.calibration_test(f, measure=measure, method="exact", draws=1999, seed=3)
    assert law.pvalue == pytest.approx(drawn.pvalue, abs=0.06)
    assert law.statistic == drawn.statistic


@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "ks"])
def test_far_tails(measure):
    p = np.linspace(0.05, 0.95, 40_000)
    rng = np.random.default_rng(0)
    found = [
        cb.calibration_test(rng.random(len(p)) < np.clip(p + shift, 0, 1), p, measure=measure)
        for shift in (0.05, 0.1, 0.2, 0.4)
    ]
    logs = [result.log_pvalue for result in found]
    assert logs == sorted(logs, reverse=True)
    assert logs[-1] < math.log(1e-300)
    assert found[-1].pvalue >= 0


def test_certain_predictions():
    """Predictions of 0 and 1 leave the null nothing to draw."""
    right = cb.Forecasts([0, 1, 1], [0.0, 1.0, 1.0])
    wrong = cb.Forecasts([1, 1, 1], [0.0, 1.0, 1.0])
    assert cb.calibration_test(right, seed=1).pvalue == 1
    assert cb.calibration_test(wrong, seed=1, draws=99).pvalue == 0.01
    assert cb.calibration_test(right, method="asymptotic").pvalue == 1
    assert cb.calibration_test(wrong, method="asymptotic").log_pvalue == -math.inf


def test_ties_in_any_order_give_one_pvalue():
    """Constant predictions, perfectly calibrated: a peer says 3.7e-10 or .39, by the order of the rows."""
    y = np.repeat([1, 0], [300, 700])
    found = {cb.calibration_test(order, np.full(1000, 0.3), seed=1).pvalue for order in (y, y[::-1])}
    assert found == {1.0}


def test_a_weighted_sketch_is_simulated_from_its_squared_weights_and_says_so():
    rng = np.random.default_rng(1)
    f = calibrated("weights", 1000, rng)
    bare = cb.Forecasts.from_levels(
        f.values, f.weights, f.outcomes, squared_weights=f.squared_weights, counts=f.counts, total_weight=1.0
    )
    found = cb.calibration_test(bare, measure="atb", seed=1, draws=499)
    assert found.method == "exact"  # one record per level: its weight is known
    merged = coarse(bare, 50)
    assert cb.calibration_test(merged, measure="atb", seed=1, draws=99).method == "approximate"
    assert "exact" not in cb.calibration_test(merged, measure="kuiper", seed=1, draws=99).reason
    assert found.pvalue == pytest.approx(
        cb.calibration_test(f, measure="atb", seed=1, draws=499).pvalue, abs=0.09
    )


def test_unknown_names_and_numbers_are_refused():
    f = TINY[0].forecasts
    for options in (
        {"measure": "kuipper"},
        {"method": "magic"},
        {"draws": 0},
        {"seed": -1},
        {"threads": 0},
        {"measure": "atb", "method": "asymptotic"},
    ):
        with pytest.raises(cb.CalibrantError):
            cb.calibration_test(f, **options)


def test_undefined_draws_count_as_extreme():
    """With 4 records a slope is often undefined in the draws; the p-value must not drop for it."""
    f = cb.Forecasts([0, 1, 0, 1, 1, 0], [0.3, 0.2, 0.6, 0.7, 0.9, 0.1])
    row = cb.measures()["slope"]
    drawn = null_values(f, row, NullOutcomes(f), Drawing(200, 1))
    assert np.isinf(drawn).any()
    pvalue = cb.calibration_test(f, measure="slope", draws=200, seed=1).pvalue
    assert pvalue >= np.mean(np.isinf(drawn))


@pytest.mark.parametrize("rows", [300, 1000])
def test_verdicts_on_the_demo_do_not_depend_on_the_seed(rows):
    """Tests within simulation error of 0.05 take ten times the draws, and may stay undecided."""
    demo = cb.load_demo()
    y, p = demo["default"][:rows], demo["p"][:rows]
    found = [cb.calibration_test(y, p, measure="kuiper", method="exact", draws=99, seed=k) for k in range(24)]
    assert len({one.rejects() for one in found if not one.undecided}) == 1
    assert all(one.draws == 990 for one in found if one.undecided)
    assert all(str(one).startswith("Undecided") == one.undecided for one in found)
