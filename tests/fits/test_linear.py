"""Logistic regression: scikit-learn's optimum, categories as columns of their own, gaps that add nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit

from calibrant.errors import InvalidInputError
from calibrant.fits.logistic import Linear, logistic_regression
from calibrant.results import json_ready


def sample(seed, n=300):
    rng = np.random.default_rng(seed)
    rows = np.column_stack((rng.normal(0, 5, n), rng.integers(0, 4, n).astype(float), rng.random(n)))
    y = rng.random(n) < expit(rows[:, 0] / 5 + (rows[:, 1] == 2))
    return rows, y.astype(float), rng.random(n) + 0.2


@pytest.mark.parametrize("seed", range(4))
def test_it_is_scikit_learns_optimum(seed):
    models = pytest.importorskip("sklearn.linear_model")
    rows, y, weight = sample(seed)
    fit = logistic_regression(rows, y, weight, (1,))
    scaled = np.column_stack(
        (
            rows[:, 0] / np.abs(rows[:, 0]).max(),
            np.eye(4)[rows[:, 1].astype(int)],
            rows[:, 2] / rows[:, 2].max(),
        )
    )
    theirs = models.LogisticRegression(tol=1e-10, max_iter=10_000).fit(scaled, y, sample_weight=weight)
    assert fit.predict(rows) == pytest.approx(theirs.decision_function(scaled), abs=2e-5)


def test_gaps_and_new_codes_add_nothing():
    rows, y, weight = sample(9)
    fit = logistic_regression(rows, y, weight, (1,))
    new = np.array([[np.nan, np.nan, np.nan], [0.0, 7.0, 0.0]])
    assert fit.predict(new).tolist() == [fit.intercept, fit.intercept]


@pytest.mark.parametrize(
    "rows",
    [np.full((5, 1), np.nan), np.zeros((5, 1)), np.full((5, 1), 1e300), np.array([[0.0], [np.nan]] * 3)[:5]],
)
@pytest.mark.parametrize("categorical", [(), (0,)])
def test_odd_columns_stay_finite(rows, categorical):
    if categorical and np.nanmax(np.append(rows, 0)) > 10:
        return  # no codes
    fit = logistic_regression(rows, np.array([0.0, 1, 1, 0, 1]), np.ones(5), categorical)
    assert np.isfinite(fit.predict(rows)).all()


def test_json_round_trip_and_lies():
    rows, y, weight = sample(3)
    fit = logistic_regression(rows, y, weight, (1,))
    stored = json.loads(json.dumps(json_ready(fit)))
    assert Linear.from_dict(stored, 3).predict(rows).tolist() == fit.predict(rows).tolist()
    lies = [("intercept", None), ("intercept", float("nan")), ("coefficients", [[1.0]]), ("scales", "x")]
    lies += [("scales", [0.0, None, 1.0]), ("coefficients", [["a"], [0.0], [0.0]])]
    for key, lie in lies:
        with pytest.raises(InvalidInputError):
            Linear.from_dict({**stored, key: lie}, 3)
