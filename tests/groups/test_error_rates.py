"""Error rates by group at a threshold: definitions, weights, odd groups."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.groups import error_rates


def test_rates_are_those_of_counting():
    rng = np.random.default_rng(0)
    p, g = rng.random(500), rng.choice(["a", "b", "c"], 500)
    y = (rng.random(500) < p).astype(int)
    found = error_rates(y, p, {"g": g}, threshold=0.4)
    for group in found.groups:
        mine = g == group.name
        assert group.n == mine.sum()
        assert group.selected.value == pytest.approx((p[mine] >= 0.4).mean())
        assert group.false_positive.value == pytest.approx((p[mine & (y == 0)] >= 0.4).mean())
        assert group.false_negative.value == pytest.approx((p[mine & (y == 1)] < 0.4).mean())
        for rate in (group.selected, group.false_positive, group.false_negative):
            assert rate.lower <= rate.value <= rate.upper
    assert len(found.sheet().lines) == 3
    frame = found.to_frame()
    assert list(frame["group"]) == ["a", "b", "c"]
    assert frame["false_negative"].tolist() == [group.false_negative.value for group in found.groups]
    assert frame["selected_lower"].tolist() == [group.selected.lower for group in found.groups]
    assert "cannot both be equal" in str(found)


def test_whole_weights_count_rows_and_no_events_have_no_rate():
    y, p, g = [0, 0, 1, 0], [0.2, 0.7, 0.9, 0.8], ["a", "a", "a", "b"]
    weighted = error_rates(y, p, g, sample_weight=[1, 3, 1, 1])
    repeated = error_rates([0, 0, 0, 0, 1, 0], [0.2, 0.7, 0.7, 0.7, 0.9, 0.8], ["a"] * 5 + ["b"])
    for one, other in zip(weighted.groups, repeated.groups, strict=True):
        assert one.selected.value == pytest.approx(other.selected.value)
        assert one.false_positive.value == pytest.approx(other.false_positive.value)
    assert np.isnan(weighted.groups[1].false_negative.value)
    assert str(weighted.groups[1].false_negative) == "–"


def test_thresholds_and_fractions_are_checked():
    with pytest.raises(cb.CalibrantError, match="threshold"):
        error_rates([0, 1], [0.2, 0.4], ["a", "b"], threshold=1.5)
    with pytest.raises(cb.CalibrantError, match="0 or 1"):
        error_rates([0, 0.5], [0.2, 0.4], ["a", "b"])


def test_without_events_no_group_misses_the_most():
    assert "no group has an event that could be missed" in str(
        error_rates([0, 0, 0], [0.2, 0.7, 0.6], ["a", "b", "b"])
    )


def test_several_columns_are_refused_by_name():
    with pytest.raises(cb.InvalidInputError, match="groups must be one column; got job, region"):
        cb.groups.error_rates([0, 1], [0.2, 0.7], {"job": ["a", "b"], "region": ["n", "s"]})
