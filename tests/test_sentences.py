"""Results print as sentences that can be pasted into a mail, with short reprs and plain HTML."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.formatting import limits_text
from calibrant.inference.classic_tests import hosmer_lemeshow

RNG = np.random.default_rng(2)
P = np.round(RNG.uniform(0.02, 0.98, 1500), 2)
Y = (RNG.random(1500) < P).astype(int)
WRONG = np.round(P**2, 3)
REGION = np.array(["north", "south", "east <b>"])[RNG.integers(0, 3, 1500)]


def assessed(recalibration):
    assert "Not assessed yet: `.assessment` tells whether it helps." in str(recalibration)
    assert recalibration.assessment.verdict == "helps"
    return recalibration


def results():
    monitor = cb.Monitor()
    monitor.update(Y, WRONG)
    return {
        "test": cb.calibration_test(Y, WRONG, seed=1, draws=99),
        "interval": cb.confidence_interval(Y, P, seed=1, draws=99),
        "tolerance": cb.tolerance_test(Y, P, accept=0.02, reject=0.3),
        "comparison": cb.compare(Y, {"lr": P, "nb": WRONG}, seed=1, draws=199),
        "curve": cb.net_benefit(Y, P),
        "audit": cb.audit(Y, WRONG, groups={"region": np.roll(REGION, 1)}, seed=1, draws=99),
        "recalibration": assessed(cb.recalibrate(Y, WRONG, method="platt", seed=1)),
        "monitor": monitor,
        "reading": monitor.reading(),
        "evaluation": cb.evaluate(Y, WRONG, groups={"region": REGION}, seed=1, draws=19),
    }


@pytest.fixture(scope="module")
def found():
    return results()


SENTENCES = {
    "test": r"^Calibration is rejected at the 5% level: p ≤ 0\.01 .*1,500 records, .*\)\.$",
    "interval": r"^Smooth calibration error 0\.\d+, 95% interval 0.* to 0\.\d+ \(1,500 .*, seed 1\)\.",
    "tolerance": r"^Accepted: the distance from calibration is below 0\.3 \(.*1,500 records.*\)\.$",
    "comparison": r"^lr is better calibrated than nb by averaged two-bin error \(.* against .*\), "
    r"p ≤ 0\.01 with 199 draws\. "
    r"1,500 rows, 199 resamples, seed 1; intervals and p-values are approximate\. "
    r"The best Brier score is that of lr \(0\.\d+\)\. To choose a model",
    "curve": r"^The model beats treating all and treating none at \d+ of 99 thresholds \(from .* to .*\)",
    "audit": r"^Wrong beyond chance for 3 of 3 groups, but none stands out: theirs is the overall error\. "
    r"Everyone together: \d+% predicted, \d+% observed\.",
    "recalibration": r"^Recalibration by platt, fitted to 1,500 records\. .*"
    r"On held-out folds: helps; log loss",
    "monitor": r"^Alarm at record [\d,]+: evidence against calibration .* Alarms falsely with probability "
    r"0\.05 at most\.$",
    "reading": r"^Alarm at record",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_result_prints_as_a_sentence(found, name):
    assert re.search(SENTENCES[name], str(found[name])), str(found[name])


NOTEBOOK = ["test", "interval", "tolerance", "comparison", "curve", "audit", "recalibration", "evaluation"]


@pytest.mark.parametrize("name", NOTEBOOK)
def test_notebooks_show_html_that_is_escaped(found, name):
    html = found[name]._repr_html_()
    assert html.startswith("<p>")
    assert html.count("<p>") == html.count("</p>")
    assert "<b>" not in html


def test_an_evaluation_shows_its_groups(found):
    html = found["evaluation"]._repr_html_()
    assert "region = north" in html
    assert "east &lt;b&gt;" in html


def test_the_registry_is_short_and_a_table_in_notebooks():
    assert len(repr(cb.measures())) < 600
    assert repr(cb.measures()).startswith(f"<{len(cb.measures())} measures: ")
    assert cb.measures()._repr_html_().count("<tr>") == len(cb.measures()) + 1
    assert repr(cb.measures()["smooth"]).startswith("<Measure smooth: ")
    assert len(repr(cb.net_benefit(Y, P))) < 200


def test_no_evidence_is_said_as_such():
    said = str(cb.compare(Y, {"a": P, "b": np.clip(P + 1e-4, 0, 1)}, seed=1, draws=99, measure="smooth"))
    assert said.startswith("No difference in smooth calibration error is more than chance (p = ")
    several = {"a": P, "b": np.clip(P - 1e-4, 0, 1), "c": P}
    said = str(cb.compare(Y, several, seed=1, draws=99, measure="smooth"))
    assert "is more than chance (least Holm-adjusted p = " in said
    assert "The best Brier score is that of a and c (" in said
    same = str(cb.compare(Y, {"a": P, "c": P}, seed=1, draws=99, measure="smooth"))
    assert "The Brier scores are equal (" in same
    assert "This measure is not truthful" in said
    assert "is not rejected" in str(cb.calibration_test(Y, P, seed=1, draws=99))
    audit = cb.audit(Y, P, groups={"region": REGION}, seed=1, draws=0)
    assert audit.verdict == "3 groups and everyone ranked by z; p-values need draws."
    flat = cb.net_benefit(Y, np.full(1500, 0.5))
    assert "at 0 of 99" in str(flat) or "most at" in str(flat)
    assert str(cb.Monitor()).startswith("No alarm after 0 records")


def test_hosmer_lemeshow_gives_statistic_degrees_of_freedom_and_p():
    from scipy.stats import chi2

    result = cb.calibration_test(Y, P, measure="hosmer-lemeshow", method="asymptotic")
    degrees = result.details["degrees_of_freedom"]
    assert degrees == 10
    assert result.pvalue == pytest.approx(chi2.sf(result.statistic, degrees))
    assert f"hosmer-lemeshow statistic {result.statistic:.3g}"[:28] in str(result)
    assert "with 10 degrees of freedom" in str(result)
    fitted = cb.calibration_test(Y, P, measure="hosmer-lemeshow", method="asymptotic", fitted=True)
    assert fitted.details["degrees_of_freedom"] == 8
    assert hosmer_lemeshow(Y, P) == pytest.approx(result.statistic)


def test_scores_stand_beside_every_model(found):
    scores = found["comparison"].scores
    assert scores["lr"].score == pytest.approx(cb.brier_score(Y, P))
    assert scores["nb"].miscalibration == pytest.approx(cb.miscalibration(Y, WRONG))
    data = found["comparison"].to_dict()
    assert set(data["scores"]["lr"]) == {"score", "miscalibration", "discrimination", "uncertainty"}


def test_fairness_depends_on_the_options():
    models = {"a": P, "b": WRONG}
    assert cb.compare(Y, models, measure="atb", seed=1, draws=99).fair
    assert not cb.compare(Y, models, measure="atb", norm=1, seed=1, draws=99).fair
    assert cb.compare(Y, models, measure="kernel-squared", bandwidth=0.1, seed=1, draws=99).fair


def test_a_score_needs_no_advice():
    said = str(cb.compare(Y, {"a": P, "b": WRONG}, measure="brier", seed=1, draws=99))
    assert "To choose" not in said
    assert said.startswith("a is better than b by Brier score (")


def test_slope_says_what_it_is_without_predictions_of_0_and_1():
    p = np.concatenate((P, [0.0] * 20, [1.0] * 17))
    y = np.concatenate((Y, [0] * 19 + [1], [1] * 15 + [0] * 2))
    found = cb.evaluate(y, p, measures=["slope", "intercept", "smooth"], draws=19, seed=1)
    without = cb.calibration_slope(Y, P)
    said = "37 predictions are exactly 0 or 1; without them it is"
    assert f"{said} {without:.2f}" in found["slope"].note
    assert found["slope"].low is None
    own = cb.confidence_interval(Y, P, measure="slope", seed=1)  # of the records without them
    inner = found["slope"].inner
    assert (inner.certain, inner.records) == (37, 1500)
    assert np.allclose((inner.low, inner.high), (own.lower, own.upper), atol=1e-3)
    assert f"95% interval {limits_text(inner.low, inner.high)}" in found["slope"].note
    assert "37 predictions" in found["intercept"].note
    assert "37 predictions" not in found["smooth"].note
    assert "exactly" not in cb.evaluate(Y, P, measures=["slope"], draws=19, seed=1)["slope"].note


def test_the_best_of_several_models_is_named_or_none_is():
    half, twin = np.clip(P * 0.5, 0, 1), np.clip(P + 0.001, 0, 1)
    leads = str(cb.compare(Y, {"lr": P, "nb": WRONG, "half": half}, measure="brier", seed=1, draws=199))
    assert re.match(
        r"lr has the best Brier score of 3 models \(0\.\d+\): better than each of the 2 others "
        r"\(largest Holm-adjusted p ≤ 0\.03 with 199 draws\)\.",
        leads,
    ), leads
    ties = str(cb.compare(Y, {"lr": P, "twin": twin, "half": half}, measure="brier", seed=1, draws=199))
    assert re.match(
        r"No model is shown to be best\. (lr|twin) has the best Brier score of 3 models \(0\.\d+\), but "
        r"chance explains its lead over (lr|twin) \(Holm-adjusted p = 0\.\d+\)\. ",
        ties,
    ), ties


def test_dominance_names_the_models():
    said = str(cb.dominance(Y, WRONG, P, names=["nb", "lr"], seed=1, draws=99))
    assert said.startswith("Using nb instead of lr loses at most"), said
    over = str(cb.dominance(Y, WRONG, {"lr": P}, names=["nb"], seed=1, draws=99))
    assert over.startswith("Using nb instead of the best baseline"), over
    with pytest.raises(cb.InvalidInputError, match="two different names"):
        cb.dominance(Y, WRONG, P, names=["lr", "lr"])


def test_a_row_that_seems_to_contradict_the_verdict_is_explained():
    reported = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 300)
        result = cb.evaluate((rng.random(300) < p).astype(int), p, seed=1, draws=99)
        small = [row for row in result.rows if row.pvalue is not None and row.pvalue <= 0.05]
        rejected = result.verdict.pvalue <= 0.05
        explained = "the omnibus test, chosen in advance, is not" in repr(result)
        explained |= "No single row is unusual; the omnibus test of level, slope" in repr(result)
        assert explained == (bool(small) != rejected), seed
        reported += explained
        if reported == 2:
            return
    raise AssertionError("no such data came up, so nothing was checked")
