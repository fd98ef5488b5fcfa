"""What a sketch says of the raw rows is true: the interval holds the exact value, for every certified row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from samples import samples

import calibrant as cb
from calibrant.errors import TooFewRecordsError
from calibrant.metrics.certificates import NoCertificateError
from calibrant.sketch.sketch import Sketch

TRIALS = [
    (row, {**row.law_options, **extra})
    for row in cb.measures().values()
    if row.certified
    for extra in ({}, *row.variants)
]
EXTRA = [
    ("atb", {"norm": 1}),
    ("binned", {"strategy": "quantile", "bins": 3, "norm": 2}),
    ("binned", {"bins": 40, "norm": "max"}),
    ("kernel", {"bandwidth": 1e-4}),
    ("kernel", {"kernel": "gaussian", "bandwidth": 0.01}),
    ("log-loss", {"clip": 0.05}),
    ("low-degree", {"degree": 0}),
    ("smooth", {"lipschitz": 20.0}),
]
TRIALS += [(cb.measures()[name], {**cb.measures()[name].law_options, **extra}) for name, extra in EXTRA]

grids = st.one_of(st.integers(1, 12), st.sampled_from([15, 20, 64, 1000, 65_536]))


def names(trial):
    return trial.name if hasattr(trial, "name") else ",".join(f"{k}={v}" for k, v in trial.items())


def check_interval(row, options, sample, cells):
    sketch = Sketch.from_arrays(sample.y, sample.p, sample_weight=sample.w, cells=cells)
    try:
        raw = cb.measure(sample.forecasts, row.name, **options)
    except TooFewRecordsError:
        assume(False)
    found = sketch.measure(row.name, **options)
    # an iterative measure knows its raw value only up to an interval of its own
    slack = 1e-14 if not sketch.forecasts().exact else 1e-12
    assert found.lower - slack <= raw.upper
    assert found.upper + slack >= raw.lower
    assert found.lower <= found.value <= found.upper


def every(programs: bool):
    """Parametrise over all rows, apart from those that solve a linear program a case: they get fewer."""
    chosen = [trial for trial in TRIALS if (trial[0].name == "low-degree") == programs]
    return pytest.mark.parametrize(("row", "options"), chosen, ids=names)


@every(programs=False)
@settings(max_examples=75)
@given(sample=samples(max_size=25), cells=grids)
def test_the_interval_holds_the_value_on_the_raw_rows(row, options, sample, cells):
    check_interval(row, options, sample, cells)


@pytest.mark.slow
@every(programs=False)
@settings(max_examples=300)
@given(sample=samples(max_size=25), cells=grids)
def test_the_interval_holds_the_value_on_the_raw_rows_many_times(row, options, sample, cells):
    check_interval(row, options, sample, cells)


@every(programs=True)
@settings(max_examples=20)
@given(sample=samples(max_size=12), cells=grids)
def test_the_interval_holds_the_value_of_a_linear_program(row, options, sample, cells):
    check_interval(row, options, sample, cells)


@pytest.mark.parametrize(("row", "options"), TRIALS, ids=names)
@settings(max_examples=10)
@given(sample=samples(max_size=12))
def test_one_prediction_a_cell_is_measured_exactly(row, options, sample):
    distinct = np.unique(sample.p)
    gap = np.diff(distinct).min() if len(distinct) > 1 else 1.0
    assume(gap > 2**-29)
    sketch = Sketch.from_arrays(sample.y, sample.p, sample_weight=sample.w, cells=2**30)
    assert sketch.forecasts().exact
    try:
        raw = cb.measure(sample.forecasts, row.name, **options)
    except TooFewRecordsError:
        assume(False)
    # the weight of non-events is a difference: where nearly all weight has outcome 1 it has few digits
    assume(not row.needs_both_outcomes or sample.forecasts.base_rate < 0.999)
    found = sketch.measure(row.name, **options)
    assert found.exact == raw.exact
    # a kernel error near 0 is the root of a rounded square, so it knows half as many digits
    few_digits = row.function is cb.kernel_calibration_error or row.needs_both_outcomes
    rounding = 1e-6 if few_digits else 1e-11 * max(1.0, abs(raw.value))
    assert found.upper - found.lower <= raw.upper - raw.lower + rounding
    assert found.lower <= raw.upper
    assert found.upper >= raw.lower
    assert found.value == pytest.approx(raw.value, abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("name", [row.name for row in cb.measures().values() if not row.certified])
def test_a_measure_without_a_certificate_says_so(name):
    rng = np.random.default_rng(0)
    sketch = Sketch.from_arrays(rng.random(200) < 0.5, rng.random(200), cells=10)
    with pytest.raises(NoCertificateError, match=f"'{name}' has no certificate on a sketch"):
        sketch.measure(name)
    with pytest.raises(NoCertificateError, match="has no certificate on a sketch"):
        cb.measures()[name].function(sketch.forecasts())


UNCERTIFIED = [
    ("binned", {"debiased": True, "norm": 2}),
    ("binned", {"add_width": True}),
    ("kernel", {"kernel": lambda u, v: np.exp(-np.abs(u - v))}),
    ("kernel-squared", {"kernel": lambda u, v: np.minimum(u, v)}),
]


@pytest.mark.parametrize(("name", "options"), UNCERTIFIED)
def test_an_option_without_a_certificate_says_so_whichever_way_it_is_called(name, options):
    sketch = Sketch.from_arrays([0, 1, 1], [0.11, 0.12, 0.9], cells=10)
    row = cb.measures()[name]
    with pytest.raises(NoCertificateError, match="has no certificate on a sketch; got"):
        sketch.measure(name, **options)
    with pytest.raises(NoCertificateError, match="has no certificate on a sketch; got"):
        row.function(sketch.forecasts(), **row.options, **options)


@pytest.mark.parametrize(("row", "options"), TRIALS, ids=names)
def test_a_function_of_a_sketch_returns_the_value_of_the_certificate(row, options):
    rng = np.random.default_rng(1)
    sketch = Sketch.from_arrays(rng.random(60) < 0.4, rng.random(60), cells=10)
    value = row.function(sketch.forecasts(), **row.options, **options)
    assert value == sketch.measure(row.name, **options).value


def test_an_exact_sketch_holds_the_raw_value_in_spite_of_rounding():
    rng = np.random.default_rng(8)
    p = rng.integers(1, 10, 5_000) / 10
    y, w = rng.random(5_000) < p**1.1, rng.random(5_000)
    parts = [Sketch.from_arrays(y[k::7], p[k::7], sample_weight=w[k::7]) for k in range(7)]
    raw = cb.Forecasts(y, p, sample_weight=w)
    for row in cb.measures().values():  # those without a certificate, too: each cell has one prediction
        found = sum(parts).measure(row.name)
        assert found.lower <= cb.measure(raw, row.name).upper, row.name
        assert found.upper >= cb.measure(raw, row.name).lower, row.name
        assert found.exact == cb.measure(raw, row.name).exact


def continuous(n=100_000):
    rng = np.random.default_rng(5)
    p = rng.random(n)
    return rng.random(n) < p**1.2, p


def test_default_certificates_on_continuous_data_are_narrow():
    y, p = continuous()
    sketch, raw = Sketch.from_arrays(y, p), cb.Forecasts(y, p)
    widest = {"smooth": 2e-5, "kuiper": 5e-5, "ks": 5e-5, "atb": 1e-5, "l1-atb": 2e-5, "kernel": 5e-5}
    for name, width in {**widest, "brier": 1e-9, "in-the-large": 1e-9, "log-loss": 1e-6}.items():
        found = sketch.measure(name)
        assert found.lower <= cb.measure(raw, name).value <= found.upper
        assert found.upper - found.lower < width, name


def test_bins_on_edges_of_cells_are_exact_but_for_rounding():
    y, p = continuous()
    sketch = Sketch.from_arrays(y, p, cells=60_000)
    for bins in (10, 15, 20, 100):
        found = sketch.measure("binned", bins=bins)
        assert found.upper - found.lower < 1e-9
        assert found.value == pytest.approx(cb.binned_calibration_error(y, p, bins=bins), abs=1e-12)


def test_finer_cells_prove_more():
    y, p = continuous()
    widths = [
        (m := Sketch.from_arrays(y, p, cells=k).measure("smooth")).upper - m.lower for k in (16, 256, 4096)
    ]
    assert widths[0] > 10 * widths[1] > 100 * widths[2] > 0
