"""The page of an audit: complete in itself, escaped, and right about the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from people import people, planted

from calibrant import audit, search_groups
from calibrant.report.pages import audit_page

pytest.importorskip("jinja2")


def test_a_planted_group_heads_the_page():
    y, p, frame, _ = planted(0)
    found = audit(y, p, groups=frame[["sex", "region"]], seed=0)
    confirmed = search_groups(y, p, frame, seed=0, draws=99)
    text = audit_page(found, title="Whom & why", confirmed=confirmed)
    assert "Wrong for some." in text
    assert "sex = F and region = R7" in text
    assert "Whom &amp; why" in text
    assert "What a directed search found" in text
    assert "https://" not in text.split("<script", 1)[0]
    assert "calibrant verify" not in text  # which reads evaluations only


@pytest.mark.parametrize("draws", [0, 49])
def test_other_verdicts(draws):
    y, p, frame = people(3, 800)
    found = audit(y, p, groups=frame[["sex"]], statistic="mean", draws=draws, seed=2)
    text = audit_page(found, title="t")
    assert ("Not tested." if draws == 0 else "No group is off beyond chance.") in text
    assert "Multi-accuracy audit" in text


@pytest.mark.parametrize("count", [60, 510])
def test_the_table_has_every_group_or_says_how_many_it_leaves_out(count):
    p = np.full(10 * count, 0.5)
    codes = np.repeat([f"g{k}" for k in range(count)], 10)
    found = audit(np.tile([0, 1], 5 * count), p, groups={"code": codes}, draws=9, seed=1)
    table = audit_page(found, title="t").split('<table class="sortable">')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + min(count + 1, 500)
    assert ("first 500 of 511 by z" in audit_page(found, title="t")) == (count > 500)


def test_hostile_names_stay_text():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    groups = {"g": np.where(rng.random(300) < 0.5, "<script>alert(1)</script>", "b")}
    text = audit_page(audit(rng.random(300) < p, p, groups=groups, draws=9, seed=1), title="t")
    assert "<script>alert(1)</script>" not in text
