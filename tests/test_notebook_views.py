"""What a notebook shows of every kind of result: a short line of text, and a view in HTML."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.formatting import format_mean, format_value, percent


@pytest.fixture(scope="module")
def results():
    """One result of every kind that people leave on the last line of a cell."""
    rng = np.random.default_rng(0)
    p = rng.random(400).round(2)
    y = (rng.random(400) < p**1.3).astype(int)
    x, other = rng.random(400), rng.random(400)
    group = rng.choice(["<b>north</b>", "south"], 400)
    monitor, groups = cb.Monitor(alpha=0.05), cb.GroupMonitor(["<b>north</b>", "south"])
    fitted = cb.recalibrate(y, p, method="platt", seed=1)
    return {
        "evaluation": cb.evaluate(y, p, groups={"region": group}, draws=19, seed=1),
        "test": cb.calibration_test(y, p, draws=19, seed=1),
        "tolerance": cb.tolerance_test(y, p, accept=0.2, reject=0.3),
        "interval": cb.confidence_interval(y, p, draws=19, seed=1),
        "comparison": cb.compare(y, {"a": p, "b": other}, draws=19, seed=1),
        "plan": cb.required_samples(0.2, draws=19, seed=1),
        "reading": monitor.update(y, p),
        "monitor": monitor,
        "group monitor": (groups.update(y, p, group), groups)[1],
        "measures": cb.measures(),
        "methods": cb.recalibrations(),
        "recalibration": fitted,
        "assessment": fitted.assessment,
        "audit": cb.audit(y, p, groups={"region": group}, draws=19, seed=1),
        "search": cb.search_groups(y, p, {"x": x, "region": group}, draws=19, seed=1),
        "net benefit": cb.net_benefit(y, p),
    }


def test_text_is_short(results):
    for name, result in results.items():
        limit = 1700 if name == "evaluation" else 700
        assert len(repr(result)) < limit, name
        assert not re.search(r"object at 0x", repr(result) + str(result)), name


def test_views_are_html_with_the_text_escaped(results):
    for name, result in results.items():
        view = result._repr_html_()
        assert view.startswith("<"), name
        assert "<b>" not in view, name


def test_measures_are_named_by_what_people_call_them(results):
    view = results["evaluation"]._repr_html_().replace(' style="text-align:left"', "")
    assert "<td>ECE</td>" in view
    assert "<td>smooth</td>" in view
    assert re.search(r"^smooth +0\.", repr(results["evaluation"]), re.MULTILINE)
    assert str(results["interval"]).startswith("Smooth calibration error 0.")
    assert "by the omnibus statistic" in results["plan"]._repr_html_()


def test_every_measure_has_words_of_its_own():
    words = [row.words for row in cb.measures().values()]
    assert len(set(words)) == len(words)
    assert all(4 < len(text) <= 40 for text in words)


def test_catalogues_cannot_be_changed():
    for catalogue in (cb.measures(), cb.recalibrations()):
        with pytest.raises(TypeError):
            catalogue["own"] = None


def test_a_group_monitor_names_who_raised_the_alarm():
    watch = cb.GroupMonitor(["a", "b"])
    watch.update([1] * 80, [0.5] * 80, ["a"] * 80)
    assert "alarm: everybody, a" in repr(watch)
    assert "at record" in str(watch)


@pytest.mark.parametrize("seed", range(12))
def test_the_same_mean_is_written_alike_wherever_it_was_summed(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(2000).round(2)  # many means of such are ties in the last decimal that is shown
    y = (rng.random(2000) < p).astype(int)
    forecasts = cb.Forecasts(y, p)
    everyone = cb.audit(y, p, groups={"g": rng.integers(0, 3, 2000)}, draws=0).everyone
    for write in (format_mean, percent, format_value):
        assert write(forecasts.mean_prediction) == write(everyone.mean_prediction)
        assert write(forecasts.base_rate) == write(everyone.mean_outcome)


def test_texts_stand_left_and_numbers_right(results):
    view = results["audit"]._repr_html_()
    assert re.search(
        r'<td style="text-align:left">everyone</td><td style="text-align:right[^"]*">400</td>', view
    )


def test_a_notebook_shows_the_worst_groups_and_says_how_many_there_are():
    rng = np.random.default_rng(0)
    p, group = rng.random(900), rng.integers(0, 30, 900)
    view = cb.audit((rng.random(900) < p).astype(int), p, groups={"g": group}, draws=0)._repr_html_()
    assert view.count("<tr>") == 1 + 15
    assert "more groups are in .groups" in view
