"""Words of the glossary are linked where a report uses them, and hostile text stays text."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.report.glossary import WORDS, anchor, parts, used


def test_pieces_add_up_to_the_text():
    for text in ("", "no such word", "Witness and dCE, dCE and witness.", *WORDS.values()):
        assert "".join(piece for piece, _ in parts(text)) == text


def test_a_longer_word_wins_over_one_inside_it():
    assert used(["the distance to calibration"]) == {
        "distance to calibration": WORDS["distance to calibration"]
    }
    assert used(["eyewitness"]) == {}


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)
    y = (rng.random(300) < p).astype(int)
    groups = {"who": np.where(rng.random(300) < 0.5, '<i title="witness">', "witness")}
    found = cb.evaluate(y, p, groups=groups, draws=19, seed=1)
    return found.to_html(tmp_path_factory.mktemp("page") / "report.html").read_text(encoding="utf-8")


def test_every_linked_word_is_explained_on_the_page(html):
    linked = set(re.findall(r'class="word" href="#([^"]+)"', html))
    explained = set(re.findall(r'<dt id="([^"]+)"', html))
    assert linked == explained
    assert {anchor("smooth calibration error"), anchor("distance to calibration")} <= linked


def test_names_of_groups_are_escaped(html):
    assert '<i title="' not in html.split("<script")[0]
