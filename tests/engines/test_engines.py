"""The same rows give the same sketch on every engine, really run; bad rows are counted alike."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from calibrant import Sketch, audit, measures, recalibrate
from calibrant.errors import InvalidInputError, UnknownNameError

pytestmark = [
    # engines' own notices about themselves, which say nothing about this library
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CELLS = 1000
BY = ("country", "old", "level")
MAPS = ("beta", "spline", "isotonic", "venn-abers")


def data(n=3000):
    rng = np.random.default_rng(11)
    p = np.concatenate([rng.beta(0.5, 2, n - 6), [0.0, 0.0, 1.0, 1.0, 1e-300, 1 - 2**-53]])
    y = (rng.random(n) < p).astype(int)
    w = 10.0 ** rng.uniform(-5, 5, n)
    country = np.array(["de", "fr", "it's"])[rng.integers(0, 3, n)]
    return {"p": p.tolist(), "y": y.tolist(), "w": w.tolist(), "country": country.tolist()}


def same(found, expected):
    assert (found.cells, found.contents.labels) == (expected.cells, expected.contents.labels)
    a, b = found.contents.table, expected.contents.table
    for name in ("keys", "counts", "low", "high"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    np.testing.assert_allclose(a.sums, b.sums, rtol=1e-9, atol=0)


@pytest.mark.parametrize("weight", [None, "w"])
def test_every_engine_gives_the_same_sketch(engine, weight):
    rows = data()
    found = Sketch.from_frame(engine(rows), outcome="y", prediction="p", weight=weight, cells=CELLS)
    expected = Sketch.from_arrays(
        rows["y"], rows["p"], sample_weight=rows["w"] if weight else None, cells=CELLS
    )
    same(found, expected)


def test_every_engine_gives_the_same_audit_and_recalibration(engine):
    rows = data()
    rows["old"] = [v < 0.2 for v in rows["w"]]
    rows["level"] = (np.arange(len(rows["p"])) % 4).tolist()

    def answers(frame):
        sketch = Sketch.from_frame(frame, outcome="y", prediction="p", by=list(BY), cells=CELLS)
        return audit(sketch, seed=1, depth=3), [recalibrate(sketch, method=m, seed=1) for m in MAPS]

    found, fitted = answers(engine(rows))
    expected, known = answers(pytest.importorskip("pyarrow").table(rows))
    assert [g.rule for g in found.groups] == [g.rule for g in expected.groups]
    for name in ("metric", "lower", "upper", "pvalue", "sigma"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    for mine, other in zip(found.groups, expected.groups, strict=True):
        assert mine.upper == pytest.approx(other.upper, rel=1e-9)
        assert mine.pvalue == pytest.approx(other.pvalue, abs=1e-9)
    grid = np.linspace(0, 1, 11)
    for mine, other in zip(fitted, known, strict=True):
        np.testing.assert_allclose(mine.predict(grid), other.predict(grid), rtol=1e-9, atol=1e-12)
    raw = audit(rows["y"], rows["p"], groups={k: rows[k] for k in BY}, draws=0, depth=3)
    assert found.lower <= raw.metric <= found.upper


@functools.cache
def measured_by_numpy(cells):
    rows = data()
    return measured(Sketch.from_arrays(rows["y"], rows["p"], sample_weight=rows["w"], cells=cells))


def measured(sketch):
    found = {
        row.name: sketch.measure(row.name, **row.law_options) for row in measures().values() if row.certified
    }
    return {name: (value.value, value.lower, value.upper) for name, value in found.items()}


def test_every_engine_gives_the_same_certified_measures(engine):
    names = {"outcome": "y", "prediction": "p", "weight": "w"}
    found = measured(Sketch.from_frame(engine(data()), **names, cells=32))
    assert found == {
        name: pytest.approx(value, rel=1e-9, abs=1e-9) for name, value in measured_by_numpy(32).items()
    }


def test_every_engine_gives_the_same_groups(engine):
    rows = data()
    found = Sketch.from_frame(
        engine(rows), outcome="y", prediction="p", weight="w", by="country", cells=CELLS
    )
    assert list(found.groups) == ["de", "fr", "it's"]
    for name, sketch in found.groups.items():
        mine = np.array(rows["country"]) == name
        y, p, w = (np.array(rows[column])[mine] for column in "ypw")
        same(sketch, Sketch.from_arrays(y, p, sample_weight=w, cells=CELLS))


def test_labels_may_be_truth_values_and_outcomes_fractions(engine):
    rows = data()
    expected = Sketch.from_arrays(rows["y"], rows["p"], cells=CELLS)
    truth = {**rows, "y": [bool(y) for y in rows["y"]]}
    same(Sketch.from_frame(engine(truth), outcome="y", prediction="p", cells=CELLS), expected)
    half = {**rows, "y": [y / 2 for y in rows["y"]]}
    found = Sketch.from_frame(engine(half), outcome="y", prediction="p", cells=CELLS)
    same(found, Sketch.from_arrays(half["y"], rows["p"], cells=CELLS))
    assert not found.forecasts().binary


BAD = {
    "p": [0.2, None, math.nan, 1.7, 0.3, 0.4, 0.5, 0.6, 0.7, math.inf],
    "y": [0.0, 1.0, 1.0, 1.0, None, 2.0, 1.0, 1.0, 1.0, 1.0],
    "w": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None, -1.0, 0.0, 1.0],
}


def test_bad_rows_are_counted_in_the_same_pass(engine):
    found = Sketch.from_frame(
        engine(BAD), outcome="y", prediction="p", weight="w", missing="drop", invalid="drop"
    )
    assert dict(found.rejects) == {
        "weight is 0": 1,
        "prediction is missing": 2,
        "outcome is missing": 1,
        "weight is missing": 1,
        "prediction outside [0, 1]": 2,
        "outcome outside [0, 1]": 1,
        "weight negative or infinite": 1,
    }
    assert (found.n, found.dropped) == (1, 8)
    assert found.forecasts().values.tolist() == [0.2]


def test_bad_rows_are_refused_in_words(engine):
    def sketch(rows, **options):
        return Sketch.from_frame(engine(rows), outcome="y", prediction="p", weight="w", **options)

    with pytest.raises(InvalidInputError, match=r"column 'p' must not be missing; got 2 rows"):
        sketch(BAD)
    with pytest.raises(InvalidInputError, match=r"column 'p' must lie in \[0, 1\]; got values from .*2 rows"):
        sketch(BAD, missing="drop")
    good = {"p": [0.1, 0.2, 0.3], "y": [0.0, 1.0, 1.0], "w": [1.0, 1.0, 1.0]}
    with pytest.raises(
        InvalidInputError, match=r"'y' must lie in \[0, 1\]; got values from -1 to 1 \(2 rows"
    ):
        sketch({**good, "y": [-1.0, 1.0, -1.0]})
    with pytest.raises(InvalidInputError, match="'w' must be finite and not negative"):
        sketch({**good, "w": [-1.0, 1.0, 1.0]})
    with pytest.raises(UnknownNameError, match="column must be one of"):
        sketch({"p": [0.1], "y": [1.0]})
    with pytest.raises(InvalidInputError, match="column 'y' must be numeric; got dtype"):
        sketch({**good, "y": ["no", "yes", "yes"]})


def test_what_is_no_frame_is_refused():
    with pytest.raises(InvalidInputError, match="frame must be a data frame; got list"):
        Sketch.from_frame([1, 2], outcome="y", prediction="p")
    with pytest.raises(UnknownNameError, match="missing must be one of error, drop"):
        Sketch.from_frame(None, outcome="y", prediction="p", missing="keep")
