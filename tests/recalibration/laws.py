"""Fitting in tests: warnings of a fit are not what the laws are about."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import calibrant as cb

ROWS = cb.recalibrations()
METHODS = [name for name, row in ROWS.items() if row.fit is not None and not row.needs_covariates]
GRID = np.linspace(0, 1, 33)
GOLDEN = Path(__file__).parent / "golden"


def one_per_form():
    """Return a method per form of map, of those that need nothing but predictions: the last in the table.

    Golden files say which form a method has, and every form has one.
    """
    files = {name: max(GOLDEN.glob(f"format*-{name}.json"), default=None) for name in METHODS}
    forms = {json.loads(file.read_text())["map"]["form"]: name for name, file in files.items() if file}
    return list(forms.values())


def fit(y, p, **options):
    """recalibrate without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.RecalibrationWarning)
        return cb.recalibrate(y, p, **{"seed": 0, **options})


def fittable(method, y, p):
    """Whether the method takes these records."""
    row = cb.recalibrations()[method]
    y = np.asarray(y, float)
    return len(y) >= row.smallest_n and (not row.needs_both_outcomes or ((y > 0).any() and (y < 1).any()))


def law_options(method):
    return dict(cb.recalibrations()[method].law_options)


@st.composite
def gridded(draw, min_size=4, max_size=40):
    """Predictions on sixteenths, which 1 - p maps to themselves exactly, with 0/1 outcomes."""
    n = draw(st.integers(min_size, max_size))
    p = np.array(draw(st.lists(st.integers(0, 16), min_size=n, max_size=n))) / 16
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return y, p


def overconfident(n=2000, seed=0):
    """Outcomes, and predictions whose logits are twice the true ones."""
    rng = np.random.default_rng(seed)
    q = rng.random(n)
    logit = np.log(q / (1 - q))
    return (rng.random(n) < q).astype(int), 1 / (1 + np.exp(-2 * logit))
