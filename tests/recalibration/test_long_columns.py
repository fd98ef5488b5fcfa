"""Maps of very long columns say what `predict` says."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.kernels.map_columns import cells_before, linear_column
from calibrant.recalibration.maps import long_columns
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.maps.pairs import PairMap
from calibrant.recalibration.maps.piecewise import PiecewiseMap, SplineMap, bounded_pieces
from calibrant.recalibration.recalibrate import recalibrate

METHODS = (
    "shift", "platt", "temperature", "beta", "spline", "isotonic", "centered-isotonic", "bounded-slope",
    "venn-abers", "histogram",
)  # fmt: skip
EXACT = {"isotonic", "centered-isotonic", "bounded-slope", "venn-abers", "histogram"}


def records(kind, seed=0, n=600):
    rng = np.random.default_rng(seed)
    p = {
        "plain": rng.random(n),
        "tenths": rng.random(n).round(1),
        "ends": rng.choice([0.0, 1e-300, 0.5, 1.0], n),
        "crowded": 0.5 + rng.integers(0, 30, n) * 2.0**-53,
        "one value": np.full(n, 0.3),
    }[kind]
    return (rng.random(n) < 0.1 + 0.7 * p**1.3).astype(float), p


def points(p):
    known = np.unique(p)
    around = [np.nextafter(known, 0.0), known, np.nextafter(known, 1.0)]
    return np.concatenate([*around, np.linspace(0, 1, 501), [5e-324, 1e-17]])


def filled(fitted, p):
    out = np.full(len(p), np.nan)
    long_columns.column_mapper(fitted, len(p))(p.copy(), out)
    return out


@pytest.mark.filterwarnings("ignore:.*:calibrant.RecalibrationWarning")
@pytest.mark.parametrize("kind", ["plain", "tenths", "ends", "crowded", "one value"])
@pytest.mark.parametrize("method", METHODS)
def test_long_columns_are_what_predict_returns(method, kind, monkeypatch):
    monkeypatch.setattr(long_columns, "LONG", 0)
    y, p = records(kind)
    options = {"bins": 5} if method == "histogram" else {}
    fitted, at = recalibrate(y, p, method=method, seed=0, **options).map, points(p)
    found = filled(fitted, at)
    if method in EXACT:
        np.testing.assert_array_equal(found, fitted.predict(at))
    np.testing.assert_allclose(found, fitted.predict(at), rtol=0, atol=2e-15)


@pytest.mark.parametrize("cuts", [[0.3], [0.1, 0.1 + 2**-56, 0.9], [0.0, 5e-324, 1.0], [0.0, 1e-310]])
def test_cuts_at_any_distance(cuts, monkeypatch):
    monkeypatch.setattr(long_columns, "LONG", 0)
    cuts = np.array(cuts)
    rising = np.linspace(0.1, 0.9, len(cuts))
    gaps = np.linspace(0.1, 0.8, len(cuts) + 1)
    at = points(cuts)
    maps: list[Map] = [PiecewiseMap(cuts, rising), PairMap(cuts, gaps, gaps + 0.05, "log")]
    for one in maps:
        np.testing.assert_array_equal(filled(one, at), one.predict(at))


@pytest.mark.parametrize("kind", [PiecewiseMap, SplineMap, PairMap])
def test_cuts_that_crowd_are_not_tried_one_by_one(kind, monkeypatch):
    """Knots of rare events lie next to 0: rows tried thousands of them, ten times slower than `predict`."""
    pytest.importorskip("numba")
    monkeypatch.setattr(long_columns, "LONG", 0)
    monkeypatch.setattr(long_columns, "_predicted", lambda fitted: fitted.predict)
    rates = np.linspace(0.1, 0.9, 2001)

    def made(cuts: np.ndarray) -> Map:
        if kind is PairMap:
            return PairMap(cuts, rates[: len(cuts) + 1], rates[: len(cuts) + 1], "log")
        return PiecewiseMap(cuts, rates[:-1]) if kind is PiecewiseMap else SplineMap(cuts, rates[:-1], 1e-7)

    crowded, even = made(np.geomspace(1e-12, 1.0, 2000)), made(np.linspace(0.0, 1.0, 2000))
    assert long_columns.column_mapper(crowded, 1) == crowded.predict
    assert long_columns.column_mapper(even, 1) != even.predict


def test_plain_kernels_say_the_same():
    """Where numba is absent `predict` answers; the kernel is tried without it all the same."""
    y, p = records("plain")
    fitted = recalibrate(y, p, method="isotonic", seed=0).map
    at = points(p)[:300]
    out = np.empty(len(at))
    pieces = bounded_pieces(fitted.values, fitted.rates)
    linear_column.plain(at, fitted.values, *cells_before(fitted.values), pieces, out)
    np.testing.assert_array_equal(out, fitted.predict(at))
