"""Every option of every public function against values of the wrong kind: no raw error, no silent number.

An option that is a number by its default must be refused by name when it is NaN, negative, text, a list or
None where None means nothing; whatever is accepted must be a legitimate value.
"""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import CalibrantError
from calibrant.public_names import all_homes

rng = np.random.default_rng(0)
N = 60
P = rng.integers(1, 20, N) / 20
Y = (rng.random(N) < P).astype(int)
NAN = float("nan")

CALLS = {
    "audit": ((Y, P), {"groups": {"g": P > 0.5}}),
    "calibration_test": ((Y, P), {"method": "exact"}),
    "compare": ((Y, P, P**2), {}),
    "confidence_interval": ((Y, P), {}),
    "detectable_distance": ((200,), {"draws": 39}),
    "dominance": ((Y, P, P**2), {}),
    "estimate_decision_loss": ((Y, P), {"draws": 9}),
    "evaluate": ((Y, P), {}),
    "hosmer_lemeshow": ((Y, P), {}),
    "random_binning_estimate": ((Y, P), {}),
    "random_partition_error": ((Y, P), {"partition": "two-bin"}),
    "required_samples": ((0.2,), {"draws": 39}),
    "search_groups": ((Y, P, {"g": P}), {"draws": 9}),
    "smoothed_reliability": ((Y, P), {}),
    "tolerance_test": ((Y, P), {"accept": 0.05, "reject": 0.2, "method": "bootstrap"}),
}
MEASURES = {row.function.__name__ for row in cb.measures().values()} & set(all_homes())
GIVEN = {"audit": ["groups"], "evaluate": ["groups"]}  # columns here, not a number
LEGITIMATE = {("monotone_regret", "folds", "0"), ("required_samples", "measure", "None")}
HOSTILE = {
    "seed": [-1, 1.5, "x", True, NAN, [1]],
    "threads": [0, -1, 1.5, "x", NAN],
    "draws": [-1, 1.5, "x", NAN, True, None, [9]],
    "confidence": [NAN, -0.1, 1.5, "x", None, [0.9]],
    "alpha": [NAN, -0.1, "x", [0.1], math.inf],
    "power": [NAN, -0.1, 1.5, "x"],
    "accept": [NAN, -1, "x"],
    "reject": [NAN, -1, 2, "x"],
    "distance": [NAN, -1, "x"],
    "n": [NAN, -1, "x", 1.5],
    "folds": [-1, 0, 1, NAN, "x", 2.5],
    "bins": [-1, 0, NAN, 2.5, "nonsense", True, 10**12],
    "groups": [-1, 0, NAN, 2.5, "x"],
    "depth": [-1, 0, NAN, "x"],
    "limit": [-1, 0, NAN, "x"],
    "min_size": [-1, 0, NAN, "x"],
    "min_variance": [-1, NAN, "x", math.inf],
    "subpopulations": [-1, 0, NAN, "x"],
    "beam": [-1, 0, NAN, "x"],
    "rules": [-1, 0, NAN, "x"],
    "rho": [-1, NAN, "x", math.inf],
    "norm": [NAN, 0, -1, "x"],
    "degree": [-1, NAN, "x", 1.5, 101, 10**9],
    "tolerance": [NAN, -1, "x"],
    "bandwidth": [NAN, -1, "x"],
    "width": [NAN, -1, "x"],
    "threshold": [NAN, -1, 2, "x"],
    "precision": [NAN, -1, "x"],
    "missing": ["x", None, 1],
    "method": ["x", None, 1],
    "measure": ["x", None, 1],
    "variant": ["x", None, 1],
    "statistic": ["x", None, 1],
    "recalibrator": ["x", 1],
    "root": ["x", 2, None, NAN],
    "squared": ["x", 2, None, NAN],
    "normalised": ["x", 2, None, NAN],
    "debiased": ["x", 2, None, NAN],
    "add_width": ["x", 2, None, NAN],
    "strategy": ["x", None, 1],
    "shift": ["x", 1, NAN],
    "partition": ["x", 1, NAN, str],  # the class, as a function that returns text
    "ties": ["x", None, 1],
    "max_nodes": [-1, 0, NAN, "x", 1.5],
    "targets": ["x", 1, NAN, [2.0], [NAN], []],
    "lipschitz": [NAN, -1, 0, "x", None],
    "kernel": ["x", None, 1],
    "clip": [NAN, -1, 0.5, 2, "x"],
    "score": ["x", None, 1],
    "midpoints": ["x", 2, None, NAN],
    "time_limit": [NAN, -1, "x", None, math.inf],
    "quantile": [NAN, -0.1, 1.5, "x"],
}


def cases():
    """Yield every public function with each of its options and a hostile value."""
    calls = {**CALLS, **{name: ((Y, P), {}) for name in MEASURES}}
    for name, (arguments, options) in sorted(calls.items()):
        known = set(inspect.signature(getattr(cb, name)).parameters) - set(GIVEN.get(name, ()))
        for option in sorted(known & set(HOSTILE)):
            for value in HOSTILE[option]:
                if (name, option, repr(value)) not in LEGITIMATE:
                    yield name, arguments, options, option, value


def call(name, arguments, options, option, value):
    known = inspect.signature(getattr(cb, name)).parameters
    settings = {**({"draws": 9} if "draws" in known else {}), **options, option: value}
    positional = arguments[1:] if next(iter(known)) == option else arguments
    return getattr(cb, name)(*positional, **settings)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "option", "value"),
    [pytest.param(*case, id=f"{case[0]}-{case[3]}-{case[4]!r}") for case in cases()],
)
def test_hostile_options_are_refused_by_name(name, arguments, options, option, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CalibrantError) as refused:
            call(name, arguments, options, option, value)
    assert option in str(refused.value) or "must" in str(refused.value)


def test_every_option_of_a_measure_has_hostile_values():
    known = {name for row in cb.measures().values() for name in row.settings()}
    lacking = sorted(known - set(HOSTILE))
    assert not lacking, f"add values that {lacking} must refuse to HOSTILE of this file"


def test_the_table_is_large():
    assert len(list(cases())) > 350


@pytest.mark.parametrize("bad", [NAN, -0.1, 1.1, "x", None, [0.05], True])
def test_levels_of_results_are_checked(bad):
    found = cb.calibration_test(Y, P, draws=9, seed=1, method="exact")
    with pytest.raises(CalibrantError, match="alpha must lie in"):
        found.rejects(bad)
    groups = cb.audit(Y, P, groups={"g": P > 0.5}, draws=9, seed=1)
    with pytest.raises(CalibrantError, match="alpha must lie in"):
        groups.significant(bad)
    assert groups.significant(level=1.0) == groups.significant(alpha=1.0) == groups.groups
