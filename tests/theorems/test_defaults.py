"""Defaults are defined once: change any of them, and nulls and certificates follow."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.metrics.certificates import NoCertificateError
from calibrant.sketch.sketch import Sketch

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")

# for every option of a registered measure, another default that it could have had
OTHERS = {
    "bins": [20, 4],
    "strategy": ["quantile", "uniform"],
    "norm": [2, 1],
    "debiased": [False],
    "add_width": [False],
    "root": [True],
    "lipschitz": [3.0, 0.4],
    "kernel": ["gaussian"],
    "bandwidth": [0.2],
    "squared": [True],
    "degree": [1, 2],
    "clip": [0.05],
    "tolerance": [1e-3],
    "alpha": [2.0],
    "max_nodes": [2048],
    "width": ["max"],
    "method": ["surrogate"],
    "score": ["log"],
    "quantile": [0.7],
    "recalibrator": ["isotonic"],
    "folds": [3],
    "seed": [1],
    "normalised": [True],
    "shift": ["average"],
    "ties": ["random"],
    "partition": [lambda v: v > 0.4],
    "midpoints": [True],
    "time_limit": [0.0],
    "targets": [(0.0, 0.5, 1.0)],
}


def defaults(row):
    return row.function._core.__kwdefaults__ or {}


CASES = [
    (row, name, other)
    for row in cb.measures().values()
    for name in defaults(row)
    if name not in row.options
    for other in OTHERS.get(name, [])
    if other != defaults(row)[name]
]


def test_every_option_has_another_default_to_try():
    known = {name for row in cb.measures().values() for name in defaults(row)}
    assert known - set(OTHERS) == set(), "give each of these options another default in OTHERS of this file"


@pytest.mark.parametrize(
    ("row", "name", "other"), CASES, ids=lambda x: getattr(x, "name", getattr(x, "__name__", str(x)))
)
def test_a_changed_default_reaches_the_null_and_the_certificate(monkeypatch, row, name, other):
    """With 20 bins for 15 the "proven" interval once missed the value, and p fell from .086 to .020."""
    rng = np.random.default_rng(5)
    p = rng.integers(0, 400, 300) / 400
    y = rng.random(300) < np.clip(p**1.3, 0.01, 0.99)
    raw, sketch = cb.Forecasts(y, p), Sketch.from_arrays(y, p, cells=64)
    before = row.function.value(raw, **row.options)
    monkeypatch.setitem(row.function._core.__kwdefaults__, name, other)
    try:
        asked = row.function.value(raw, **row.options, **{name: other})
    except cb.CalibrantError:
        return  # as an option it is refused on these data, so it is as a default
    value = cb.measure(raw, row.name).value
    assert value == asked, "the measure itself sees its default"
    assert row.options or row.function(raw) == asked, "so does the short way to the value alone"
    batch = row.null.batch and row.null.batch(raw, raw.residuals[None].copy(), row.options)
    if batch is not None:
        assert batch[0] == pytest.approx(value, abs=1e-12)
    if row.certified:
        try:
            found = sketch.measure(row.name)
        except NoCertificateError:
            with pytest.raises(NoCertificateError):
                sketch.measure(row.name, **{name: other})
            return
        explicit = sketch.measure(row.name, **{name: other})
        assert (found.lower, found.upper) == (explicit.lower, explicit.upper)
        assert found.lower - 1e-12 <= value <= found.upper + 1e-12
    assert np.isfinite(before)


def test_the_signature_is_read_and_not_restated():
    """No rule of a measure may fall back to a default of its own."""
    for path in sorted((Path(cb.__file__).parent / "measures").rglob("*.py")):
        assert "settings.get(" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("row", cb.measures().values(), ids=lambda row: row.name)
def test_settings_name_every_option(row):
    options = [
        part.name
        for part in inspect.signature(row.function).parameters.values()
        if part.name not in ("y_true", "y_prob", "sample_weight", "missing", "pos_label")
    ]
    assert set(row.settings()) == set(options)
