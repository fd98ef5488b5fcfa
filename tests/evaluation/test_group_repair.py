"""For whom, after the fix: the repair that the report tries, and what it says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.evaluation import group_repair as rooms
from calibrant.evaluation.group_repair import group_repair
from calibrant.report.sections import sections

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


def test_the_section_names_who_pays_and_does_not_promise_a_pass(tmp_path):
    found = evaluated(rows())
    parts = {part.id: part for part in sections(found, "not asked", group_repair(found))}
    section = parts["whom-after"]
    text = " ".join(section.texts)
    assert "no certificate" in text or "still rejects" in text
    assert "of 5 groups" in text
    assert [line[0].text for line in section.sheets[0].lines] == ["as they are", "repaired"]
    page = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "For whom, after the fix?" in page


def test_a_repair_that_is_not_enough_is_said_to_be():
    frame = rows(4_000, off=0.0)
    away = np.where((frame["g"] == "a") == (frame["h"] == 1), 1.5, -1.5)  # no sum of shifts can say this
    frame["y"] = np.random.default_rng(1).random(4_000) < expit(logit(frame["p"]) + away)
    found = evaluated(frame)
    section = {part.id: part for part in sections(found, "", group_repair(found))}["whom-after"]
    assert any("still rejects" in text for text in section.texts)


@pytest.mark.parametrize("kind", ["weights", "masks", "gaps", "order"])
def test_weights_masks_gaps_and_row_order(kind):
    frame = rows(800)
    if kind == "masks":
        masks = {"old": frame["h"].to_numpy() == 1, "b": frame["g"].to_numpy() == "b"}
        assert group_repair(cb.evaluate(frame["y"], frame["p"], groups=masks, **QUICK)).whom.groups == 4
        return
    if kind == "gaps":
        frame["g"] = frame["g"].where(frame["g"] != "c", None)
        assert group_repair(evaluated(frame)).whom.groups == 5
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
    monkeypatch.setattr(rooms, "MOST_VALUES", 3)
    assert "5 values" in group_repair(evaluated(frame))


def test_many_records_are_sampled_alike_for_the_same_seed(monkeypatch):
    monkeypatch.setattr(rooms, "MOST_RECORDS", 500)
    found = evaluated(rows())
    assert group_repair(found).tried_on == 500
    assert group_repair(found).whom == group_repair(found).whom
