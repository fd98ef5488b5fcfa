"""Columns of any container are coded alike, and what cannot be coded is refused in words."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calibrant import audit
from calibrant.columns import OrderedValues, code_columns
from calibrant.errors import CalibrantError, UnknownNameError

CONTAINERS = {
    "mapping": lambda values: {"a": values},
    "pandas objects": lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)}),
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "Polars": lambda values: pl.DataFrame({"a": values}),
    "Arrow": lambda values: pl.DataFrame({"a": values}).to_arrow(),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    ("values", "codes", "nominal"),
    [
        ([10, None, 9, 10], [2, 0, 1, 2], False),
        ([Decimal("10.5"), None, Decimal("9"), Decimal("9")], [2, 0, 1, 1], False),
        ([dt.date(2020, 1, 2), None, dt.date(2019, 12, 31), dt.date(2020, 1, 2)], [2, 0, 1, 2], False),
        ([dt.time(10), None, dt.time(9), dt.time(9)], [2, 0, 1, 1], False),
        ([dt.datetime(2020, 1, 2), None, dt.datetime(2019, 1, 3), None], [2, 0, 1, 0], False),
        ([dt.timedelta(10), None, dt.timedelta(9), dt.timedelta(9)], [2, 0, 1, 1], False),
        ([True, None, False, True], [2, 0, 1, 2], True),
        (["b", None, "a", "b"], [2, 0, 1, 2], True),
    ],
)
def test_a_column_is_coded_alike_in_every_container(container, values, codes, nominal):
    (column,) = code_columns(CONTAINERS[container](values), 4, "covariates")
    assert column.codes.tolist() == codes
    assert column.nominal is nominal
    assert column.missing


@pytest.mark.parametrize("values", [[1, "x"], ["x", 1]])
@pytest.mark.parametrize("kind", [object, "category"])
def test_values_of_several_types_are_categories(values, kind):
    (column,) = code_columns(pd.DataFrame({"a": pd.Series(values * 3, dtype=kind)}), 6, "groups")
    assert column.labels == [1, "x"]
    assert column.nominal
    (late,) = code_columns(pd.DataFrame({"a": ["x"] * 200 + [1]}, dtype=object), 201, "groups")
    assert late.labels == [1, "x"]


def test_a_part_of_ordered_values_has_their_order():
    values = OrderedValues.of(["high", "low", None], ["low", "high"])
    assert values[[True, False, True]].order == ("low", "high")


def test_dates_with_and_without_a_time_zone_have_no_order():
    values = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]
    (column,) = code_columns({"a": values}, 2, "covariates")
    assert column.nominal


def test_numbers_may_be_names_of_columns():
    x = np.random.default_rng(0).integers(0, 2, (50, 2))
    columns = code_columns(pd.DataFrame(x), 50, "covariates", nominal="1")
    assert [column.name for column in columns] == ["0", "1"]
    assert [column.nominal for column in columns] == [False, True]
    assert columns[1].codes.tolist() == x[:, 1].tolist()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "columns of different names; got 'a' 2 times"),
        (pl.DataFrame({"a": [[1], [2, 3]]}), "column 'a' must have one value per row; got ndarray"),
        ({"a": [{1}, {2}]}, "column 'a' must have one value per row; got set"),
    ],
)
def test_columns_that_cannot_be_coded_are_refused_with_a_hint(data, message):
    with pytest.raises(CalibrantError, match=message + ".*Hint"):
        code_columns(data, 2, "groups")


def test_names_of_nominal_columns_are_checked_and_one_name_is_no_list_of_letters():
    columns = {"a": [1, 2, 3], "abc": [1, 2, 3]}
    assert [c.nominal for c in code_columns(columns, 3, "covariates", nominal="abc")] == [False, True]
    with pytest.raises(
        UnknownNameError, match=r"nominal must be one of a, abc; got 'abd'\. Hint: did you mean 'abc'"
    ):
        code_columns(columns, 3, "covariates", nominal=["abd"])
    with pytest.raises(CalibrantError, match="nominal must name columns of covariates"):
        audit([0, 1], [0.2, 0.4], groups={"a": [1, 2]}, nominal=["a"])
