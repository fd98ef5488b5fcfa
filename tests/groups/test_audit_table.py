"""audit_table(): the protocol of the paper, figure by figure."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from people import people

from calibrant import audit, audit_table
from calibrant.errors import CalibrantError


def test_figures_are_means_over_seeds_with_twice_their_standard_error():
    y, p, frame = people(0, 1500)
    models = {"right": p, "bold": np.clip(1.5 * p, 0, 1)}
    found = audit_table(y, models, frame, subpopulations=60, seeds=3, seed=4)
    assert [model.name for model in found.models] == ["right", "bold"]
    for name, model in zip(models, found.models, strict=True):
        audits = [
            audit(y, models[name], covariates=frame, subpopulations=60, draws=0, seed=s) for s in found.seeds
        ]
        metrics = np.array([one.metric for one in audits])
        assert model.multi_calibration.value == pytest.approx(metrics.mean())
        assert model.multi_calibration.margin == pytest.approx(2 * metrics.std(ddof=1) / np.sqrt(3))
        assert model.error.value == pytest.approx(np.mean((models[name] >= 0.5) != y))
        assert (model.error.margin, model.kuiper.margin) == (0, 0)
        assert model.multi_ablate.value == pytest.approx(np.mean([one.ablated for one in audits]))
        worst = [one.ablated_group for one in audits]
        assert [one.kuiper for one in worst] == [one.ablated for one in audits]
        expected = np.mean([np.sqrt(8 / np.pi) * one.sigma for one in worst])
        assert model.expectation.value == pytest.approx(expected)
    assert found.models[1].multi_calibration.value > 2 * found.models[0].multi_calibration.value


def test_text_json_and_frames():
    y, p, frame = people(1, 400)
    found = audit_table(y, pd.DataFrame({"m": p}), frame, subpopulations=20, seed=1)
    assert json.loads(json.dumps(found.to_dict()))["models"][0]["name"] == "m"
    assert "multi_calibration" in str(found)
    assert "±" in str(found)
    again = audit_table(y, {"m": p}, frame, subpopulations=20, seed=1)
    assert again.to_dict() == found.to_dict()
    assert repr(found) == "AuditTable(1 model, n = 400, 3 seeds)"


def test_weights_count():
    y, p, frame = people(2, 300)
    w = np.random.default_rng(0).random(300)
    found = audit_table(y, {"m": p}, frame, subpopulations=10, sample_weight=w, seed=1)
    assert found.models[0].error.value == pytest.approx(np.average((p >= 0.5) != y, weights=w))


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ({}, {}, "models must have a column"),
        ({"m": [0.5, 0.5]}, {"seeds": 1}, "seeds must be a whole number"),
    ],
)
def test_bad_input_is_refused(models, options, message):
    with pytest.raises(CalibrantError, match=message):
        audit_table([0, 1], models, {"a": [1, 2]}, **options)
