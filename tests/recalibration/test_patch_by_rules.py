"""Findings of an audit or a search, handed to the repair as rules and applied to new rows."""

from __future__ import annotations

import json
import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from calibrant import audit, load_recalibration, recalibrate, search_groups
from calibrant.errors import CalibrantError
from calibrant.groups.rules import InRange, IsIn, MaskIs, Rule, rule_from_list, rule_to_list
from calibrant.recalibration.result import RecalibrationWarning


def people(seed: int, n: int = 3000) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Predictions that are too low for the old of region R2 alone."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"region": rng.choice(["R0", "R1", "R2"], n), "age": rng.integers(18, 90, n)})
    p = rng.beta(2, 3, n)
    off = 1.5 * ((frame["region"] == "R2") & (frame["age"] >= 60)).to_numpy()
    return (rng.random(n) < expit(logit(p) + off)).astype(int), p, frame


def gap(y: np.ndarray, q: np.ndarray, inside: np.ndarray) -> float:
    return float(abs(np.mean(y[inside] - q[inside])))


def test_findings_of_a_search_are_repaired_in_new_rows(tmp_path):
    y, p, frame = people(0)
    found = search_groups(y, p, frame, seed=1, draws=99)
    made = recalibrate(y, p, method="patch", covariates=frame, groups=found, seed=1)
    listed = {one["rule"] for one in made.details["patches"]}
    assert listed
    assert listed <= {finding.rule for finding in found.findings}
    new_y, new_p, new = people(7)
    inside = ((new["region"] == "R2") & (new["age"] >= 60)).to_numpy()
    q = made.predict(new_p, new)
    assert gap(new_y, q, inside) < gap(new_y, new_p, inside) / 2
    made.with_assessment("not asked for").save(tmp_path / "map.json")
    stored = json.loads((tmp_path / "map.json").read_text())
    assert {group["rule"] for group in stored["map"]["groups"]} == {str(one.rule) for one in found.findings}
    np.testing.assert_array_equal(load_recalibration(tmp_path / "map.json").predict(new_p, new), q)


def test_only_members_of_patched_rules_differ_from_the_start():
    y, p, frame = people(1)
    rule = Rule([IsIn("region", ("R2",)), InRange("age", 60, None)])
    made = recalibrate(y, p, method="patch", covariates=frame, groups=[rule], seed=1)
    moved = np.abs(made.predict(p, frame) - made.map.start.predict(p)) > 1e-9
    np.testing.assert_array_equal(moved | rule.members(frame), rule.members(frame))
    assert moved.any()


@pytest.mark.parametrize("pick", [lambda a: a, lambda a: a.groups[:4], lambda a: [g.rule for g in a.groups]])
def test_an_audit_its_groups_and_their_rules_say_the_same(pick):
    y, p, frame = people(2)
    found = audit(y, p, groups=frame[["region"]], seed=0, draws=99)
    made = recalibrate(y, p, method="patch", covariates=frame, groups=pick(found), seed=0)
    assert made.details["patches"][0]["rule"] == "region = R2"


def test_a_mask_is_a_column_of_new_rows():
    y, p, frame = people(3)
    old = ((frame["region"] == "R2") & (frame["age"] >= 60)).to_numpy()
    found = audit(y, p, groups={"frail": old}, seed=0, draws=99)
    made = recalibrate(y, p, method="patch", covariates={"frail": old}, groups=found, seed=0)
    q = made.predict(p, {"frail": old})
    assert gap(y, q, old) < gap(y, p, old) / 2
    with pytest.raises(CalibrantError, match="frail"):
        made.predict(p, frame)


def test_unseen_categories_and_gaps_are_counted_aloud():
    y, p, frame = people(4)
    made = recalibrate(y, p, method="patch", covariates=frame, groups=Rule([IsIn("region", ("R2",))]), seed=0)
    new = frame[:50].assign(region=["R9"] * 3 + [None] * 2 + ["R2"] * 45)
    with pytest.warns(RecalibrationWarning) as said:
        made.predict(p[:50], new)
    text = " ".join(str(one.message) for one in said)
    assert "not seen in the fit, in 3 rows" in text
    assert "missing in 2 rows" in text


@pytest.mark.parametrize("container", [list, dict, pd.DataFrame])
def test_row_order_and_the_order_of_rules_do_not_matter(container):
    y, p, frame = people(5, 1200)
    rules = [Rule([IsIn("region", (one,))]) for one in ("R0", "R1", "R2")]
    order = np.random.default_rng(0).permutation(1200)
    columns = {name: frame[name].to_numpy()[order] for name in frame}
    columns = {name: list(c) for name, c in columns.items()} if container is list else container(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = recalibrate(y, p, method="patch", covariates=frame, groups=rules, seed=3)
        two = recalibrate(
            y[order], p[order], method="patch", covariates=columns, groups=rules[::-1] + rules, seed=3
        )
    np.testing.assert_allclose(one.predict(p, frame), two.predict(p, frame), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"groups": [Rule(), "region = R2"]},
            "must be rules that can be applied to rows; got 'region",
        ),
        ({"groups": [Rule([IsIn("where", ("R2",))])]}, "where"),
        ({"groups": [Rule([InRange("region", 3.0, None)])]}, "'region' must hold numbers as in the rule"),
        ({"groups": Rule(), "method": "hierarchical"}, "groups may be rules for patches only"),
        ({"groups": Rule(), "covariates": None}, "rules need covariates"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(options, message):
    y, p, frame = people(6, 200)
    with pytest.raises(CalibrantError, match=message):
        recalibrate(y, p, **{"method": "patch", "covariates": frame, "seed": 0, **options})


@pytest.mark.parametrize(
    "rule",
    [
        Rule(),
        Rule([IsIn("a", ("x", 3, 2.5, True), missing=True, negated=True, mixed=True)]),
        Rule([InRange("a", None, 0.1, missing=True, gaps=True), MaskIs("m")]),
        Rule([InRange("a", "low", None, categories=("low", "high"))]),
        Rule([InRange("a", np.datetime64("2020-01-01"), np.datetime64("2021-05-01T10:00"))]),
        Rule([IsIn("a", (date(2020, 1, 1), timedelta(days=2)))]),
    ],
)
def test_rules_survive_json(rule):
    again = rule_from_list(json.loads(json.dumps(rule_to_list(rule))))
    assert str(again) == str(rule) or "days" in str(rule)
    values = {"a": ["x", "y", None], "b": [0.05, None, 4.0], "c": ["low", "mid", None]}
    values["d"] = np.array(["2020-06-01", "2022-06-01", "NaT"], dtype="datetime64[s]")
    for column in values.values():
        try:
            expected = rule.members({"a": column, "m": [True, False, True]}).tolist()
        except CalibrantError:
            continue
        assert again.members({"a": column, "m": [True, False, True]}).tolist() == expected


@pytest.mark.parametrize("bad", [{}, {"kind": "x"}, {"kind": "mask"}, {"kind": "one of", "column": "a"}, 3])
def test_what_is_no_condition_is_refused(bad):
    with pytest.raises(CalibrantError, match="a condition of a rule must be"):
        rule_from_list([bad])


def test_a_patch_of_everyone_is_read_back(tmp_path):
    y, p, frame = people(2)
    old = Rule([IsIn("region", ("R2",)), InRange("age", 60, None)])
    made = recalibrate(y, p, method="patch", covariates=frame, groups=[Rule(), old], seed=1)
    made.with_assessment("not asked for").save(tmp_path / "map.json")
    back = load_recalibration(tmp_path / "map.json")
    np.testing.assert_array_equal(back.predict(p, frame), made.predict(p, frame))
