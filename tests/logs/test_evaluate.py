"""The report on a log: what arrays passed by hand give, thresholds, spikes, and how it was read."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from writers import inspect_sample, write_inspect

import calibrant as cb
from calibrant.inference.null import record_outcomes
from calibrant.report.answers import confidence_histogram, spikes


@pytest.fixture(scope="module")
def verbal(tmp_path_factory):
    rng, samples = np.random.default_rng(3), []
    for k in range(400):
        truth, subject = rng.beta(6, 1), ["history", "law"][k % 2]
        stated = int(np.clip(5 * round(20 * (0.2 + 0.8 * truth)), 50, 100))
        grade = "CI"[int(rng.random() > truth)]
        text = f"ANSWER: A\nConfidence: {stated}%"
        samples.append(inspect_sample(f"q{k}", grade, text, metadata={"subject": subject}))
    return write_inspect(
        tmp_path_factory.mktemp("log") / "exam.json", samples, task="exam", model="acme/large"
    )


def test_as_arrays_by_hand(verbal):
    frame = cb.logs.read(verbal)
    found = cb.logs.evaluate(verbal, draws=19)
    by_hand = cb.evaluate(frame["correct"], frame["confidence"], groups={"topic": frame["topic"]}, draws=19)
    assert found.evaluation.to_dict()["measures"] == by_hand.to_dict()["measures"]
    promised = cb.choose_threshold(frame["correct"], frame["confidence"], risk=0.2)
    assert found.answers.thresholds[-1].to_dict() == promised.to_dict()
    area = cb.risk_coverage(frame["correct"], frame["confidence"]).aurc
    assert found.answers.risk_coverage.aurc == pytest.approx(area)
    assert "confidence that the answer states (inspect log)" in str(found)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["log"]["models"] == ["acme/large"]
    assert {"risk", "confidences", "reliability"} <= set(found.charts)
    assert "<table" in found._repr_html_()


def test_the_page(verbal, tmp_path):
    page = cb.logs.evaluate(verbal, draws=19).to_html(tmp_path / "report.html").read_text()
    for said in (
        "acme/large on exam",
        "When to abstain",
        "How sure the answers are",
        "Confidence: confidence that",
    ):
        assert said in page


def test_repeats_get_no_promise(tmp_path):
    samples = [
        inspect_sample(f"q{k}", "C", f"Confidence: {90 + k % 9}%", epoch=epoch)
        for k in range(40)
        for epoch in (1, 2)
    ]
    found = cb.logs.evaluate(write_inspect(tmp_path / "twice.json", samples), draws=19)
    assert found.log.clustered
    assert found.answers.thresholds == ()
    assert "No threshold is promised" in str(found)
    assert "Keep one record per cluster" in str(found)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.9, 0.95, 1.0]) | st.floats(0, 1)),
        min_size=2,
        max_size=30,
    )
)
def test_rows_and_spikes(rows):
    y, p = map(np.array, zip(*rows, strict=True))
    forecasts = cb.Forecasts(y, p)
    outcomes, predictions = record_outcomes(forecasts), np.repeat(forecasts.values, forecasts.counts)
    assert sorted(zip(predictions, outcomes, strict=True)) == sorted(zip(p, y, strict=True))
    for one in spikes(forecasts):
        same = p == one.confidence
        assert (one.answers, one.share) == (same.sum(), pytest.approx(same.mean()))
        assert one.right == pytest.approx(y[same].mean())
    bars = confidence_histogram.spec(forecasts)["datasets"]
    assert sum(row["share"] for data in bars.values() for row in data) == pytest.approx(1, abs=1e-4)


def test_repeats_are_clusters(tmp_path):
    """Five copies of each answer carry no more evidence than one."""
    rng, samples = np.random.default_rng(1), []
    for k in range(100):
        stated = int(rng.integers(50, 100))
        grade = "CI"[int(rng.random() > stated / 100)]
        samples += [inspect_sample(f"q{k}", grade, f"Confidence: {stated}%", epoch=e) for e in range(1, 6)]
    path = write_inspect(tmp_path / "copies.json", samples)
    frame = cb.logs.read(path)
    found = cb.logs.evaluate(path, draws=99).evaluation.verdict.pvalue
    by_hand = cb.Forecasts(frame["correct"], frame["confidence"]).with_clusters(frame["cluster"])
    assert found == cb.evaluate(by_hand, draws=99).verdict.pvalue
    assert found > cb.evaluate(frame["correct"], frame["confidence"], draws=99).verdict.pvalue
