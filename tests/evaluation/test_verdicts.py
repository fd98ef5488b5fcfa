"""No verdict contradicts its table, its chart or its p-value: judged by rules of its own, on odd data."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.report.page import page
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
def test_no_verdict_contradicts_what_stands_below_it(kind, seed):
    check(cb.evaluate(**drawn(kind, seed), seed=seed, draws=99, confidence=0.9))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_verdict_contradicts_what_stands_below_it_many_times(kind):
    for seed in range(100, 120):
        check(cb.evaluate(**drawn(kind, seed), seed=seed, draws=99, confidence=0.9))


def check(found):
    """Hold every sentence against the numbers, as a reader would."""
    said, text = found.verdict, f"{found.verdict.lead} {found.verdict.sentence}"
    assert said.next_step
    assert "nan" not in text.lower().split()
    assert 0 < said.unseen <= 1
    if said.pvalue is None:
        assert said.status == "untested"
        assert not said.calibrated
    else:
        assert (said.pvalue <= said.alpha) == (said.status == "miscalibrated")
    wrong = (
        [] if found.audit is None else [g for g in found.audit.significant() if g is not found.audit.everyone]
    )
    if wrong:
        assert not said.calibrated
        assert f"Wrong for {len(wrong)} of {found.audit.tested - 1} groups" in text
        assert str(wrong[0].rule) in text
    if said.status == "miscalibrated":
        check_rejection(found, said, text)
    else:
        assert said.spoke == ""
        assert "verconfident" not in text
    if said.status in ("calibrated", "too little data"):
        assert re.search(r"[Ee]rrors? of up to 0?\.?\d", text)
    check_page(found, said)
    check_printed(found)


def check_rejection(found, said, text):
    """A size is quoted only where it exceeds what chance gives, and directions agree with the data."""
    quoted = re.search(r"smooth calibration error is ([\d.e-]+); chance alone would give ([\d.e-]+)\.", text)
    size = found["smooth"]
    assert (quoted is not None) == (size.chance is not None and size.value > size.chance)
    if quoted:
        assert float(quoted[1]) >= float(quoted[2])
    mean, rate = found.facts.mean_prediction, found.facts.base_rate
    if said.spoke == "bias":
        assert ("too high on the whole" in text) == (mean > rate)
    if said.spoke == "slope" and found["slope"].value is not None:
        assert ("Overconfident" in text) == (found["slope"].value < 1)
    if said.spoke == "certainty":
        for value, word in ((0.0, "too low"), (1.0, "too high")):
            here = found.forecasts.values == value
            off = abs(found.forecasts.residuals[here]).sum() > 1e-12
            assert (f"exactly {value:g} are {word}" in text) == off
        check_others(found, said, text)
    assert re.search(r"too (high|low|extreme|timid)", text)
    assert re.search(r"slope \d|predicted, \d|differ from them by \d|\\d of \\d", text)
    if said.spoke == "kuiper":
        assert f"too {'high' if said.direction == 'too high' else 'low'}" in text
        if found["kuiper"].chance is not None:
            assert found["kuiper"].value > found["kuiper"].chance


def check_others(found, said, text):
    """Certain predictions do not silence what the others say."""
    values = found.forecasts.values
    if not np.any((values > 0) & (values < 1)):
        assert "without" not in text
        assert "other prediction" not in text
        return
    inside = found.forecasts.between(1e-300, np.nextafter(1, 0))
    others = cb.calibration_test(inside, draws=999, seed=1)
    if others.pvalue < 0.01:
        assert f"without {found.facts.n - inside.n:,} prediction" in text
    if others.pvalue > 0.15:
        assert f"{inside.n:,} other prediction" in text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("0", "Predictions of exactly 0 are too low (2 of 8, 25.0 %, happened); calibrated"),
        ("1", "Predictions of exactly 1 are too high (2 of 20, 10.0 %, did not happen); calibrated"),
        (
            "01",
            "are too low (2 of 8, 25.0 %, happened) and those of exactly 1 are too high (2 of 20, 10.0 %",
        ),
    ],
)
def test_certain_predictions_that_were_wrong_have_a_direction_and_a_size(wrong, words):
    p = np.repeat([0.0, 1.0, 0.5], [8, 20, 40])
    y = np.repeat([0.0, 1.0, 0.0, 1.0], [8, 20, 20, 20])
    y[:2] = "0" in wrong
    y[8:10] = "1" not in wrong
    said = cb.evaluate(y, p, draws=19, seed=1).verdict
    assert said.spoke == "certainty"
    assert words in said.sentence


def test_a_group_wrong_within_itself_says_where_as_its_means_agree():
    rng = np.random.default_rng(5)
    p, region = rng.uniform(0.05, 0.95, 4000), np.array(["a", "b"])[np.arange(4000) % 2]
    truth = np.where(region == "a", 0.5 + 0.3 * (p - 0.5), p)
    y = rng.random(4000) < truth
    audit = cb.audit(y, p, groups={"region": region}, seed=1)
    assert re.search(
        r"Worst by evidence \(z\): region = a, [\d.]+ % predicted, [\d.]+ % happened; too \w+ for scores",
        audit.verdict,
    )
    found = cb.evaluate(y, p, groups={"region": region}, seed=1, draws=99)
    assert re.search(
        r"happened; too (low|high) for scores 0\.\d+ to 0\.\d+ \([\d,]+ records\)\.", found.verdict.sentence
    )


def check_page(found, said):
    """The page shows the verdict in the right colour, and explains a histogram that seems to disagree."""
    html = page(found)
    tone = {"calibrated": "good", "miscalibrated": "bad", "groups": "bad"}.get(said.status, "unknown")
    assert f'class="verdict {tone}"' in html
    if found.null is not None and said.pvalue is not None:
        disagrees = (found.null.pvalue <= said.alpha) != (said.pvalue <= said.alpha)
        assert ("drawn below" in html) == disagrees
