"""For whom, after the fix: the repair that the report tries, and what it says of it."""

from __future__ import annotations

import html
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.evaluation import repair_preview
from calibrant.evaluation.repair_preview import group_repair
from calibrant.evaluation.report import sections

QUICK = {"draws": 19, "confidence": 0, "measures": ["smooth"], "seed": 1}


def rows(n=2_000, off=1.0, seed=0):
    rng = np.random.default_rng(seed)
    g, h, p = rng.choice(list("abc"), n), rng.integers(0, 2, n), rng.beta(2, 3, n)
    y = rng.random(n) < expit(logit(p) + off * (g == "b"))
    return pd.DataFrame({"y": y.astype(int), "p": p, "g": g, "h": h, "w": rng.random(n) + 0.1})


def evaluated(frame, groups=("g", "h"), **options):
    return cb.evaluate(frame, outcome="y", prediction="p", groups=list(groups), **QUICK | options)


def test_it_is_what_recalibrate_says_of_the_same_groups():
    frame = rows()
    found = group_repair(evaluated(frame))
    groups = frame[["g", "h"]]
    direct = cb.recalibrate(frame["y"], frame["p"], groups=groups, method="hierarchical", seed=1)
    assert found.whom == direct.assessment.for_whom
    assert found.tried_on == 2_000
    assert found.whom.after.ratio < found.whom.before.ratio / 2
    assert "g = b" in found.whom.before.worst[0]


def test_the_section_has_a_word_for_every_group(tmp_path):
    found = evaluated(rows())
    section = {part.id: part for part in sections(found, "not asked", group_repair(found))}["whom-after"]
    assert len(section.sheets[0].lines) == found.audit.tested == 12
    words = {line[0].text: line[-1].text for line in section.sheets[0].lines}
    assert words["g = b"] == "fixed"
    assert set(words.values()) <= {"fixed", "better", "open", "worse"}
    change = next(line[2].text for line in section.sheets[0].lines if line[0].text == "g = b")
    side = r"[+-]?\d+\.\d \(-?\d+\.\d to -?\d+\.\d\)"
    assert re.fullmatch(rf"\+{side} → {side}", change)
    page = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Groups before and after a repair" in page


def test_the_head_of_the_page_says_what_the_repair_would_do(tmp_path):
    found = evaluated(rows(), draws=199)
    head = html.unescape(found.to_html(tmp_path / "page.html").read_text("utf-8").partition("</header>")[0])
    assert re.search(r"After the repair, \d+ of \d+ groups are closer to the truth\.", head)
    assert found.verdict.next_step in head


def test_a_repair_that_is_not_enough_leaves_groups_wrong():
    frame = rows(4_000, off=0.0)
    away = np.where((frame["g"] == "a") == (frame["h"] == 1), 1.5, -1.5)  # no sum of shifts can say this
    frame["y"] = np.random.default_rng(1).random(4_000) < expit(logit(frame["p"]) + away)
    found = evaluated(frame)
    section = {part.id: part for part in sections(found, "", group_repair(found))}["whom-after"]
    assert {line[-1].text for line in section.sheets[0].lines} - {"fixed"}


@pytest.mark.parametrize("kind", ["weights", "masks", "gaps", "order"])
def test_weights_masks_gaps_and_row_order(kind):
    frame = rows(800)
    if kind == "masks":
        masks = {"old": frame["h"].to_numpy() == 1, "b": frame["g"].to_numpy() == "b"}
        whom = group_repair(cb.evaluate(frame["y"], frame["p"], groups=masks, **QUICK)).whom
        assert (whom.groups, len(whom.changes)) == (4 + 4, 3)  # in or out of a mask, and pairs
        return
    if kind == "gaps":
        frame["g"] = frame["g"].where(frame["g"] != "c", None)
        whom = group_repair(evaluated(frame)).whom
        assert (whom.groups, len(whom.changes)) == (5 + 6, 12)  # a, b, missing; 0, 1; and pairs
        return
    weight = {"weight": "w"} if kind == "weights" else {}
    shuffled = frame.sample(frac=1, random_state=0)
    one, two = (group_repair(evaluated(part, **weight)).whom for part in (frame, shuffled))
    assert one.least.gain == pytest.approx(two.least.gain, abs=1e-9)
    assert one.after.pvalue == two.after.pvalue


def test_what_cannot_be_tried_is_said(monkeypatch):
    frame = rows(400)
    assert group_repair(cb.evaluate(frame["y"], frame["p"], **QUICK)) is None
    assert "fractions" in group_repair(evaluated(frame.assign(y=frame["y"] * 0.9)))
    monkeypatch.setattr(repair_preview, "MAX_GROUP_VALUES", 3)
    assert "5 values" in group_repair(evaluated(frame))


def test_the_audit_before_the_fix_is_the_one_under_for_whom():
    found = evaluated(rows(), draws=199)
    before = group_repair(found).whom.before
    assert (before.metric, before.pvalue) == (found.audit.metric, found.audit.pvalue)


def test_a_sample_says_that_it_is_one_and_whose_answer_counts(monkeypatch):
    monkeypatch.setattr(repair_preview, "MAX_RECORDS", 1_000)
    monkeypatch.setattr(repair_preview, "SAMPLED", 500)
    found = evaluated(rows())
    section = {part.id: part for part in sections(found, "", group_repair(found))}["whom-after"]
    text = " ".join(section.texts)
    assert "a random sample of 500 of the 2,000 records" in text


def test_many_records_are_sampled_alike_for_the_same_seed(monkeypatch):
    monkeypatch.setattr(repair_preview, "MAX_RECORDS", 1_000)
    monkeypatch.setattr(repair_preview, "SAMPLED", 500)
    found = evaluated(rows())
    assert group_repair(found).tried_on == 500
    assert group_repair(found).whom == group_repair(found).whom


@pytest.mark.parametrize("masks", [False, True])
def test_a_sample_does_not_depend_on_the_order_of_rows(monkeypatch, masks):
    monkeypatch.setattr(repair_preview, "MAX_RECORDS", 300)
    monkeypatch.setattr(repair_preview, "SAMPLED", 100)
    rng = np.random.default_rng(2)
    y, p = rng.integers(0, 2, 400), rng.integers(1, 4, 400) / 4
    groups = {"g": rng.random(400) < 0.5} if masks else {"g": rng.choice(["a", "b", "c"], 400)}
    samples = []
    for order in (np.arange(400), rng.permutation(400)):
        found = cb.evaluate(y[order], p[order], groups={"g": groups["g"][order]}, draws=19, seed=1)
        samples.append(repair_preview._sample(found))
    one, other = samples
    assert one.n == 100
    assert np.array_equal(one.predictions, other.predictions)
    assert np.array_equal(one.outcomes, other.outcomes)
    assert np.array_equal(one.covariates["g"], other.covariates["g"])
