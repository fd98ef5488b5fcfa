"""Progress is the share that is done, wherever work takes long; functions of two numbers get both."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.parallel import BLOCK, in_blocks
from calibrant.public_names import all_homes

rng = np.random.default_rng(0)
P = rng.integers(1, 20, 200) / 20
Y = (rng.random(200) < P).astype(int)
TABLE = rng.dirichlet([1, 1, 1], 200)
LABELS = (rng.random((200, 1)) > TABLE.cumsum(axis=1)).sum(axis=1).clip(0, 2)
CALLS = {
    "calibration_test": lambda reported: cb.calibration_test(
        Y, P, method="exact", draws=99, seed=1, progress=reported
    ),
    "confidence_interval": lambda reported: cb.confidence_interval(Y, P, draws=99, seed=1, progress=reported),
    "tolerance_test": lambda reported: cb.tolerance_test(
        Y, P, accept=0.05, reject=0.2, method="bootstrap", draws=99, seed=1, progress=reported
    ),
    "compare": lambda reported: cb.compare(Y, P, P**2, draws=99, seed=1, progress=reported),
    "audit": lambda reported: cb.audit(Y, P, groups={"g": P > 0.5}, draws=9, seed=1, progress=reported),
    "incentives": lambda reported: cb.incentives(P, ["smooth"], draws=50, seed=1, progress=reported),
    "recalibrate": lambda reported: cb.recalibrate(LABELS, TABLE, seed=1, progress=reported),
    "class_table": lambda reported: cb.class_table(LABELS, TABLE, seed=1, progress=reported),
    "evaluate": lambda reported: cb.evaluate(Y, P, draws=19, seed=1, progress=reported),
}
OF_TWO = [name for name in CALLS if name != "evaluate"]


@pytest.mark.parametrize("name", CALLS)
def test_progress_is_the_share_that_is_done(name):
    reported = []
    CALLS[name](reported.append)
    assert reported, name
    assert all(0 < share <= 1 for share in reported)
    assert reported == sorted(reported)
    assert reported[-1] == 1


@pytest.mark.parametrize(
    "method", ["auto", *(k for k, row in cb.recalibrations().items() if row.fit_classes)]
)
def test_fits_of_classes_tell_how_far_they_are(method):
    reported = []
    cb.recalibrate(LABELS, TABLE, method=method, seed=1, progress=reported.append)
    assert reported == sorted(set(reported))
    assert reported[-1] == 1
    assert len(reported) > 3 or method == "temperature"


@pytest.mark.parametrize("method", ["auto", "platt", "spline"])
def test_fits_of_two_classes_tell_how_far_they_are(method):
    reported = []
    cb.recalibrate(Y, P, method=method, seed=1, progress=reported.append)
    assert reported == sorted(set(reported))
    assert reported[-1] == 1


@pytest.mark.parametrize("name", OF_TWO)
def test_a_function_of_two_numbers_is_told_both(name):
    reported = []
    CALLS[name](lambda done, total: reported.append(done / total))
    assert reported[-1] == 1


def test_every_public_function_with_progress_is_in_the_list():
    import inspect

    public = [name for name in all_homes() if callable(getattr(cb, name))]
    public = [name for name in public if not inspect.isclass(getattr(cb, name))]
    reported = {name for name in public if "progress" in inspect.signature(getattr(cb, name)).parameters}
    assert reported == set(CALLS), "add a call to CALLS of this file"


def test_a_sketch_tells_the_share(tmp_path):
    pl.DataFrame({"y": Y, "p": P}).write_parquet(tmp_path / "rows.parquet")
    reported = []
    cb.Sketch.from_file(tmp_path / "rows.parquet", outcome="y", prediction="p", progress=reported.append)
    assert all(0 <= share <= 1 for share in reported)


def test_blocks_that_are_done_are_not_counted_again():
    asked = []

    class Block(np.ndarray):
        def __len__(self):
            asked.append(1)
            return super().__len__()

    reported = []
    drawn = in_blocks(
        lambda _, rows: np.zeros(rows).view(Block),
        300,
        width=BLOCK,
        seed=1,
        threads=1,
        progress=reported.append,
    )
    assert drawn.shape == (300,)
    assert reported[-1] == 1
    assert len(asked) <= 3 * 300
