"""A frame and the names of its columns say what arrays say, in every function and for every kind of frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cb
from calibrant.frames import resolve_inputs

RNG = np.random.default_rng(3)
N = 400
P = np.round(RNG.uniform(0.05, 0.95, N), 2)
Y = (RNG.random(N) < P**1.3).astype(int)
W = RNG.integers(1, 4, N).astype(float)
COLUMNS = {"y": Y, "p": P, "w": W, "q": np.sqrt(P), "region": np.array(["north", "south"])[Y[::-1]]}


def relation(columns):
    import duckdb

    table = pa.table(columns)
    return duckdb.connect().from_arrow(table)


KINDS = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "shuffled index": lambda c: pd.DataFrame(c, index=RNG.permutation(N)),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": relation,
}
NAMED = {"outcome": "y", "prediction": "p", "weight": "w"}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_say_what_arrays_say(kind):
    frame = KINDS[kind](COLUMNS)
    found = cb.calibration_test(frame, **NAMED, measure="kuiper", draws=99, seed=1)
    assert found == cb.calibration_test(Y, P, sample_weight=W, measure="kuiper", draws=99, seed=1)
    groups = {"region": COLUMNS["region"]}
    named = cb.audit(frame, **NAMED, groups=["region"], draws=19, seed=1)
    given = cb.audit(Y, P, sample_weight=W, groups=groups, draws=19, seed=1)
    assert named.to_dict() == given.to_dict()
    evaluation = cb.evaluate(frame, **NAMED, groups="region", draws=19, seed=1, measures=["smooth"])
    assert evaluation.audit.worst.rule == given.worst.rule
    models = cb.compare(frame, outcome="y", prediction=["p", "q"], weight="w", draws=99, seed=1)
    assert models == cb.compare(Y, {"p": P, "q": COLUMNS["q"]}, sample_weight=W, draws=99, seed=1)
    fitted = cb.recalibrate(frame, **NAMED, method="platt")
    assert fitted.predict([0.3])[0] == cb.recalibrate(Y, P, sample_weight=W, method="platt").predict([0.3])[0]
    interval = cb.confidence_interval(frame, **NAMED, measure="brier", draws=99, seed=1)
    assert interval == cb.confidence_interval(Y, P, sample_weight=W, measure="brier", draws=99, seed=1)


def test_further_functions_take_frames_too():
    frame = pd.DataFrame(COLUMNS)
    named = {"outcome": "y", "prediction": "p"}
    assert cb.decompose(frame, **named) == cb.decompose(Y, P)
    assert cb.cox_calibration(frame, **named) == cb.cox_calibration(Y, P)
    assert cb.net_benefit(frame, **named).model.tolist() == cb.net_benefit(Y, P).model.tolist()


def test_columns_beside_the_predictions_can_be_named():
    frame = pd.DataFrame({**COLUMNS, "patient": np.arange(N) // 4})
    named = cb.recalibrate(
        frame, outcome="y", prediction="p", method="platt", clusters="patient", covariates=["region"], seed=2
    )
    given = cb.recalibrate(
        Y, P, method="platt", clusters=frame["patient"], covariates=frame[["region"]], seed=2
    )
    assert named.assessment.to_dict() == given.assessment.to_dict()


def test_several_columns_of_predictions_are_several_classes():
    table = RNG.dirichlet([1, 2, 3], 300)
    y = np.array([RNG.choice(3, p=row) for row in table])
    frame = pd.DataFrame({"y": y, "a": table[:, 0], "b": table[:, 1], "c": table[:, 2]})
    found = cb.recalibrate(frame, outcome="y", prediction=["a", "b", "c"], method="temperature")
    given = cb.recalibrate(y, table, method="temperature")
    assert np.array_equal(found.predict(table), given.predict(table))


@pytest.mark.parametrize(
    "function", [cb.evaluate, cb.calibration_test, cb.recalibrate, cb.confidence_interval]
)
def test_errors_name_the_columns(function):
    frame = pd.DataFrame({"won": [0, 1, 1], "chance": [0.2, 1.5, 0.4], "w": [1.0, -1.0, 1.0]})
    with pytest.raises(cb.InvalidInputError, match=r"column 'chance' must lie in \[0, 1\]; got 1.5 in row 1"):
        function(frame, outcome="won", prediction="chance")
    with pytest.raises(cb.InvalidInputError, match=r"column .w. must not be negative; got -1\.0"):
        function(frame.assign(chance=0.4), outcome="won", prediction="chance", weight="w")
    with pytest.raises(cb.UnknownNameError, match="did you mean 'chance'"):
        function(frame, outcome="won", prediction="chanse")
    with pytest.raises(cb.InvalidInputError, match="outcome must name a column of the frame; got None"):
        function(frame, prediction="chance")
    with pytest.raises(cb.InvalidInputError, match="outcome and prediction must name columns of the frame"):
        function(frame)
    with pytest.raises(cb.InvalidInputError, match="arrays must not be combined with column names"):
        function([0, 1], [0.2, 0.3], outcome="won", prediction="chance")
    with pytest.raises(cb.InvalidInputError, match="must be different columns"):
        function(frame, outcome="won", prediction="won")


def test_compare_names_its_columns():
    frame = pd.DataFrame({"won": [0, 1, 1], "a": [0.2, 0.5, 0.4], "b": [0.2, 0.5, 4.0]})
    with pytest.raises(cb.InvalidInputError, match=r"column 'b' must lie in \[0, 1\]; got 4.0 in row 2"):
        cb.compare(frame, outcome="won", prediction=["a", "b"])
    with pytest.raises(cb.InvalidInputError, match="compare needs two models or more; got 1"):
        cb.compare(frame, outcome="won", prediction="a")


def test_names_of_groups_become_their_columns():
    frame = {"won": [0, 1], "chance": [0.2, 0.7], "team": ["a", "b"]}
    given = resolve_inputs(frame, outcome="won", prediction="chance", groups=["team"])
    assert given.extra == {"groups": {"team": ["a", "b"]}}


def test_names_that_are_no_columns_of_predictions_are_refused():
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 0.3]})
    for wrong in (3, [], ["p", 3]):
        with pytest.raises(cb.InvalidInputError, match="prediction must name a column"):
            resolve_inputs(frame, outcome="y", prediction=wrong)
    with pytest.raises(cb.InvalidInputError, match="frame must be a data frame; got int"):
        resolve_inputs(3, outcome="y", prediction="p")
    with pytest.raises(cb.InvalidInputError, match="columns of different names"):
        resolve_inputs(pd.concat([frame, frame], axis=1), outcome="y", prediction="p")


@pytest.mark.parametrize("series", [pd.Series, lambda values, name: pl.Series(name, values)])
def test_groups_can_be_a_named_series(series):
    given = cb.audit(Y, P, groups={"region": COLUMNS["region"]}, draws=19, seed=1)
    found = cb.audit(Y, P, groups=series(COLUMNS["region"], name="region"), draws=19, seed=1)
    assert found.to_dict() == given.to_dict()
    assert cb.evaluate(Y, P, groups=series(COLUMNS["region"], name="region"), draws=19, seed=1).audit
    with pytest.raises(cb.InvalidInputError, match="groups must have a name; got a series without one"):
        cb.audit(Y, P, groups=series(COLUMNS["region"], name=None), draws=19, seed=1)


def test_a_mapping_of_arrays_is_sketched():
    found = cb.Sketch.from_frame(COLUMNS, outcome="y", prediction="p", weight="w", by="region")
    frame = pd.DataFrame(COLUMNS)
    given = cb.Sketch.from_frame(frame, outcome="y", prediction="p", weight="w", by="region")
    assert found.measure("smooth") is not None
    assert found.groups["north"].measure("kuiper").value == given.groups["north"].measure("kuiper").value
    with pytest.raises(cb.InvalidInputError, match="column 'y' and column 'p' must have the same length"):
        cb.Sketch.from_frame({"y": [0, 1], "p": [0.2]}, outcome="y", prediction="p")
    with pytest.raises(cb.UnknownNameError, match="column must be one of y, p; got 'q'"):
        cb.Sketch.from_frame({"y": [0, 1], "p": [0.2, 0.3]}, outcome="y", prediction="q")


def test_an_xarray_dataset_is_one_row_per_point():
    xarray = pytest.importorskip("xarray")
    lead = xarray.Dataset(
        {"rain": (("day", "place"), Y.reshape(100, 4)), "chance": (("place", "day"), P.reshape(100, 4).T)},
        coords={"place": ["a", "b", "c", "d"]},
    )
    found = cb.Sketch.from_frame(lead, outcome="rain", prediction="chance", by="place")
    given = cb.Sketch.from_arrays(Y, P)
    assert found.measure("kuiper").value == pytest.approx(given.measure("kuiper").value, abs=1e-12)
    assert sorted(found.groups) == ["a", "b", "c", "d"]
    test = cb.calibration_test(lead, outcome="rain", prediction="chance", seed=1, draws=99)
    assert test.statistic == pytest.approx(cb.calibration_test(Y, P, seed=1, draws=99).statistic)
    with pytest.raises(cb.UnknownNameError, match="did you mean 'chance'"):
        cb.Sketch.from_frame(lead, outcome="rain", prediction="chanse")


def test_a_wrong_name_is_refused_where_columns_are_numbered():
    frame = pd.DataFrame({0: [0, 1], 1: [0.2, 0.4]})
    with pytest.raises(cb.UnknownNameError, match="must be one of 0, 1; got 'y'"):
        cb.evaluate(frame, outcome="y", prediction="p")
