"""The preview of a recalibration: one cross-fit, and the numbers that the public functions give."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.repair_preview import FOLDS, MIN_RECORDS, preview
from calibrant.evaluation.rows import select_measures
from calibrant.fits import crossfit


@pytest.fixture(params=["continuous", "tied", "weighted"])
def forecasts(request):
    rng = np.random.default_rng(4)
    p = rng.uniform(0.05, 0.8, 600)
    weights = rng.random(600) if request.param == "weighted" else None
    p = p if request.param == "continuous" else p.round(2)
    return cb.Forecasts(rng.random(600) < p + 0.1, p, sample_weight=weights)


def test_curve_and_task_are_those_of_the_public_functions(forecasts):
    found = preview(forecasts, [], seed=5)
    options = {"recalibrator": "isotonic", "folds": FOLDS, "seed": 5}
    curve, task = cb.threshold_loss_curve(forecasts, **options), cb.worst_task(forecasts, **options)
    for name in ("thresholds", "before", "after"):
        assert np.array_equal(getattr(found.curve, name), getattr(curve, name))
    assert found.task.loss == task.loss > 0
    assert np.array_equal(found.task.thresholds, task.thresholds)
    assert np.array_equal(found.task.payoff, task.payoff)


def test_every_fold_is_fitted_once(forecasts, monkeypatch):
    fitted, isotonic = [], crossfit.isotonic_interpolation

    def counted(values, rates, weights):
        fitted.append(len(values))
        return isotonic(values, rates, weights)

    monkeypatch.setattr(crossfit, "isotonic_interpolation", counted)
    preview(forecasts, select_measures(None), seed=5)
    assert len(fitted) == FOLDS


def test_recalibration_removes_what_is_wrong(forecasts):
    before, after = preview(forecasts, select_measures(None), seed=5).changes["smooth"]
    assert before == pytest.approx(0.1, abs=0.04)
    assert after < before


def test_too_few_records_say_nothing():
    y, p = np.arange(MIN_RECORDS - 1) % 2, np.linspace(0.1, 0.9, MIN_RECORDS - 1)
    assert preview(cb.Forecasts(y, p), [], seed=5) is None
    assert preview(cb.Forecasts([0, *y], [0.05, *p]), [], seed=5) is not None
