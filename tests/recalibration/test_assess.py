"""Did it help? Verdicts that do not depend on the seed, saved and printed without being computed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.recalibration.assess import Assessment


@pytest.fixture(scope="module")
def demo():
    data = cb.load_demo()
    return np.asarray(data["default"]).astype(int), np.asarray(data["p"]).astype(float)


def overconfident(n, seed=0, slope=1.8):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.05, 0.95, n)
    return (rng.random(n) < truth).astype(int), expit(slope * logit(truth))


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(24), marks=pytest.mark.slow)])
def test_every_seed_says_that_platt_helps_on_the_demo(demo, seeds):
    y, p = demo
    found = [cb.recalibrate(y, p, method="platt", seed=seed).assessment for seed in seeds]
    assert {one.verdict for one in found} == {"helps"}
    assert not any(one.borderline for one in found)
    assert max(one.gain for one in found) - min(one.gain for one in found) < 2e-4


@pytest.mark.slow
def test_every_seed_says_that_auto_helps_on_the_demo(demo):
    y, p = demo
    found = [cb.recalibrate(y, p, seed=seed).assessment for seed in range(24)]
    assert {one.verdict for one in found} == {"helps"}


@pytest.mark.parametrize(
    ("rows", "seeds", "candidates"),
    [
        (8_000, range(1), ["platt", "hierarchical"]),
        pytest.param(20_000, range(6), None, marks=pytest.mark.slow),
    ],
)
def test_repairing_the_groups_of_the_demo_is_found_to_help(rows, seeds, candidates):
    """The self-employed are rated too safe; the evaluation of the demo suggests to repair by employment."""
    data = cb.load_demo(rows)
    for seed in seeds:
        fitted = cb.recalibrate(
            data["default"], data["p"], groups={"employment": data["employment"]}, seed=seed,
            candidates=candidates,
        )  # fmt: skip
        assert fitted.chosen == "hierarchical"
        assert fitted.assessment.verdict == "helps"
        assert fitted.assessment.for_whom.before.rejected
        changes = {one.rule: one for one in fitted.assessment.for_whom.changes}
        assert changes["employment = self-employed"].farther.value < -0.01  # at least a point closer


@pytest.mark.slow
def test_seeds_agree_on_small_samples_or_the_verdict_is_borderline(demo):
    y, p = demo
    agreed = 0
    for sample in range(20):
        rows = np.random.default_rng(900 + sample).choice(len(y), 2_000, replace=False)
        found = [cb.recalibrate(y[rows], p[rows], method="platt", seed=seed).assessment for seed in range(24)]
        verdicts = [one.verdict for one in found]
        same = max(verdicts.count(one) for one in set(verdicts))
        agreed += same >= 23
        assert same >= 23 or any(one.borderline for one in found)
    assert agreed >= 18


def test_saving_and_printing_never_compute_the_assessment(tmp_path):
    y, p = overconfident(300, slope=3)
    fitted = cb.recalibrate(y, p, method="platt")
    assert "Not assessed yet" in str(fitted)
    assert "Not assessed yet" in fitted._repr_html_()
    fitted.save(tmp_path / "map.json")
    assert not fitted.is_assessed
    back = cb.load_recalibration(tmp_path / "map.json")
    assert back.assessment is None
    assert back.why_not_assessed == "it was not assessed before it was saved"
    fitted.assess()
    fitted.save(tmp_path / "map.json")
    assert cb.load_recalibration(tmp_path / "map.json").assessment.verdict == "helps"
    assert "helps" in str(fitted)


def test_the_losses_are_those_of_the_public_measures():
    y, p = overconfident(400)
    p[:3], y[:3] = [0.0, 1.0, 1.0], [1, 1, 0]
    found = cb.recalibrate(y, p, method="platt").assessment
    assert found.before == pytest.approx(cb.log_loss(y, p), rel=1e-12)
    assert found.changes["brier_score"].before == pytest.approx(cb.brier_score(y, p), rel=1e-12)
    assert found.wrong_certain[0] == 2
    assert "2 before" in found.certain_note


def test_certain_predictions_that_were_never_wrong_leave_room_for_a_gain():
    """Of 10 that were right, up to 31% may be wrong, and each would cost 36 nats."""
    y, p = overconfident(200)
    p[:10], y[:10] = 1.0, 1
    fitted = cb.recalibrate(y, p, method="platt")
    found = fitted.assessment
    p[:10] = 1 - 1e-9
    without = cb.recalibrate(y, p, method="platt").assessment
    if_wrong = np.log1p(-fitted.predict([1.0])[0]) - np.log(2.0**-52)
    room = 10 / 200 * (1 - 0.025 ** (1 / 10)) * if_wrong
    assert found.wrong_certain[0] == 0
    assert found.upper - without.upper == pytest.approx(room, rel=0.05)
    assert found.lower == pytest.approx(without.lower, abs=0.01)


def test_no_certain_predictions_no_note():
    y, p = overconfident(100)
    assert cb.recalibrate(y, p, method="platt").assessment.certain_note == ""


def test_an_unchanged_map_is_never_said_to_help():
    y, p = overconfident(200, slope=1.0)
    found = cb.recalibrate(y, p, method="identity").assessment
    assert (found.gain, found.lower, found.upper) == (0.0, 0.0, 0.0)
    assert found.verdict == "no evidence that it helps"


def test_clusters_widen_the_interval():
    y, p = overconfident(300)
    twice = np.repeat(y, 4), np.repeat(p, 4)
    alone = cb.recalibrate(*twice, method="platt", clusters=np.arange(1_200)).assessment
    grouped = cb.recalibrate(*twice, method="platt", clusters=np.repeat(np.arange(300), 4)).assessment
    assert grouped.upper - grouped.lower > 1.5 * (alone.upper - alone.lower)


def test_many_rows_with_covariates_are_assessed_on_a_stated_sample(monkeypatch):
    monkeypatch.setattr("calibrant.recalibration.recalibrate.MAX_ASSESSED", 400)
    y, p = overconfident(1_000)
    region = np.array(["a", "b"])[np.arange(1_000) % 2]
    fitted = cb.recalibrate(y, p, method="hierarchical", covariates={"region": region})
    found = fitted.assess()
    assert (found.n, found.n_records, fitted.fit.n) == (400, 1_000, 1_000)
    assert Assessment.from_dict(json.loads(json.dumps(found.to_dict()))).n_records == 1_000


def test_assessments_survive_json_and_older_files_are_read():
    y, p = overconfident(300)
    found = cb.recalibrate(y, p, method="platt").assessment
    stored = json.loads(json.dumps(found.to_dict()))
    assert Assessment.from_dict(stored).to_dict() == found.to_dict()
    older = {k: v for k, v in stored.items() if k not in ("splits", "borderline", "wrong_certain")}
    assert Assessment.from_dict(older).borderline is False


def test_progress_of_an_assessment_ends_at_one():
    y, p = overconfident(200)
    shares = []
    cb.recalibrate(y, p, method="platt").assess(shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
