"""The boundary: what looks plausible and is wrong is refused, or warned about, wherever rows enter."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cb
from calibrant.errors import CalibrantError, InvalidInputError, SwappedArgumentsWarning

Y, P = np.array([0, 1, 1, 0, 1, 0] * 10), np.array([0.2, 0.6, 0.7, 0.3, 0.4, 0.5] * 10)

ENTRANCES = {
    "a measure": lambda y, p, w=None: cb.kuiper_error(y, p, sample_weight=w),
    "Forecasts": lambda y, p, w=None: cb.Forecasts(y, p, sample_weight=w),
    "evaluate": lambda y, p, w=None: cb.evaluate(y, p, sample_weight=w, draws=9, seed=1),
    "calibration_test": lambda y, p, w=None: cb.calibration_test(y, p, sample_weight=w, draws=9),
    "confidence_interval": lambda y, p, w=None: cb.confidence_interval(y, p, sample_weight=w, draws=9),
    "tolerance_test": lambda y, p, w=None: cb.tolerance_test(y, p, sample_weight=w, accept=0.1, reject=0.2),
    "compare": lambda y, p, w=None: cb.compare(y, p, p, sample_weight=w, draws=9),
    "audit": lambda y, p, w=None: cb.audit(y, p, groups={"a": P > 0.4}, sample_weight=w, draws=0),
    "search_groups": lambda y, p, w=None: cb.search_groups(y, p, {"a": P}, sample_weight=w, draws=1),
    "a sketch": lambda y, p, w=None: cb.Sketch.from_arrays(y, p, sample_weight=w),
}
entrance = pytest.mark.parametrize("enter", ENTRANCES.values(), ids=ENTRANCES)


@entrance
def test_the_same_index_labels_in_another_order_are_refused(enter):
    order = np.random.default_rng(0).permutation(len(Y))
    y, p = pd.Series(Y), pd.Series(P)
    with pytest.raises(InvalidInputError, match=r"y_true and .* must have their index labels .*Hint: align"):
        enter(y, p.iloc[order])
    enter(y, p)
    enter(y.set_axis(order), p.set_axis(order))
    enter(y, p.iloc[order].to_numpy())  # an array has no labels: rows pair by position
    enter(y.set_axis(np.arange(len(Y)) + 7), p)  # other labels: by position, as in scikit-learn


def test_covariates_masks_and_models_must_be_aligned_too():
    order = np.random.default_rng(0).permutation(len(Y))
    y, p = pd.Series(Y), pd.Series(P)
    shuffled = pd.DataFrame({"g": P}).iloc[order]
    for groups in (shuffled, {"g": shuffled["g"]}, {"g": shuffled["g"] > 0.3}):
        with pytest.raises(InvalidInputError, match="index labels in the same order"):
            cb.audit(y, p, groups=groups, draws=0)
    with pytest.raises(InvalidInputError, match="index labels in the same order"):
        cb.search_groups(y, p, shuffled, draws=1)
    with pytest.raises(InvalidInputError, match="index labels in the same order"):
        cb.compare(Y, p, p.iloc[order], draws=9)


@entrance
def test_what_is_masked_is_missing(enter):
    masked = np.ma.array(P, mask=np.arange(len(P)) == 3)
    with pytest.raises(CalibrantError, match=r"must not be missing; got nan in row 3|missing values"):
        enter(Y, masked)
    with pytest.raises(CalibrantError, match="missing"):
        enter(np.ma.array(Y, mask=np.arange(len(P)) == 3), P)


def test_masked_columns_of_groups_are_missing_values():
    hidden = np.arange(len(Y)) < 6
    for values in (P, np.where(P > 0.4, "x", "y"), P > 0.4, Y):
        found = cb.audit(Y, P, groups={"g": np.ma.array(values, mask=hidden)}, min_size=1, draws=0)
        (group,) = (g for g in found.groups if str(g.rule) == "g is missing")
        assert group.size == 6
    found = cb.audit(Y, P, covariates=np.ma.array(np.c_[P, Y], mask=np.c_[hidden, ~hidden]), draws=0, seed=1)
    assert any("missing" in str(g.rule) for g in found.groups)


@pytest.mark.parametrize("reduce", [cb.top_label, cb.class_wise])
def test_masked_probabilities_and_labels_are_refused(reduce):
    table = np.c_[P, 1 - P]
    for args in (
        (Y, np.ma.array(table, mask=np.arange(2 * len(P)).reshape(-1, 2) == 5)),
        (np.ma.array(Y, mask=np.arange(len(Y)) == 2), table),
    ):
        with pytest.raises(InvalidInputError, match="row 2"):
            reduce(*args)


@entrance
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([10**400] + [0] * 59, "must fit into a float64; got a whole number of 401 digits in row 0"),
        ([[1], [1, 2]] * 30, "rows of different lengths|one-dimensional"),
        ([2**70] + [0] * 59, r"must lie in \[0, 1\]"),
    ],
)
def test_huge_numbers_and_ragged_lists_are_refused_in_words(enter, bad, message):
    with pytest.raises(InvalidInputError, match=f"y_true.*({message})"):
        enter(bad, P)


@entrance
def test_swapped_arguments_are_warned_about(enter):
    if enter in (ENTRANCES["audit"], ENTRANCES["search_groups"]):  # these refuse fractions
        with pytest.raises(InvalidInputError, match="must be 0 or 1"):
            enter(P, Y)
        return
    with pytest.warns(SwappedArgumentsWarning, match="may be swapped") as caught, suppress(CalibrantError):
        enter(P, Y)  # may be refused afterwards: fractions cannot be simulated
    assert caught[0].filename == __file__


def test_nobody_is_warned_of_what_is_right():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", SwappedArgumentsWarning)
        cb.Forecasts(Y, Y)
        cb.Forecasts(P, P)
        cb.evaluate(Y, np.round(P), draws=9, seed=1)  # its preview judges rates by predictions of 0 and 1


@pytest.mark.parametrize("frame", [pd.DataFrame({"p": P}), pl.DataFrame({"p": P}), {"p": P}])
def test_one_column_cannot_be_outcome_and_prediction(frame):
    with pytest.raises(InvalidInputError, match="must be different columns; got 'p' for both"):
        cb.Forecasts.from_frame(frame, outcome="p", prediction="p")


def test_forecasts_reach_their_rows_and_notice_changes():
    w = np.linspace(1, 2, len(Y))
    for forecasts in (cb.Forecasts(Y, P), cb.Forecasts(Y, P, sample_weight=w), cb.Forecasts(P, P)):
        records = forecasts.records
        assert np.array_equal(P[records.rows], records.prediction)
        assert np.array_equal(np.repeat(forecasts.values, forecasts.counts), records.prediction)
    y, p = Y.copy(), P.copy()
    kept = cb.Forecasts(y, p)
    order = np.random.default_rng(0).permutation(len(y))
    y[:], p[:] = y[order], p[order]  # the same distribution, other rows
    with pytest.raises(InvalidInputError, match="must not change"):
        kept.records  # noqa: B018
    with pytest.raises(InvalidInputError, match="rows are not known"):
        cb.Sketch.from_arrays(Y, P).forecasts().records  # noqa: B018


def test_groups_of_forecasts_are_those_of_their_rows():
    w = np.linspace(1, 2, len(Y))
    gap = np.where(np.arange(len(Y)) == 4, np.nan, P)
    for kept in (cb.Forecasts(Y, P), cb.Forecasts(Y, gap, sample_weight=w, missing="drop")):
        weights = None if kept.record_weights is None else w
        direct = cb.audit(
            Y, gap if weights is not None else P, groups={"g": Y + 2}, sample_weight=weights,
            missing="drop", draws=19, seed=1,
        )  # fmt: skip
        assert cb.audit(kept, groups={"g": Y + 2}, draws=19, seed=1).to_dict() == direct.to_dict()
        found = cb.evaluate(kept, groups={"g": Y + 2}, draws=19, seed=1)
        whole = found["in-the-large"]  # one interval of the same difference in one evaluation
        alike = [
            replace(group, interval=(whole.low, whole.high)) if group is direct.everyone else group
            for group in direct.groups
        ]
        assert found.audit.to_dict() == replace(direct, groups=tuple(alike)).to_dict()


@pytest.mark.parametrize("part", [[0.2], (0.2,), np.array([0.2]), [0.2, 0.3]], ids=repr)
def test_lists_in_a_column_are_refused_in_words(part):
    column = np.empty(2, dtype=object)
    column[:] = [part, 0.3]
    with pytest.raises(
        cb.InvalidInputError, match=r"must have one number per row; got .* in row 0\. Hint: make"
    ):
        cb.Forecasts([1, 0], column)
