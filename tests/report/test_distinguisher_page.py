"""The page and the charts of a learned auditor."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import distinguish
from calibrant.report.charts import carriers, giveaways
from calibrant.report.pages import distinguisher_page

pytest.importorskip("jinja2")
pytest.importorskip("altair")
pytest.importorskip("lightgbm")


def found(gap, names=("a", "b"), n=1_500):
    rng = np.random.default_rng(0)
    a, b = rng.choice([0, 1], (2, n))
    y = rng.random(n) < 0.5 + gap * np.where(a == b, 1, -1)
    return distinguish(y, np.full(n, 0.5), dict(zip(names, (a, b), strict=True)), draws=99, seed=1)


def test_what_was_planted_is_drawn_and_said():
    learned = found(0.2)
    page = distinguisher_page(learned, title="Who & what")
    for words in ("The columns know more than the predictions.", "Who &amp; what", learned.rules[0].rule):
        assert words in page, words
    assert "https://" not in page.split("<script", 1)[0]
    drawn = giveaways(learned).to_dict(validate=False)
    gaps = [row["gap"] for row in drawn["datasets"]["data0"]]
    assert gaps == pytest.approx([rule.gap for rule in learned.rules], rel=1e-4)
    shares = carriers(learned).to_dict(validate=False)["datasets"]["data0"]
    assert {row["column"]: row["share"] for row in shares} == pytest.approx(
        dict(learned.importance), rel=1e-4
    )


def test_nothing_found_is_said_too():
    page = distinguisher_page(found(0.0), title="t")
    assert "Nothing gives them away." in page


def test_a_model_that_has_nothing_to_say_can_be_drawn():
    rng = np.random.default_rng(0)
    learned = distinguish(rng.integers(0, 2, 40), np.full(40, 0.5), {"a": np.zeros(40)}, draws=9, seed=1)
    assert "Learned auditor of 40 rows" in distinguisher_page(learned, title="t")


def test_hostile_names_stay_text():
    page = distinguisher_page(found(0.2, ("</script><b>", "b")), title="t")
    assert "</script><b>" not in page
