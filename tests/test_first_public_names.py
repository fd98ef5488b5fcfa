"""What the first version offered still works: every name, every parameter, every field, both call forms."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.public_names import all_homes

FIRST = json.loads((Path(__file__).parent / "first_public_names.json").read_text())
MOVED = {  # parameter of a function -> where what it did is found now
    ("expected_calibration_error", "root"): "level_set_error",  # the usual ECE has bins
}
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
    assert name in all_homes()
    assert set(FIRST[name]) - known == {parameter for function, parameter in MOVED if function == name}


def test_what_parameters_did_that_moved():
    kept = cb.Forecasts([0, 1, 1], [0.2, 0.2, 0.9])
    assert cb.measure(kept, "smooth").value == cb.measure([0, 1, 1], [0.2, 0.2, 0.9], "smooth").value
    assert cb.measure(forecasts=kept, name="smooth").value == cb.measure(kept, "smooth").value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.LevelSetWarning)
        power, root = cb.level_set_error(kept, norm=2), cb.level_set_error(kept, norm=2, root=True)
    assert root == pytest.approx(power**0.5)


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
