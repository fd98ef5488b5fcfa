"""The gate on groups of a sketch that hold no record."""

from __future__ import annotations

from calibrant.evaluation.gate import judge_sketch_groups
from calibrant.sketch.sketch import Sketch


def test_groups_without_a_record_decide_nothing():
    rows = {"y": [0, 1], "p": [0.2, 0.7], "w": [0.0, 0.0], "g": ["a", "b"]}
    sketch = Sketch.from_frame(rows, outcome="y", prediction="p", weight="w", by="g")
    for groups in (sketch.groups, {}):
        finding = judge_sketch_groups(groups, 4.0)
        assert finding.outcome == "unclear"
        assert finding.value is None
        assert "no group of the sketch holds a record" in finding.reason
