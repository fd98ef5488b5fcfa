"""calibrant apply with maps that read covariates: every row gets its own value, in every kind of file."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from calibrant import recalibrate
from calibrant.errors import CalibrantError
from calibrant.io.apply_file import apply_file
from calibrant.recalibration.result import RecalibrationWarning


def rows(n=2_000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"p": rng.beta(2, 3, n), "g": rng.choice(["a", "b", "c é"], n), "age": rng.integers(18, 80, n)}
    )
    frame["v"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    y = rng.random(n) < expit(logit(frame["p"]) + (frame["g"] == "b"))
    return y.astype(int), frame


@pytest.fixture(scope="module", params=["hierarchical", "patch"])
def fitted(request):
    y, frame = rows()
    return recalibrate(y, frame["p"], covariates=frame[["g", "age", "v"]], method=request.param, seed=0)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_gets_what_predict_says(fitted, kind, tmp_path):
    _, frame = rows()
    expected = fitted.predict(frame["p"], frame)
    frame.loc[3, "p"], frame.loc[5, "p"] = np.nan, 1.7
    expected[[3, 5]] = np.nan
    source, target = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    if kind == "csv":
        frame.to_csv(source, index=False)
    else:
        frame.to_parquet(source, row_group_size=100)
    for _ in range(3):  # rows that change places do so by chance
        done = apply_file(fitted, str(source), target, prediction="p", into="q")
        again = pd.read_csv(target) if kind == "csv" else pd.read_parquet(target)
        np.testing.assert_allclose(again["q"], expected, rtol=0, atol=1e-12)
        assert again["g"].tolist() == frame["g"].tolist()
        assert (done.rows, done.unusable) == (2_000, 2)


def test_a_column_that_is_not_there_is_named(fitted, tmp_path):
    _, frame = rows(50)
    frame.drop(columns="g").to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(CalibrantError, match="'g'"):
        apply_file(fitted, str(tmp_path / "in.csv"), tmp_path / "out.csv", prediction="p", into="q")
    assert not (tmp_path / "out.csv").exists()


def test_another_base_rate_keeps_the_covariates():
    y, frame = rows(500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        made = recalibrate(y, frame["p"], covariates=frame[["g"]], method="hierarchical", seed=0)
        moved = recalibrate(
            y, frame["p"], covariates=frame[["g"]], method="hierarchical", prevalence=0.2, seed=0
        )
    shift = logit(moved.predict(frame["p"], frame)) - logit(made.predict(frame["p"], frame))
    assert shift == pytest.approx(logit(0.2) - logit(y.mean()), abs=1e-9)
    assert moved.assessment.for_whom is not None
