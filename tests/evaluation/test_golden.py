"""The JSON of an evaluation keeps its keys and their meaning within a schema version (golden files)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import calibrant as cb
from calibrant.evaluation.evaluate import SCHEMA_VERSION
from calibrant.report.rendering import script_json

GOLDEN = Path(__file__).parent / "golden"
FREE = {
    "sentence",
    "next_step",
    "meaning",
    "words",
    "title",
    "note",
    "citation",
    "theorem",
    "source",
}  # texts
FREE |= {"calibrant_version", "recalibration_absent"}
DRAWN = {
    "pvalue",
    "by_chance",
    "low",
    "high",
    "noise",
    "unseen",
    "expected",
    "pvalue_method",
    "interval_method",
}
DRAWN |= {"recalibration", "log_pvalue", "pvalue_is_bound", "significant"}  # better methods may move them


def evaluation():
    """Return what the golden file was made from: 240 records, three groups, no random numbers."""
    p = [round(0.05 + 0.9 * (37 * k % 101) / 101, 4) for k in range(240)]
    y = [int((61 * k + 17) % 97 / 97 < q**1.5) for k, q in enumerate(p)]
    region = [("north", "south", "west")[k % 3] for k in range(240)]
    return cb.evaluate(y, p, groups={"region": region}, seed=1, draws=99)


def same_shape(old, new, path=""):
    """Hold every key of the old file against the new one; what data decide is equal to rounding."""
    name = path.rsplit(".", 1)[-1]
    if name in FREE:
        assert isinstance(new, str) or new is None, path
    elif isinstance(old, dict):
        assert set(old) <= set(new), f"{path}: {set(old) - set(new)} went away"
        for key in old:
            same_shape(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), path
        for k, (one, other) in enumerate(zip(old, new, strict=True)):
            same_shape(one, other, f"{path}[{k}].{name}")
    elif isinstance(old, bool) or old is None or isinstance(old, str):
        assert old == new or DRAWN & set(path.split(".")), path
    elif path == ".groups.draws":
        assert new >= old, path  # more where a verdict is close
    elif DRAWN & set(path.split(".")):
        assert isinstance(new, int | float) or new is None, path
    else:
        assert new == pytest.approx(old, rel=1e-7, abs=1e-9), path


def test_there_is_a_golden_file_of_every_version():
    versions = [json.loads(path.read_text())["schema_version"] for path in sorted(GOLDEN.glob("*.json"))]
    assert versions == list(range(1, SCHEMA_VERSION + 1))


def test_the_current_version_says_what_its_golden_file_says():
    old = json.loads((GOLDEN / f"evaluation-{SCHEMA_VERSION}.json").read_text(encoding="utf-8"))
    new = json.loads(script_json(evaluation().to_dict()))
    same_shape(old, new)


@pytest.mark.parametrize(
    ("path", "value"), [("verdict", None), ("facts.records", 7), ("measures", []), ("groups.groups", [])]
)
def test_a_key_that_goes_away_or_changes_is_noticed(path, value):
    old = json.loads((GOLDEN / f"evaluation-{SCHEMA_VERSION}.json").read_text(encoding="utf-8"))
    new = json.loads(json.dumps(old))
    *outer, last = path.split(".")
    inside = new
    for key in outer:
        inside = inside[key]
    inside[last] = value
    with pytest.raises((AssertionError, TypeError)):
        same_shape(old, new)
