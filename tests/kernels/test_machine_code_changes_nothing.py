"""A value does not depend on whether machine code has been loaded into the process by then."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADING = """
import importlib, pkgutil, warnings
import calibrant.kernels
from calibrant.kernels.compile import compiled

def load_everything():
    for module in pkgutil.iter_modules(calibrant.kernels.__path__, "calibrant.kernels."):
        for kernel in vars(importlib.import_module(module.name)).values():
            if isinstance(kernel, compiled):
                kernel.compile_now()
"""
CODE = """
import numpy as np
import calibrant as cb

warnings.simplefilter("ignore")
SKIPPED = {"low-degree", "interval-surrogate"}  # linear programs take seconds; nothing of theirs is compiled

def samples():
    rng = np.random.default_rng(0)
    for k in range(30):
        n = int(rng.integers(3, 40))
        p = rng.integers(0, 11, n) / 10 if k % 2 else rng.random(n)
        w = 10.0 ** rng.integers(-3, 3, n) if k % 3 == 0 else None
        yield cb.Forecasts(rng.random(n) < p, p, sample_weight=w)

def values():
    for forecasts in samples():
        for name in cb.measures():
            if name in SKIPPED:
                continue
            try:
                yield name, cb.measure(forecasts, name).value
            except cb.CalibrantError:
                yield name, None
        if forecasts.n > 3:
            curve = cb.threshold_loss_curve(forecasts, recalibrator="isotonic", folds=2)
            yield "losses", float(curve.at([0.2, 0.5, 0.75]).sum())

before = list(values())
load_everything()
after = list(values())
for (name, one), (_, other) in zip(before, after, strict=True):
    same = one == other if one is None or name == "losses" else abs(one - other) <= 1e-13 * max(1.0, abs(one))
    assert same, (name, one, other)
print(len(before))
"""


EVALUATIONS = """
import json
import numpy as np
import calibrant as cb

def evaluations():
    rng = np.random.default_rng(0)
    for k in range(12):
        n = int(rng.integers(10, 300))
        p = rng.integers(1, 40, n) / 40 if k % 2 else rng.random(n)
        w = 10.0 ** rng.integers(-3, 3, n) if k % 3 == 0 else None
        found = cb.evaluate(rng.random(n) < p, p, sample_weight=w, draws=49, seed=1)
        yield from json.dumps(found.to_dict(), indent=1).splitlines()

before = list(evaluations())
load_everything()
differ = [pair for pair in zip(before, evaluations(), strict=True) if pair[0] != pair[1]]
assert not differ, differ[:5]
print(len(before))
"""


@pytest.mark.parametrize("code", [CODE, EVALUATIONS], ids=["values", "evaluations"])
def test_values_are_the_same_before_and_after_it_is_loaded(code):
    done = subprocess.run(
        [sys.executable, "-c", LOADING + code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 500
