"""The view of all distances: the theorems it prints hold for the numbers it prints."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from samples import samples

import calibrant as cb


@settings(max_examples=60)
@given(sample=samples(max_size=15))
def test_every_printed_theorem_holds(sample):
    found = cb.distances(sample.forecasts)
    low = {row.measurement.name: row.measurement.lower - 1e-9 for row in found.related}
    high = {row.measurement.name: row.measurement.upper + 1e-9 for row in found.related}
    root = np.sqrt(high["lower-distance"])
    chains = {
        "lower <= dCE": low["lower-distance"] <= found.upper,
        "dCE <= upper <= 4 sqrt(lower)": found.lower - 1e-9 <= high["upper-distance"]
        and low["upper-distance"] <= 4 * root,
        "upper <= intCE <= 4 sqrt(lower)": low["upper-distance"] <= high["interval"]
        and low["interval"] <= 4 * root,
        "lower / 2 <= smCE <= 2 lower": low["lower-distance"] / 2 <= high["smooth"]
        and low["smooth"] <= 2 * high["lower-distance"],
        "(2/3) smCE <= l1-ATB <= 3 lower": 2 / 3 * low["smooth"] <= high["l1-atb"]
        and low["l1-atb"] <= 3 * high["lower-distance"],
        "smCE / 3 <= kCE <= sqrt(lower)": low["smooth"] / 3 <= high["kernel"] and low["kernel"] <= root,
    }
    assert [row.theorem for row in found.related] == list(chains)
    assert all(chains.values()), chains


def test_reads_well_and_goes_into_json():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**1.2
    found = cb.distances(y, p)
    assert found.lower <= found.upper
    text = repr(found)
    assert text.startswith("dCE, the distance to calibration, lies in [0.")
    assert text.count("\n") == len(found.related) == 6
    assert json.loads(json.dumps(found.to_dict()))["related"][3]["name"] == "smooth"
    assert found["kernel"].value == cb.kernel_calibration_error(y, p)
    with pytest.raises(cb.CalibrantError, match="did you mean 'smooth'"):
        found["smoth"]


@pytest.mark.parametrize("frame", [dict, "pandas"])
def test_evaluate_takes_the_points_as_a_column(frame):
    columns = {"y": [0, 1, 1, 1, 0, 0], "p": [0.4, 0.4, 0.4, 0.6, 0.6, 0.6], "x": list("aabcdd")}
    table = pytest.importorskip("pandas").DataFrame(columns) if frame == "pandas" else columns
    found = cb.evaluate(table, outcome="y", prediction="p", ids="x", groups=["x"], draws=9, seed=1)
    alone = cb.distance_to_calibration(columns["y"], columns["p"], columns["x"])
    assert found.distances.over_points.value == pytest.approx(alone, abs=1e-12)
    assert set(found.distances.over_points.details["points"]) == set("abcd")
    assert found.to_dict()["distances"]["related"][0]["name"] == "distance"
    without = cb.evaluate(columns["y"], columns["p"], draws=9, seed=1)
    assert without.distances.over_points is None
    with pytest.raises(cb.CalibrantError, match="ids"):
        cb.evaluate(columns["y"], columns["p"], ids=columns["x"][:3], draws=9, seed=1)
    for ids, words in ((list("aaabbc"), "same for all records"), (["a", None, *"bcde"], "row 1")):
        with pytest.raises(cb.CalibrantError, match=words):
            cb.evaluate([1, *columns["y"][1:]], [0.9, *columns["p"][1:]], ids=ids, draws=9, seed=1)
