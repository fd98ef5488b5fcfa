"""The sections on groups: ranked by error, and differences in order."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.repair_preview import group_differences
from calibrant.evaluation.report import page

RNG = np.random.default_rng(5)
N = 1200
REGION = np.array(["north", "south", "east"])[RNG.integers(0, 3, N)]
YEAR = RNG.integers(2019, 2023, N)
P = RNG.uniform(0.1, 0.9, N)
Y = (RNG.random(N) < np.clip(P + np.where(REGION == "north", 0.15, 0), 0, 1)).astype(int)


@pytest.fixture(scope="module")
def found():
    return cb.evaluate(Y, P, groups={"region": REGION, "year": YEAR}, seed=1, draws=99, confidence=0.9)


def test_the_page_ranks_groups_and_compares_them_in_order(found):
    html = page(found)
    assert "Do groups differ, and is there a trend?" in html
    assert "Along year" in html
    assert "Worst for north (region): " in html
    assert html.index(f">{found.verdict.worst_group}<") < html.index(">region = south<")


def test_masks_and_sketches_have_no_comparison():
    masks = cb.evaluate(Y, P, groups={"half": np.arange(N) % 2 == 0}, seed=1, draws=19)
    assert group_differences(masks) == ()
    table = {"y": Y, "p": P, "region": REGION}
    sketch = cb.Sketch.from_frame(table, outcome="y", prediction="p", by=["region"])
    assert group_differences(cb.evaluate(sketch, seed=1, draws=19)) == ()
