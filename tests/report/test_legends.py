"""Every entry of every legend has a symbol that people can see, in every chart of the package."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.online import OnlineCalibrator
from calibrant.report import charts
from calibrant.report.charts.canvas import image_of

UNSEEN = (None, "none", "transparent", "0")


def of_the_page(rng, y, p):
    evaluation = cb.evaluate(y, p, groups={"area": rng.choice(["north", "south"], len(y))}, seed=1)
    return list(evaluation.charts.values())


def of_two_models(rng, y, p):
    q = np.sqrt(p)
    return [
        charts.comparison({"first": cb.Forecasts(y, p), "second": cb.Forecasts(y, q)}),
        charts.murphy_difference(cb.dominance(y, p, q, draws=19, seed=1), first="first", second="second"),
        charts.decision_curves(cb.net_benefits(y, p, q)),
    ]


def of_streams(rng, y, p):
    run = OnlineCalibrator().run(y, p)
    return [
        charts.certificate_over_time(run),
        charts.expert_weights(run),
        charts.gain_over_time(y, p, run),
        charts.evidence_over_time(y, p),
    ]


def of_a_distinguisher(rng, y, p):
    pytest.importorskip("lightgbm")
    given = cb.distinguish(y, p, {"size": rng.random(len(y)) + y}, draws=19, seed=1)
    return [charts.carriers(given), charts.giveaways(given)]


def symbols(chart):
    """Return the attributes of every symbol of every legend, as they are drawn."""
    drawn = image_of(chart, ".svg").decode()
    groups = re.findall(r'role-legend-symbol".*?</g>', drawn, re.DOTALL)
    paths = [path for group in groups for path in re.findall("<path.*?>", group)]
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', path)) for path in paths]


def visible(symbol):
    """Whether there is ink: a stroke, or the inside of a shape that has one."""
    line = symbol.get("stroke") not in UNSEEN and symbol.get("stroke-width") not in UNSEEN
    inside = symbol.get("fill") not in UNSEEN and re.search("[AZ]", symbol["d"]) is not None
    return (line or inside) and float(symbol.get("opacity", 1)) > 0.1


@pytest.mark.parametrize("family", [of_the_page, of_two_models, of_streams, of_a_distinguisher])
def test_every_symbol_of_a_legend_can_be_seen(family):
    rng = np.random.default_rng(4)
    p = rng.integers(1, 20, 200) / 20
    y = (rng.random(200) < p**1.5).astype(float)
    tried = 0
    for chart in family(rng, y, p):
        for symbol in symbols(chart):
            tried += 1
            assert visible(symbol), (
                f"{chart.title.text}: {symbol} cannot be seen. Legends show strokes (charts/canvas.py), "
                'which bars and areas do not have: give theirs legend={"symbolType": "square"}'
            )
    assert tried > 1


def test_a_stroke_without_a_colour_cannot_be_seen():
    assert not visible({"d": "M-5,0L5,0", "fill": "#0072b2", "stroke-width": "3"})
    assert visible({"d": "M-5,0L5,0", "stroke": "#0072b2", "stroke-width": "3"})
    assert visible({"d": "M-5,-5h10v10h-10Z", "fill": "#0072b2", "stroke-width": "0"})
