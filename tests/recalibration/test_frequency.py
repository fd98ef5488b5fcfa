"""Frequency weights count records: a row of weight 3 equals three rows, in folds and guarantees too."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from recalibration.laws import GRID, METHODS, fit


def counted(n=600, tenths=10):
    """A table of counts, and the same records one by one."""
    rng = np.random.default_rng(0)
    p = rng.integers(0, tenths + 1, n) / tenths
    y = (rng.random(n) < 0.2 + 0.5 * p).astype(int)
    table, counts = np.unique(np.column_stack((y, p)), axis=0, return_counts=True)
    return table[:, 0], table[:, 1], counts.astype(float)


def written_out(y, p, counts):
    times = counts.astype(int)
    return np.repeat(y, times), np.repeat(p, times)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_table_of_counts_is_judged_as_its_records(method):
    y, p, counts = counted()
    table = fit(y, p, sample_weight=counts, weights="frequency", method=method)
    records = fit(*written_out(y, p, counts), weights="frequency", method=method)
    assert table.fit.n == records.fit.n == 600
    assert table.predict(GRID) == pytest.approx(records.predict(GRID), abs=1e-9)
    assert table.guarantee == records.guarantee
    assert table.assessment.n == 600
    assert table.assessment.gain == pytest.approx(records.assessment.gain, abs=1e-9)
    assert table.assessment.verdict == records.assessment.verdict


def test_counted_records_are_not_held_out_a_level_at_a_time():
    """Without its level, the table of a map knows nothing of it: dealing rows had isotonic maps harm."""
    y, p, counts = counted()
    counted_gain = fit(y, p, sample_weight=counts, weights="frequency", method="isotonic").assessment.gain
    gain = fit(*written_out(y, p, counts), method="isotonic").assessment.gain
    assert gain > 0.05
    assert counted_gain == pytest.approx(gain, rel=0.2)


def test_few_rows_of_many_records_are_enough():
    y, p = np.array([0, 1, 0, 1]), np.array([0.2, 0.2, 0.8, 0.8])
    table = fit(y, p, sample_weight=[90, 30, 50, 50], weights="frequency")
    assert table.fit.n == 220
    assert table.assessment.verdict == "helps"


def test_fractions_of_counted_records_are_dealt_one_by_one():
    y, p = np.array([0.25, 0.5, 0.75]), np.array([0.2, 0.5, 0.8])
    table = fit(y, p, sample_weight=[40, 20, 40], weights="frequency", method="platt")
    records = fit(*written_out(y, p, np.array([40, 20, 40])), weights="frequency", method="platt")
    assert table.fit.n == records.fit.n == 100
    assert table.assessment.gain == records.assessment.gain


@pytest.mark.parametrize("extra", ["clusters", "covariates"])
def test_columns_are_repeated_with_their_rows(extra):
    y, p, counts = counted()
    column = np.arange(len(y)) % 7
    times = counts.astype(int)
    method = "hierarchical" if extra == "covariates" else "platt"

    def with_column(values):
        return {extra: {"column": values.astype(str)} if extra == "covariates" else values}

    table = fit(y, p, sample_weight=counts, weights="frequency", method=method, **with_column(column))
    records = fit(*written_out(y, p, counts), method=method, **with_column(np.repeat(column, times)))
    assert table.fit.n == records.fit.n == 600
    assert table.assessment.gain == pytest.approx(records.assessment.gain, abs=1e-9)


def test_a_sketch_of_counts_holds_their_records():
    y, p, counts = counted(tenths=8)
    sketch = cb.Sketch()
    sketch.update(y, p, sample_weight=counts)
    assert cb.recalibrate(sketch, weights="frequency", method="isotonic", seed=0).assessment.n == 600


def test_several_classes_count_records_too():
    rng = np.random.default_rng(1)
    tables = rng.dirichlet(np.ones(3), 20)
    labels, counts = rng.integers(0, 3, 20), rng.integers(1, 9, 20)
    table = fit(labels, tables, sample_weight=counts, weights="frequency", method="vector")
    records = fit(np.repeat(labels, counts), np.repeat(tables, counts, axis=0), method="vector")
    assert table.fit.n == records.fit.n == counts.sum()
    assert table.predict(tables) == pytest.approx(records.predict(tables), abs=1e-9)
    assert table.assessment.gain == pytest.approx(records.assessment.gain, abs=1e-9)


def test_parts_of_records_stay_weights():
    y, p, counts = counted()
    table = fit(y, p, sample_weight=counts / 4, weights="frequency", method="platt")
    assert table.fit.n == len(y)
    assert table.fit.effective_n == pytest.approx(150)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_of_sampling_weights_neither_overflow_nor_vanish(scale):
    y, p, counts = counted()
    clusters = np.arange(len(y)) % 7
    plain = fit(y, p, sample_weight=counts, clusters=clusters, method="platt")
    scaled = fit(y, p, sample_weight=counts * scale, clusters=clusters, method="platt")
    assert scaled.predict(GRID) == pytest.approx(plain.predict(GRID), abs=1e-9)
    tables = np.random.default_rng(1).dirichlet(np.ones(3), len(y))
    one = fit(y, tables, sample_weight=counts, method="vector")
    other = fit(y, tables, sample_weight=counts * scale, method="vector")
    assert other.predict(tables) == pytest.approx(one.predict(tables), abs=1e-9)
