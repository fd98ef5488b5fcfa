"""A rule is a value: it reads as words without doubt, and picks the same members in any container."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from people import people

import calibrant as cb
from calibrant.columns import code_columns
from calibrant.errors import CalibrantError
from calibrant.groups.rules import InRange, IsIn, Rule, among, between, label_in_words, rule_to_list, written

UGLY = st.text(st.sampled_from("ab =!<>{},\"'\\\n\t\u2028 andorismissingin()"), max_size=8)


def test_members_of_every_rule_of_an_audit_in_every_container():
    y, p, frame = people(31, 1000)
    frame["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(1000) % 30, unit="D")
    frame["size"] = pd.Categorical(
        np.where(frame["sex"] == "F", "small", "big"), ["small", "big", "huge"], ordered=True
    )
    found = cb.audit(y, p, covariates=frame, subpopulations=300, draws=0, seed=2)
    polars = pl.from_pandas(frame)
    for group in found.groups:
        inside = group.rule.members(frame)
        assert inside.sum() == group.size, group.rule
        assert y[inside].mean() == pytest.approx(group.mean_outcome), group.rule
        for other in (
            polars,
            polars.lazy(),
            polars.to_arrow(),
            {name: polars[name] for name in polars.columns},
        ):
            np.testing.assert_array_equal(group.rule.members(other), inside, err_msg=group.rule)
    assert any("day" in group.rule for group in found.groups)
    assert any("size" in group.rule for group in found.groups)


def test_masks_and_combinations_pick_their_members_too():
    y, p, frame = people(3, 400)
    masks = {"young": (frame["age"] < 30).to_numpy(), "a = b and c": (frame["sex"] == "F").to_numpy()}
    for group in cb.audit(y, p, groups=masks, draws=0).groups:
        expected = masks.get(group.name, np.ones(400, bool))
        np.testing.assert_array_equal(group.rule.members(masks), expected)
    for group in cb.audit(y, p, groups=frame[["sex", "region"]], min_size=1, draws=0).groups:
        assert group.rule.members(frame).sum() == group.size
    worst = cb.search_groups(y, p, frame, min_size=20, draws=9, seed=1).worst
    assert worst.rule.members(frame).any()


@given(UGLY, st.lists(UGLY, min_size=2, max_size=5, unique=True))
def test_names_and_values_of_any_text_are_safe(name, values):
    """Different rules have different texts, on one line, and each picks its own members."""
    column = {name: values}
    (coded,) = code_columns(column, len(values), "covariates")
    rules = [Rule([IsIn(name, (value,), negated=negated)]) for value in values for negated in (True, False)]
    rules += [Rule([among(coded, pair)]) for pair in [(0, 1)] if len(values) > 3]
    assert len(set(rules)) == len(rules)
    for rule in rules:
        assert len(rule.splitlines()) == 1
        assert json.loads(json.dumps(rule)) == str(rule)
        condition = rule.conditions[0]
        expected = [(value in condition.values) != condition.negated for value in values]
        assert rule.members(column).tolist() == expected


def test_a_column_with_a_sign_in_its_name_is_quoted():
    y, p, _ = people(1, 200)
    columns = {"rate = high": np.where(p > 0.4, "c", np.where(p > 0.2, "d", "e"))}
    found = cb.audit(y, p, covariates=columns, subpopulations=20, draws=0, seed=0)
    texts = {str(group.rule) for group in found.groups}
    assert '"rate = high" != c' in texts or '"rate = high" = c' in texts
    assert not any(text.startswith("rate") for text in texts)
    assert written("plain name") == "plain name"
    assert written("rate = high") == '"rate = high"'
    assert written("missing") == '"missing"'


def test_text_beside_numbers_is_told_apart():
    (column,) = code_columns({"a": [1, "1", 2, "x"]}, 4, "groups")
    rules = [Rule([among(column, [k])]) for k in range(4)]
    assert len(set(rules)) == 4
    for rule in rules:
        assert rule.members({"a": [1, "1", 2, "x"]}).sum() == 1


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 5, 9],
        [0.1, 0.25, 0.7, 1e-9],
        [Decimal("1.5"), Decimal("2"), Decimal("3"), Decimal("4")],
        [dt.date(2020, 1, 1), dt.date(2021, 1, 1), dt.date(2022, 1, 1), dt.date(2023, 1, 1)],
        [dt.datetime(2020, 1, 1, k) for k in range(4)],
        [dt.timedelta(k) for k in range(4)],
        [dt.time(k) for k in range(4)],
        [1.5, None, 2.5, 3.5],
    ],
)
def test_every_interval_of_codes_picks_the_rows_it_was_made_of(values):
    frames = [{"a": values}, pd.DataFrame({"a": values}), pl.DataFrame({"a": values})]
    for source in frames:
        (column,) = code_columns(source, 4, "covariates")
        size = len(column.labels)
        for low in range(size):
            for high in range(low + 1, size + 1):
                condition = between(column, low, high)
                rule = Rule([] if condition is None else [condition])
                expected = (column.codes >= low) & (column.codes < high)
                for frame in frames:
                    np.testing.assert_array_equal(rule.members(frame), expected, err_msg=rule)


def test_new_values_fall_where_the_words_say():
    rule = Rule([InRange("age", 43.0, None)])
    assert rule.members({"age": [42, 43.5, None, 1000]}).tolist() == [False, True, False, True]
    assert Rule([IsIn("c", ("a",), negated=True)]).members({"c": ["a", "new", None]}).tolist() == [0, 1, 1]
    assert Rule().members({"c": [1, 2]}).tolist() == [True, True]


def test_frames_that_cannot_be_judged_are_refused():
    rule = Rule([InRange("age", 43.0, None)])
    with pytest.raises(CalibrantError, match=r"column of the rule must .*'age'.*did you mean"):
        rule.members({"ages": [1]})
    with pytest.raises(CalibrantError, match="column 'age' must hold numbers as in the rule; got text"):
        rule.members({"age": ["43"]})
    with pytest.raises(CalibrantError, match="frame must be columns"):
        rule.members(3)


def test_rules_are_values():
    rule = Rule([IsIn("city", ("B",)), InRange("age", None, 43.0, missing=True)])
    assert rule == "city = B and (age < 43 or missing)"
    again = pickle.loads(pickle.dumps(rule))
    assert again == rule
    assert again.conditions == rule.conditions
    assert cb.Rule is Rule


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"age": [50, "x"]}, "must hold numbers as in the rule; got numbers/text"),
        ({"age": [50, object()]}, "must hold numbers as in the rule; got numbers/other values"),
        ({"age": 50}, "column 'age' must be one-dimensional; got 50"),
        ({"city": ["A", "B"], "age": [50]}, "column 'age' and the first column must have the same length"),
    ],
)
def test_new_rows_that_a_rule_cannot_judge_are_refused_clearly(frame, message):
    with pytest.raises(cb.InvalidInputError, match=message):
        Rule([InRange("age", 43.0, None)]).members(frame)


def test_a_rule_is_made_of_conditions():
    for bad in (["age > 3"], 5):
        with pytest.raises(cb.InvalidInputError, match="must be made of conditions"):
            Rule(bad)


@pytest.mark.parametrize("source", ["arrow", "polars", "pandas", "mapping"])
def test_decimals_are_the_same_number_in_every_frame(source):
    """PyArrow's own cast makes 0.30000000000000004 of the decimal 0.3."""
    pa = pytest.importorskip("pyarrow")
    column = [Decimal(k % 11) / 10 for k in range(44)]
    table = pa.table({"dose": column, "y": [0, 1] * 22})
    frames = {
        "arrow": table,
        "polars": pl.from_arrow(table),
        "pandas": table.to_pandas(),
        "mapping": {"dose": column},
    }
    found = cb.audit([0, 1] * 22, [0.5] * 44, groups=frames[source], min_size=1, draws=0)
    three = next(group for group in found.groups if group.rule == "dose = 0.3")
    assert three.size == 4
    assert all(three.rule.members(frame).sum() == 4 for frame in frames.values())
    if source != "mapping":
        sketch = cb.Sketch.from_frame(frames[source], outcome="y", prediction="dose")
        assert sketch.forecasts().values.tolist() == [k / 10 for k in range(11)]


def test_rules_of_many_values_are_judged_in_one_pass():
    """A set of the values for every one of the labels took half a minute here."""
    values = tuple(range(6_000))
    start = time.process_time()
    inside = Rule([IsIn("id", values[::2])]).members({"id": np.arange(6_000)})
    assert time.process_time() - start < 2
    assert inside.tolist() == [k % 2 == 0 for k in values]


def test_moments_are_written_without_zeros_at_their_end():
    assert label_in_words(3) == "3"
    assert label_in_words(np.datetime64("2018-10-16T00:00:00.000000")) == "2018-10-16"
    assert label_in_words(np.datetime64("2018-10-16T08:30:00.500000")) == "2018-10-16 08:30:00.5"


def test_conditions_are_listed_with_their_values():
    assert rule_to_list(Rule([InRange("age", 43.0, None)]))[0]["low"] == 43.0
