"""Models with outcomes of their own: scores against slow twins, and honest p-values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.inference.compare_outcomes import _calibration, area_under_risk


def slow_calibration(y, p, codes, keep):
    """Average (1 - |p_i - p_j|) r_i r_j over the pairs in different clusters."""
    terms = [
        (1 - abs(p[i] - p[j])) * (y[i] - p[i]) * (y[j] - p[j])
        for i in range(len(y))
        for j in range(len(y))
        if keep[i] and keep[j] and codes[i] != codes[j]
    ]
    return np.mean(terms)


def slow_area(y, p):
    """Average the error rate of the k most confident, ties replaced by their mean."""
    order = np.argsort(-p, kind="stable")
    errors = (1 - y)[order]
    for value in set(p):
        tie = p[order] == value
        errors[tie] = errors[tie].mean()
    return np.mean(np.cumsum(errors) / np.arange(1, len(y) + 1))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 0.5]),
            st.floats(0, 1) | st.sampled_from([0.0, 0.3, 1.0]),
            st.integers(0, 4),
        ),
        min_size=6,
        max_size=14,
    )
)
def test_scores_as_slow_twins(rows):
    y, p, labels = map(np.array, zip(*rows, strict=True))
    codes = np.unique(labels, return_inverse=True)[1]
    if codes.max() < 2:
        return
    found = _calibration(y, p, codes)
    assert found.value == pytest.approx(slow_calibration(y, p, codes, codes >= 0), abs=1e-12)
    count = int(codes.max()) + 1
    without = np.array([slow_calibration(y, p, codes, codes != k) for k in range(count)])
    assert found.influence == pytest.approx((count - 1) * (without.mean() - without) / count, abs=1e-9)
    assert area_under_risk(y, p)[0] == pytest.approx(slow_area(y, p), abs=1e-12)


def test_area_moves_as_its_influence_says():
    rng = np.random.default_rng(0)
    y, p = (rng.random(400) < 0.7) * 1.0, rng.random(400)
    _, influence = area_under_risk(y, p)
    without = np.array([area_under_risk(np.delete(y, k), np.delete(p, k))[0] for k in range(400)])
    moved = 399 * (without.mean() - without)
    assert np.corrcoef(moved, influence)[0, 1] > 0.995
    assert influence.std() == pytest.approx(moved.std(), rel=0.05)


def two_models(n=600, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 1, n)
    logits = {"a": 0.2 + shared + rng.normal(0, 1, n), "b": 1.2 + shared + rng.normal(0, 1, n)}
    outcomes = {name: (rng.random(n) < 1 / (1 + np.exp(-x))) * 1 for name, x in logits.items()}
    stretch = {"a": 1.0, "b": 3.0}
    return outcomes, {name: 1 / (1 + np.exp(-stretch[name] * x)) for name, x in logits.items()}


def test_sentences_table_and_json():
    outcomes, predictions = two_models()
    found = cb.compare(outcomes=outcomes, predictions=predictions)
    assert found.scores["accuracy"] == {name: pytest.approx(y.mean()) for name, y in outcomes.items()}
    for name, y in outcomes.items():
        assert found.scores["brier"][name] == pytest.approx(cb.brier_score(y, predictions[name]))
    assert "b is right more often than a" in str(found)
    assert "a is better calibrated than b" in str(found)
    assert len(found.table().lines) == 4
    assert json.loads(json.dumps(found.to_dict()))["n"] == 600
    assert "<table" in found._repr_html_()
    assert list(found.to_frame()["score"]) == ["accuracy", "calibration", "brier", "aurc"]
    assert [pair.adjusted >= pair.pvalue for pairs in found.differences.values() for pair in pairs] == [
        True
    ] * 4


def test_rows_and_models_in_another_order():
    outcomes, predictions = two_models(80)
    order = np.random.default_rng(1).permutation(80)
    found = cb.compare(outcomes=outcomes, predictions=predictions)
    again = cb.compare(
        outcomes={name: y[order] for name, y in outcomes.items()},
        predictions={name: p[order] for name, p in predictions.items()},
    )
    for score, pairs in found.differences.items():
        assert pairs[0].pvalue == pytest.approx(again.differences[score][0].pvalue)


def test_clusters_widen_intervals():
    outcomes, predictions = two_models(100)
    alone = cb.compare(outcomes=outcomes, predictions=predictions)
    tripled = cb.compare(
        outcomes={name: np.repeat(y, 3) for name, y in outcomes.items()},
        predictions={name: np.repeat(p, 3) for name, p in predictions.items()},
        clusters=np.repeat(np.arange(100), 3),
    )
    assert (tripled.n, tripled.clusters) == (300, 100)
    for score in ("accuracy", "brier"):
        one, other = alone.differences[score][0], tripled.differences[score][0]
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper))


def test_the_same_model_twice():
    outcomes, predictions = two_models(50)
    found = cb.compare(
        outcomes={"a": outcomes["a"], "b": outcomes["a"]},
        predictions={"a": predictions["a"], "b": predictions["a"]},
    )
    assert {pair.pvalue for pairs in found.differences.values() for pair in pairs} == {1.0}
    assert str(found).startswith("No difference in accuracy, calibration, Brier score or risk-coverage")


def test_bad_input_is_refused():
    outcomes, predictions = two_models(20)
    both = {"outcomes": outcomes, "predictions": predictions}
    for wrong, said in (
        ({"outcomes": outcomes["a"], "predictions": predictions}, "outcomes must map"),
        ({"outcomes": outcomes, "predictions": None}, "predictions must map"),
        (
            {"outcomes": outcomes, "predictions": {"a": predictions["a"], "c": predictions["b"]}},
            "same models",
        ),
        (
            {"outcomes": outcomes, "predictions": predictions, "clusters": [1, 2]},
            "clusters .* must have one value per row",
        ),
        ({**both, "names": ["x", "y"]}, "names does not apply"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            cb.compare(**wrong)
    shorter = {**predictions, "b": predictions["b"][:10]}
    with pytest.raises(InvalidInputError):
        cb.compare(outcomes=outcomes, predictions=shorter)
    few = {name: y[:5] for name, y in outcomes.items()}, {name: p[:5] for name, p in predictions.items()}
    with pytest.raises(TooFewRecordsError, match="10 complete rows"):
        cb.compare(outcomes=few[0], predictions=few[1])
    holes = {**predictions, "b": np.where(np.arange(20) == 3, np.nan, predictions["b"])}
    with pytest.raises(InvalidInputError, match="predictions of 'b'"):
        cb.compare(outcomes=outcomes, predictions=holes)
    assert cb.compare(outcomes=outcomes, predictions=holes, missing="drop").dropped == 1
    labels = [None, *range(19)]
    with pytest.raises(InvalidInputError, match="clusters must not be missing"):
        cb.compare(outcomes=outcomes, predictions=predictions, clusters=labels)
    found = cb.compare(outcomes=outcomes, predictions=predictions, clusters=labels, missing="drop")
    assert (found.dropped, found.clusters, found.n) == (1, 19, 19)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "stretch"), [(1, 1.0), (1, 3.0), (10, 1.0), (10, 3.0)])
def test_equal_models_differ_as_often_as_promised(size, stretch):
    """Two exchangeable models, also overconfident and clustered: at most 5% claims."""
    rng, sets, claims = np.random.default_rng(3), 500, 0
    clusters = np.repeat(np.arange(300 // size), size)
    for _ in range(sets):
        shared = rng.normal(0, 1, 300 // size)[clusters] + rng.normal(0, 1, 300)
        logits = {name: 0.5 + shared + rng.normal(0, 1, 300) for name in "ab"}
        outcomes = {name: rng.random(300) < 1 / (1 + np.exp(-x)) for name, x in logits.items()}
        predictions = {name: 1 / (1 + np.exp(-stretch * x)) for name, x in logits.items()}
        claims += bool(cb.compare(outcomes=outcomes, predictions=predictions, clusters=clusters).real)
    assert claims / sets <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)


def test_rounding_is_no_difference():
    y = np.random.default_rng(0).integers(0, 2, 60)
    p = {"a": np.full(60, 0.3), "b": np.full(60, 0.1 + 0.2)}
    found = cb.compare(outcomes={"a": y, "b": y}, predictions=p)
    assert all(pair.pvalue == 1 for pairs in found.differences.values() for pair in pairs)
