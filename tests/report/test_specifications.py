"""Charts are written as plain Vega-Lite; Altair, for those who ask for it, says the same."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import calibrant as cb
from calibrant.evaluation.repair_preview import group_differences, propose
from calibrant.evaluation.report import specifications
from calibrant.online import OnlineCalibrator
from calibrant.report import charts
from calibrant.report.charts.canvas import as_altair, as_charts, drawing

RNG = np.random.default_rng(4)
P = RNG.integers(1, 20, 400) / 20
Y = (RNG.random(400) < P**1.5).astype(float)


def of_the_page():
    groups = {"area": RNG.choice(["north", "south"], 400), "year": RNG.integers(2020, 2024, 400)}
    evaluation = cb.evaluate(Y, P, groups=groups, draws=19, seed=1)
    proposal = propose(evaluation.forecasts, seed=1)
    return dict(specifications(evaluation, proposal, group_differences(evaluation)))


def of_models():
    q = np.sqrt(P)
    return {
        "comparison": charts.comparison.spec({"first": cb.Forecasts(Y, P), "second": cb.Forecasts(Y, q)}),
        "murphy": charts.murphy_difference.spec(cb.dominance(Y, P, q, draws=19, seed=1)),
        "net benefit": charts.decision_curves.spec(cb.net_benefits(Y, P, q)),
    }


def of_streams():
    run = OnlineCalibrator().run(Y, P)
    return {
        "certificate": charts.certificate_over_time.spec(run),
        "weights": charts.expert_weights.spec(run),
        "gain": charts.gain_over_time.spec(Y, P, run),
        "evidence": charts.evidence_over_time.spec(Y, P),
    }


def of_a_distinguisher():
    pytest.importorskip("lightgbm")
    given = cb.distinguish(Y, P, {"size": RNG.random(400) + Y}, draws=19, seed=1)
    return {"carriers": charts.carriers.spec(given), "giveaways": charts.giveaways.spec(given)}


def without_additions(reported):
    """Take out what Altair adds: its version, unused sizes of its theme, and data above the only layer."""
    del (
        reported["$schema"],
        reported["config"]["view"]["continuousWidth"],
        reported["config"]["view"]["continuousHeight"],
    )
    if "data" in reported:
        reported["layer"] = [{"data": reported["data"], **layer} for layer in reported["layer"]]
        del reported["data"]
    return reported


@pytest.mark.parametrize("family", [of_the_page, of_models, of_streams, of_a_distinguisher])
def test_altair_finds_every_specification_valid_and_says_the_same(family):
    pytest.importorskip("altair")
    for name, spec in family().items():
        assert without_additions(as_altair(spec).to_dict(validate=True)) == spec, name


ODD = 'a\n"b\\u \u2028'  # would end a JavaScript string, or is not valid in one


def with_odd_names():
    years = {ODD: RNG.integers(2020, 2024, 400)}
    evaluation = cb.evaluate(Y, P, groups=years, draws=19, seed=1)
    seasons = pd.Categorical(
        [f"{ODD}{k % 3}" for k in range(400)], [f"{ODD}{k}" for k in range(3)], ordered=True
    )
    ordered = cb.evaluate(Y, P, groups=pd.DataFrame({ODD: seasons}), draws=19, seed=1)
    masked = cb.audit(Y, P, groups={ODD: RNG.random(400) < 0.5}, draws=19, seed=1)
    compared = cb.dominance(Y, P, np.sqrt(P), draws=19, seed=1)
    return {
        "years": charts.groups_in_order.spec(group_differences(evaluation)[0]),
        "seasons": charts.groups_in_order.spec(group_differences(ordered)[0]),
        "masks": charts.forest.spec(masked),
        "one mask": charts.group_curves.spec(masked),
        "murphy": charts.murphy_difference.spec(compared, first=ODD, second="second"),
    }


def test_names_are_never_read_as_code():
    vl_convert = pytest.importorskip("vl_convert")
    for spec in with_odd_names().values():
        assert "<svg" in vl_convert.vegalite_to_svg(spec)


def test_groups_are_drawn_in_their_order():
    vl_convert = pytest.importorskip("vl_convert")
    seasons = pd.Categorical(
        [("late", "early", "mid")[k % 3] for k in range(400)], ["early", "mid", "late"], True
    )
    evaluation = cb.evaluate(Y, P, groups=pd.DataFrame({"season": seasons}), draws=19, seed=1)
    drawn = vl_convert.vegalite_to_vega(charts.groups_in_order.spec(group_differences(evaluation)[0]))
    assert next(scale["domain"] for scale in drawn["scales"] if scale["name"] == "x") == [
        "early",
        "mid",
        "late",
    ]


def test_charts_for_notebooks_can_be_changed_like_any_of_altair():
    alt = pytest.importorskip("altair")
    chart = charts.cumulative_differences(cb.Forecasts(Y, P))
    assert isinstance(chart, alt.LayerChart)
    assert {type(layer) for layer in chart.layer} == {alt.Chart}
    changed = (chart.properties(width=200) + alt.Chart(alt.NamedData("data0")).mark_point()).interactive()
    assert changed.to_dict()["width"] == 200


def test_charts_are_listed_by_name():
    pytest.importorskip("altair")
    spec = charts.cumulative_differences.spec(cb.Forecasts(Y, P))
    found = as_charts({"cumulative": spec, "another": spec})
    assert len(found) == 2
    assert str(found) == "<2 charts: cumulative, another>"
    assert "Cumulative differences" in found._repr_html_()
    with pytest.raises(KeyError):
        found["absent"]


def test_every_public_chart_has_its_specification():
    assert all(isinstance(getattr(charts, name), drawing) for name in charts.__all__)


def test_a_page_is_written_without_loading_altair(tmp_path):
    pytest.importorskip("vl_convert")
    code = (
        "import sys, calibrant as cb\n"
        "found = cb.evaluate([0, 1, 1, 0] * 50, [0.2, 0.7, 0.6, 0.3] * 50, draws=19, seed=1)\n"
        "found.to_html(sys.argv[1])\n"
        "assert 'altair' not in sys.modules, 'a page needs no Altair, which takes half a second to load'\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "page.html")], check=True, timeout=120)
