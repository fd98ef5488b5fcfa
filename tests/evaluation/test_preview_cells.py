"""The preview of recalibration on very many levels: merged first, and the same but for noise."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation import repair_preview
from calibrant.evaluation.repair_preview import preview
from calibrant.metrics.lookup import find_measure


def test_merged_levels_preview_what_levels_do(monkeypatch):
    rng = np.random.default_rng(3)
    p = rng.random(30_000)
    forecasts = cb.Forecasts(rng.random(len(p)) < p**1.3, p)
    wanted = [find_measure("smooth"), find_measure("brier")]
    levels = preview(forecasts, wanted, seed=1)
    monkeypatch.setattr(repair_preview, "MIN_MERGED_LEVELS", 10_000)
    monkeypatch.setattr(repair_preview, "MAX_PREVIEW_CELLS", 4_096)
    cells = preview(forecasts, wanted, seed=1)
    assert list(cells.changes) == list(levels.changes) == ["smooth", "brier"]
    for name, before_and_after in levels.changes.items():
        assert cells.changes[name] == pytest.approx(before_and_after, abs=2e-3)
    assert cells.task.loss == pytest.approx(levels.task.loss, abs=2e-3)
    assert cells.base_rate_regret == pytest.approx(levels.base_rate_regret, abs=1e-4)


def test_weighted_records_are_not_merged(monkeypatch):
    rng = np.random.default_rng(4)
    p = rng.random(500)
    forecasts = cb.Forecasts(rng.random(len(p)) < p, p, sample_weight=rng.random(len(p)))
    levels = preview(forecasts, [], seed=1)
    monkeypatch.setattr(repair_preview, "MIN_MERGED_LEVELS", 100)
    monkeypatch.setattr(repair_preview, "MAX_PREVIEW_CELLS", 50)
    assert preview(forecasts, [], seed=1).task.loss == levels.task.loss
