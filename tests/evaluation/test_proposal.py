"""The report's recalibration: `recalibrate` on coarse cells, with its own verdict."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.repair_preview import CANDIDATES, MAX_PROPOSAL_CELLS, coarse_sample, propose
from calibrant.evaluation.report import sections


def forecasts(n, slope, *, weighted=False, fractional=False, digits=None):
    rng = np.random.default_rng(8)
    truth = rng.uniform(0.05, 0.95, n)
    p = 1 / (1 + np.exp(-slope * np.log(truth / (1 - truth))))
    y = truth if fractional else (rng.random(n) < truth).astype(float)
    weights = rng.random(n) + 0.1 if weighted else None
    return cb.Forecasts(y, p if digits is None else p.round(digits), sample_weight=weights)


def test_few_levels_give_what_recalibrate_gives():
    rounded = forecasts(900, 1.8, digits=2)
    found = propose(rounded, seed=4)
    direct = cb.recalibrate(rounded, candidates=CANDIDATES, seed=4)
    assert found.fitted.map.to_dict() == direct.map.to_dict()
    assert found.fitted.assessment.to_dict() == direct.assessment.to_dict()


@pytest.mark.parametrize("kind", [{}, {"weighted": True}, {"fractional": True}])
def test_coarse_cells_keep_the_records(kind):
    whole = forecasts(2_000, 1.8, **kind)
    sample = coarse_sample(whole)
    assert len(sample.levels) <= 1.5 * MAX_PROPOSAL_CELLS
    assert sample.n == 2_000
    assert sample.levels.base_rate == pytest.approx(whole.base_rate, rel=1e-12)
    assert propose(whole, seed=0).fitted.assessment.verdict == "helps"


def test_the_section_says_the_verdict_and_the_chart_shows_the_map():
    for slope, words in ((1.8, "A map for all records helps"), (1.0, "There is no evidence")):
        evaluation = cb.evaluate(forecasts(1_500, slope), draws=19, confidence=0, measures=["smooth"], seed=1)
        proposal = propose(evaluation.forecasts, seed=1)
        section = {part.id: part for part in sections(evaluation, proposal)}["recalibration"]
        assert section.texts[0].startswith(words)
        chart = evaluation.charts["recalibration"].to_dict(validate=False)
        assert "true calibration curve" in " ".join(chart["title"]["subtitle"])


def test_too_few_records_are_said():
    few = cb.Forecasts([0, 1] * 10, np.linspace(0.1, 0.9, 20))
    assert "fewer than" in propose(few, seed=0)
