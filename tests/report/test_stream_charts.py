"""Charts of streams show the numbers they claim to show."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.online import DistanceForecaster, OnlineCalibrator
from calibrant.report import charts


@pytest.fixture(scope="module")
def played():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 2000)
    y = (rng.random(2000) < p**2).astype(float)
    return y, p, OnlineCalibrator().run(y, p)


def rows(chart, *columns):
    """Return every data set that has all these columns."""
    return [data for data in chart.to_dict()["datasets"].values() if set(columns) <= set(data[0])]


def test_certificate_and_bound(played):
    run = played[2]
    certificate, bound = rows(charts.certificate_over_time(run), "round", "value")
    assert certificate[-1] == {"round": 2000, "value": pytest.approx(run.certificate[-1] / 2000, rel=1e-5),
                               "line": "certificate"}  # fmt: skip
    assert bound[-1]["value"] == pytest.approx(run.bound[-1] / 2000, rel=1e-5)
    assert len(certificate) <= 400
    assert all(a["value"] <= b["value"] for a, b in zip(certificate, bound, strict=True))
    with pytest.raises(cb.CalibrantError, match="must hold a certificate"):
        charts.certificate_over_time(OnlineCalibrator(guard=False).run([1], [0.5]))


def test_gain_is_the_brier_score_saved(played):
    y, p, run = played
    drawn = rows(charts.gain_over_time(y, p, run), "gain")[0]
    saved = np.sum((y - p) ** 2) - np.sum((y - run.predictions) ** 2)
    assert drawn[-1]["gain"] == pytest.approx(saved, rel=1e-5)
    assert saved > 5


def test_weights_add_up(played):
    drawn = rows(charts.expert_weights(played[2]), "weight")[0]
    sums = {}
    for row in drawn:
        sums[row["round"]] = sums.get(row["round"], 0) + row["weight"]
    assert all(total == pytest.approx(1, abs=1e-4) for total in sums.values())
    assert {row["weight"] for row in drawn[:5]} == {0.5, 0.125}
    with pytest.raises(cb.CalibrantError, match="must hold weights"):
        charts.expert_weights(DistanceForecaster().run([1]))


def test_evidence_is_the_monitor(played):
    y, p, run = played
    chart = charts.evidence_over_time(y, p, alpha=0.01)
    reading = cb.Monitor(alpha=0.01).update(y, p)
    drawn = rows(chart, "evidence")[0]
    assert drawn[-1]["evidence"] == pytest.approx(reading.log_evalue / math.log(10), rel=1e-4)
    marks = rows(chart, "at", "what")[0]
    assert [mark["at"] for mark in marks] == [reading.alarm_at, reading.onset]
    assert reading.suspicion in chart.description
    assert "no alarm" in charts.evidence_over_time(y, run.predictions, alpha=0.01).description
