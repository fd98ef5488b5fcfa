"""One of anything is written in the singular: results of one row, one group, one draw."""

from __future__ import annotations

import re

import pytest

import calibrant as cb
from calibrant.formatting import pluralize

ONE = re.compile(
    r"(?<![\d.,%])\b1 (rows|records|groups|draws|thresholds|outcomes|resamples|classes|limits|rules|models)"
)


def results():
    y, p = [0, 1, 1], [0.2, 0.6, 0.9]
    yield cb.evaluate([1], [0.7], draws=19, seed=1)
    yield cb.evaluate([1, 0], [0.7, 0.2], sample_weight=[1, 2], draws=1, seed=1)
    yield cb.net_benefits([1], [0.7], thresholds=[0.5])
    yield cb.net_benefit([1], [0.7], thresholds=[0.5])
    yield cb.calibration_test([1], [0.7], draws=1, seed=1)
    yield cb.audit(y * 9, p * 9, groups={"g": ["a"] * 13 + ["b"] * 14}, draws=1, seed=1, min_size=14)
    yield cb.compare(y, {"a": p, "b": p[::-1]}, draws=1, seed=1)
    yield cb.compare_groups([0, 1], [0.5, 0.5], ["a", "b"], draws=1, seed=1)
    monitor = cb.Monitor()
    monitor.update([1], [0.7])
    yield monitor
    yield monitor.reading()


@pytest.mark.parametrize("result", list(results()), ids=lambda result: type(result).__name__)
def test_one_of_anything_is_singular(result):
    for text in (str(result), repr(result)):
        assert not ONE.search(text), text


def test_counts_have_their_noun():
    assert pluralize(1, "row has", "rows have") == "1 row has"
    assert pluralize(2, "class", "classes") == "2 classes"
    assert pluralize(10_000, "record") == "10,000 records"
