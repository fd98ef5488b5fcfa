"""The gate in words: what it prints must not contradict what it decides, and few records decide nothing."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.gate import judge, judge_groups, too_few


def grouped(sizes, seed=1):
    rng = np.random.default_rng(seed)
    labels = np.repeat(list("abcdefgh")[: len(sizes)], sizes)
    p = rng.uniform(0.2, 0.8, len(labels))
    return (rng.random(len(labels)) < p).astype(float), p, {"g": labels}


def gate_on_groups(sizes, limit=3.0, few=""):
    y, p, groups = grouped(sizes)
    return judge_groups(cb.audit(y, p, groups=groups, draws=0, seed=1), limit, few)


def test_few_records_do_not_pass_a_limit_on_groups():
    few = too_few(7, 0.95, None)
    assert few == "7 records are too few to say; at least 20 are needed"
    assert gate_on_groups([4, 3], few=few).outcome == "unclear"
    y, p, groups = grouped([4, 3])
    sketch = cb.Sketch.from_frame({"y": y, "p": p, **groups}, outcome="y", prediction="p", by="g")
    assert judge_groups(cb.audit(sketch, draws=0), 3.0, few).outcome == "unclear"


def test_a_limit_on_groups_of_which_none_could_be_tested_does_not_pass():
    found = gate_on_groups([9, 9, 9])
    assert found.outcome == "unclear"
    assert "no group is large enough to be tested (3 groups too small)" in found.reason


def test_groups_too_small_to_be_tested_are_counted_beside_a_pass():
    found = gate_on_groups([400, 5])
    assert found.outcome == "pass"
    assert found.reason.endswith("1 group was too small to be tested")


def test_a_column_of_one_group_is_everyone_and_passes():
    found = gate_on_groups([400])
    assert (found.outcome, found.reason[:17]) == ("pass", "everyone together")


@pytest.mark.parametrize(("value", "outcome"), [(0.0500003, "fail"), (0.0499997, "pass")])
def test_rounding_never_puts_a_value_on_the_other_side_of_its_limit(value, outcome):
    n = 10_000_000
    forecasts = cb.Forecasts([0.5 + value, 0.5 + value], [0.5, 0.5], sample_weight=[n, n])
    (found,) = judge(forecasts, {"smooth": 0.05}, confidence=0, seed=1)
    assert found.outcome == outcome
    shown = float(found.reason.split(":")[0])
    assert (shown > 0.05) == (outcome == "fail")


def test_an_error_of_a_sketch_has_no_negative_limit():
    y, p, _ = grouped([900])
    sketch = cb.Sketch.from_arrays(y, p, cells=64)
    (found,) = judge(sketch.forecasts(), {"smooth": 0.2}, confidence=0.95, draws=99, seed=1)
    assert found.low == 0
    assert "between 0 and" in found.reason


def test_a_sketch_is_judged_as_its_rows_are():
    rows = {"y": [0, 1] * 60, "p": [0.9, 0.5] * 60, "g": ["a", "b"] * 60, "h": [1, None, 1, 2] * 30}
    for by in (["g"], ["g", "h"]):
        sketch = cb.Sketch.from_frame(rows, outcome="y", prediction="p", by=by)
        found = judge_groups(cb.audit(sketch, draws=0), 1.0)
        of_rows = cb.audit(rows["y"], rows["p"], groups={name: rows[name] for name in by}, draws=0)
        assert found.reason.startswith("worst group 'g = a': z = ")
        assert (found.outcome, found.reason) == ("fail", judge_groups(of_rows, 1.0).reason)
        assert found.low <= of_rows.worst.z <= found.high


def test_a_coarse_sketch_leaves_a_limit_on_groups_undecided():
    y, p, groups = grouped([400, 400])
    rows = {"y": y, "p": p, **groups}
    sketch = cb.Sketch.from_frame(rows, outcome="y", prediction="p", by="g", cells=16)
    z = cb.audit(y, p, groups=groups, draws=0).worst.z
    found = judge_groups(cb.audit(sketch, draws=0), z)
    assert (found.outcome, found.word) == ("unclear", "too little data")
    assert found.low <= z <= found.high
    assert f"the sketch is too coarse for the limit {z:.12g}" in found.reason


def test_a_value_on_its_limit_is_undecided_not_short_of_data():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 100_000)
    y = (rng.random(len(p)) < p - 0.05).astype(float)
    value = abs(float(y.mean() - p.mean()))
    (found,) = judge(cb.Forecasts(y, p), {"in-the-large": round(value, 3)}, confidence=0.95, draws=99, seed=0)
    assert (found.outcome, found.word) == ("unclear", "undecided")
    assert found.reason.startswith("Undecided: the error is 0.0")
    assert found.reason.endswith(f"right at your limit of {round(value, 3)}")


def test_more_is_drawn_where_an_end_of_the_interval_is_close_to_the_limit():
    """A limit at the upper end of the interval with 999 draws: ten times as many move that end, or say so."""
    rng = np.random.default_rng(2)
    p = rng.random(400)
    forecasts = cb.Forecasts(rng.random(400) < p, p)
    first = judge(forecasts, {"smooth": 0.5}, confidence=0.95, seed=0)[0]
    assert first.high is not None
    close = judge(forecasts, {"smooth": first.high}, confidence=0.95, seed=0)[0]
    assert close.high != first.high, "ten times as many draws"
    again = judge(forecasts, {"smooth": close.high}, confidence=0.95, seed=0)[0]
    assert again.outcome == "unclear"
    assert again.undecided
    assert "within simulation error of your limit" in again.reason
