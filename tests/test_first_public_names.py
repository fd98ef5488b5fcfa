"""What the first version offered still works: every name, every parameter, every field, both call forms."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

FIRST = json.loads((Path(__file__).parent / "first_public_names.json").read_text())
NEED = {"fixed_decision_loss": {"payoff": 0.3}, "weighted_calibration_error": {"weight": np.ones_like}}


def test_the_list_is_that_of_the_first_version():
    assert len(FIRST) == 82
    assert sum(map(len, FIRST.values())) > 547


@pytest.mark.parametrize("name", FIRST)
def test_names_parameters_and_fields_are_still_there(name):
    now = getattr(cb, name)
    known = set() if name.endswith(("Error", "Warning")) else set(inspect.signature(now).parameters)
    if inspect.isclass(now):
        members = set(dir(now)) | set(getattr(now, "__dataclass_fields__", ()))
        known |= members | {f".{member}" for member in members}
    assert name in cb.__all__
    assert set(FIRST[name]) <= known


@pytest.mark.parametrize(
    "name", sorted({row.function.__name__ for row in cb.measures().values()} & set(FIRST))
)
def test_every_measure_takes_arrays_and_forecasts(name):
    rng = np.random.default_rng(1)
    p = rng.integers(1, 10, 60) / 10
    y, w = rng.random(60) < p, rng.integers(1, 4, 60)
    measure, options = getattr(cb, name), NEED.get(name, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.LevelSetWarning)
        value = measure(y, p, sample_weight=w, **options)
        assert value == measure(cb.Forecasts(y, p, sample_weight=w), **options)
    assert isinstance(value, float)
