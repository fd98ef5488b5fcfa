"""Truthfulness of totals over classes and thresholds by enumeration; the top label is not truthful."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.metrics.multiclass import class_low_degree_error
from calibrant.truthfulness.gap import class_truthfulness

TRUTHS = [[[0.5, 0.3, 0.2]], [[0.4, 0.35, 0.25]], [[0.8, 0.1, 0.1]], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]]


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_no_lie_lowers_the_total_of_a_truthful_measure(truth):
    steps = 10 if len(truth) == 1 else 2
    assert class_truthfulness(truth, measure="atb", steps=steps).gap == 0
    assert class_truthfulness(truth, measure="brier", steps=steps).gap == 0


def test_the_top_label_rewards_an_unlikely_class():
    found = class_truthfulness([[0.5, 0.3, 0.2]], score="top")
    assert found.gap == pytest.approx(0.05)
    assert np.argmax(found.report[0]) == 2
    assert "gains at least" in str(found)
    assert class_truthfulness([[0.5, 0.3, 0.2]], measure="smooth").gap > 0


def test_the_expected_total_splits_into_truth_and_report():
    """E[total(r, y)] = total(r, p) + sum p (1 - p) / n^2 over classes: the reason why no lie gains."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        truth, report = rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(3), 2).round(1)
        report[:, 2] = 1 - report[:, 0] - report[:, 1]
        report = report.clip(0, 1)
        expected = 0.0
        for labels in itertools.product(range(3), repeat=2):
            chance = truth[0, labels[0]] * truth[1, labels[1]]
            parts = (cb.averaged_two_bin_error(np.equal(labels, k), report[:, k]) for k in range(3))
            expected += chance * sum(parts)
        parts = (cb.averaged_two_bin_error(truth[:, k], report[:, k]) for k in range(3))
        assert expected == pytest.approx(sum(parts) + (truth * (1 - truth)).sum() / 4, abs=1e-12)


def test_no_lie_about_a_distribution_lowers_the_integrated_error():
    """Outcomes 0, 1, 2, 3; thresholds fixed at 0, 1, 2: reports are distribution functions on a grid."""
    truth, places = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.4, 0.4]]), np.arange(3)
    grid = [c for c in itertools.product(np.linspace(0, 1, 5), repeat=3) if c[0] <= c[1] <= c[2]]
    outcomes = list(itertools.product(range(4), repeat=2))
    chances = [truth[0, a] * truth[1, b] for a, b in outcomes]

    def expected(report):
        values = [
            sum(cb.averaged_two_bin_error(np.array(y) <= z, report[:, z]) for z in places) for y in outcomes
        ]
        return float(np.dot(chances, values))

    honest = expected(np.cumsum(truth, axis=1)[:, :3].clip(0, 1))
    lies = itertools.product(grid[::4], repeat=2)
    assert all(expected(np.array(lie)) >= honest - 1e-12 for lie in lies)


def test_the_table_marks_what_may_rank():
    rng = np.random.default_rng(1)
    table = rng.dirichlet(np.ones(3), 300)
    labels = [rng.choice(3, p=row) for row in table]
    found = cb.class_table(labels, table, measure="atb", draws=59, seed=0)
    assert found.truthful
    assert found.total == pytest.approx(3 * found.mean)
    assert found.total == pytest.approx(sum(one.value for one in found.classes))
    assert "may rank models" in str(found)
    plain = cb.class_table(labels, table, measure="smooth", draws=59, seed=0)
    assert not plain.truthful
    assert "may rank" not in str(plain)


PREDICTIONS, WEIGHTS = st.sampled_from([0.0, 0.25, 0.3, 1.0]), st.sampled_from([1e-3, 1.0, 7.0])


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 1), PREDICTIONS, WEIGHTS), min_size=1, max_size=8))
def test_low_degree_of_two_classes_is_that_of_one(rows):
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    table = np.column_stack([1 - p, p])
    for degree in (0, 1):
        both = class_low_degree_error(y, table, degree=degree, sample_weight=w)
        assert both == pytest.approx(cb.low_degree_error(y, p, degree=degree, sample_weight=w), abs=1e-9)
    higher = [class_low_degree_error(y, table, degree=d, sample_weight=w) for d in (0, 1, 2, 3)]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(higher))
    for degree, value in enumerate(higher[:3]):
        assert value <= cb.low_degree_error(y, p, degree=degree, sample_weight=w) + 1e-9


def test_low_degree_sees_what_no_class_shows_alone():
    rng = np.random.default_rng(2)
    table = rng.dirichlet(np.ones(3), 4000)
    moved = np.column_stack([table[:, 1], table[:, 2], table[:, 0]])  # the wrong column for each class
    right = [rng.choice(3, p=row) for row in table]
    assert class_low_degree_error(right, table) < 0.03
    assert class_low_degree_error(right, moved) > 0.1
    with pytest.raises(cb.InvalidInputError, match="degree"):
        class_low_degree_error(right, table, degree=-1)
    with pytest.raises(cb.InvalidInputError, match="sample_weight and probabilities must have the same"):
        class_low_degree_error(right, table, sample_weight=[1.0])
    with pytest.raises(cb.InvalidInputError, match="sample_weight must have a positive total"):
        class_low_degree_error([0, None], table[:2], sample_weight=[0, 1], missing="drop")
