"""No verdict contradicts its table, its chart or its p-value: judged by rules of its own, on odd data."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.report import page
from evaluation.printed_rules import check_printed

KINDS = (
    "few", "one class", "constant", "rare", "weighted", "fractional", "certain", "groups", "sketch",
    "overconfident", "underconfident", "too high", "bump", "calibrated", "grouped sketch",
)  # fmt: skip


def drawn(kind: str, seed: int):
    """Return keyword arguments of evaluate for one odd data set of this kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(1, 11)) if kind == "few" else int(rng.integers(60, 1500))
    p = rng.beta(*rng.uniform(0.3, 3, 2), n)
    if kind == "constant":
        p = np.full(n, rng.random())
    if kind == "rare":
        p = rng.beta(1, 60, n)
    if kind == "certain":
        p = np.where(rng.random(n) < 0.2, np.round(p), p)
    logit = np.log(np.clip(p, 1e-9, 1) / np.clip(1 - p, 1e-9, 1))
    truth = {
        "overconfident": 1 / (1 + np.exp(-0.4 * logit)),
        "underconfident": 1 / (1 + np.exp(-2.5 * logit)),
        "too high": p * 0.75,
        "bump": p - 0.3 * np.exp(-(((p - 0.5) / 0.08) ** 2)) * p,
    }.get(kind, p)
    region = rng.integers(0, 4, n)
    if kind in ("groups", "grouped sketch"):
        truth = np.clip(p + np.where(region == 0, 0.2, 0.0) - np.where(region == 1, 0.2, 0.0), 0, 1)
    y = (rng.random(n) < truth).astype(float)
    if kind == "one class":
        y[:] = float(rng.random() < 0.5)
    if kind == "fractional":
        y = np.clip(truth + rng.normal(0, 0.05, n), 0, 1)
    given = {"y_true": y, "y_prob": p}
    if kind == "weighted":
        given["sample_weight"] = rng.uniform(1, 3, n)
    if kind == "groups":
        given["groups"] = {"region": np.array(["a", "b", "c", "d"])[region]}
    if kind == "sketch":
        given = {"y_true": cb.Sketch.from_arrays(y, p, cells=64).forecasts()}
    if kind == "grouped sketch":
        table = {"y": y, "p": p, "region": np.array(["a", "b", "c", "d"])[region]}
        given = {"y_true": cb.Sketch.from_frame(table, outcome="y", prediction="p", by=["region"], cells=64)}
    return given


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_no_verdict_contradicts_its_table(kind, seed):
    check(cb.evaluate(**drawn(kind, seed), seed=seed, draws=99, confidence=0.9))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_verdict_contradicts_its_table_many_times(kind):
    for seed in range(100, 120):
        check(cb.evaluate(**drawn(kind, seed), seed=seed, draws=99, confidence=0.9))


def check(found):
    """Compare every sentence with the numbers, as a reader would."""
    said = found.verdict
    assert said.next_step
    assert "nan" not in said.sentence.lower().split()
    assert 0 < said.unseen <= 1
    if said.pvalue is None:
        assert said.status == "untested"
        assert not said.calibrated
    else:
        assert (said.pvalue <= said.alpha) == (said.status == "miscalibrated")
    if found.audit is not None and found.audit.wrong_groups():
        assert not said.calibrated
        assert said.worst_group or said.status in ("miscalibrated", "groups")
    if said.status == "miscalibrated":
        check_rejection(found, said)
    else:
        assert said.component == ""
        assert "verconfident" not in said.sentence
    if said.status == "calibrated":
        assert "would not show" in said.what
    check_page(found, said)
    check_printed(found)


def check_rejection(found, said):
    """Directions agree with the data, and predicted and observed are means of the records named."""
    mean, rate = found.facts.mean_prediction, found.facts.base_rate
    if said.what.startswith("Predictions are too"):
        assert ("too high" in said.what) == (mean > rate)
        assert f"in {found.facts.records:,} record" in said.what or said.whom
    if said.component == "slope" and said.what.startswith(("Over", "Under")) and found["slope"].value:
        assert said.what.startswith("Over") == (found["slope"].value < 1)
    if said.component == "certainty":
        assert re.search(r"Certain but wrong|exactly 0 or 1 were wrong", said.sentence) or said.worst_group
    assert re.search(r"too (high|low|extreme|timid)|confident|wrong", said.what)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("0", "Certain but wrong: 2 of 8 rated 0% had the event."),
        ("1", "Certain but wrong: 2 of 20 rated 100% did not have the event."),
        ("01", "Certain but wrong: 2 of 8 rated 0% had the event, 2 of 20 rated 100% did not."),
    ],
)
def test_certain_predictions_that_were_wrong_are_counted(wrong, words):
    p = np.repeat([0.0, 1.0, 0.5], [8, 20, 40])
    y = np.repeat([0.0, 1.0, 0.0, 1.0], [8, 20, 20, 20])
    y[:2] = "0" in wrong
    y[8:10] = "1" not in wrong
    said = cb.evaluate(y, p, draws=19, seed=1).verdict
    assert said.component == "certainty"
    assert said.sentence == words


def test_a_group_wrong_within_itself_says_where_as_its_means_agree():
    rng = np.random.default_rng(5)
    p, region = rng.uniform(0.05, 0.95, 4000), np.array(["a", "b"])[np.arange(4000) % 2]
    truth = np.where(region == "a", 0.5 + 0.3 * (p - 0.5), p)
    y = rng.random(4000) < truth
    found = cb.evaluate(y, p, groups={"region": region}, seed=1, draws=99)
    pattern = r"Worst for a \(region\): predictions between \d+% and \d+% are too (low|high)\."
    assert re.fullmatch(pattern, found.verdict.whom)


def check_page(found, said):
    """The page shows the verdict in the right color, and explains a histogram that seems to disagree."""
    html = page(found)
    tone = {"calibrated": "good", "miscalibrated": "bad", "groups": "bad"}.get(said.status, "unknown")
    assert f'class="verdict {tone}"' in html
    if found.null is not None and said.pvalue is not None:
        disagrees = (found.null.pvalue <= said.alpha) != (said.pvalue <= said.alpha)
        assert ("in the histogram is" in html) == disagrees


def test_too_few_clusters_ask_for_more_of_them():
    given = drawn("calibrated", 5)
    found = cb.evaluate(**given, clusters=np.arange(len(given["y_true"])) % 3, draws=19)
    assert found.verdict.status == "too little data"
    assert found.verdict.what.startswith("Too little data: clusters must amount to at least 10")
    assert (found.verdict.action, found.verdict.next_step) == ("collect", "Collect more clusters.")


@pytest.mark.parametrize("low", [0.0, 1e-320, 1e-9])
def test_odd_predictions_fit_the_page_without_exponents(low):
    rng = np.random.default_rng(6)
    p = np.where(rng.random(400) < 0.5, low, rng.random(400))
    groups = {"a long name of a column that goes on and on, for more than a line of the page": p > 0.5}
    for y in (rng.random(400) < 0.5, np.zeros(400)):
        printed = repr(cb.evaluate(y, p, groups=groups, draws=19))
        assert max(map(len, printed.splitlines())) <= 100
        assert not re.search(r"\d[eE][-+]?\d", printed)
