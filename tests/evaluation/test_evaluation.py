"""Evaluations: the verdict, the rows, the JSON, and what they do with difficult data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from samples import samples

import calibrant as cb
from calibrant.demo import demonstration
from calibrant.metrics.lookup import measures
from calibrant.report.rendering import library, script_json


def data(n=800, wrong=0.0, seed=3):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.8, n)
    return rng.random(n) < p + wrong, p


def test_calibrated_data_are_called_calibrated_and_wrong_ones_are_not():
    assert cb.evaluate(*data(), seed=1).verdict.calibrated
    found = cb.evaluate(*data(wrong=0.1), seed=1).verdict
    assert not found.calibrated
    assert found.direction == "too low"
    assert found.pvalue < 0.01
    assert found.size == pytest.approx(0.1, abs=0.03)
    assert found.noise < found.size / 3
    assert "too low" in found.sentence


@pytest.mark.slow
def test_the_verdict_is_right_about_as_often_as_it_claims():
    alarms = sum(not cb.evaluate(*data(200, seed=s), draws=99, seed=s).verdict.calibrated for s in range(60))
    assert alarms <= 8  # level 0.05 of 60: more than 8 has probability below 0.01


def test_the_rows_are_the_headline_rows_of_the_registry():
    found = cb.evaluate(*data(), seed=1)
    assert [row.about.name for row in found.rows] == [m.name for m in measures().values() if m.headline]
    assert [row.about.name for row in cb.evaluate(*data(), seed=1, measures=["ks", "brier"]).rows] == [
        "ks",
        "brier",
    ]
    with pytest.raises(cb.CalibrantError, match="smooth"):
        cb.evaluate(*data(), measures=["smoth"])


def test_every_value_is_what_the_measure_gives():
    y, p = data()
    found = cb.evaluate(y, p, seed=1)
    for row in found.rows:
        if row.value is not None:
            assert row.value == cb.measure(cb.Forecasts(y, p), row.about.name).value


def test_distances_are_those_of_the_view_and_share_what_the_rows_have_taken():
    y, p = data()
    found = cb.evaluate(y, p, seed=1, measures=["smooth", "interval"])
    own, view = found.distances.to_dict(), cb.distances(y, p).to_dict()
    assert (own["lower"], own["upper"]) == (view["lower"], view["upper"])
    for here, there in zip(own["related"], view["related"], strict=True):
        if here["name"] == "upper-distance":  # only `distances` takes its time to prove a better bound
            assert (here.pop("options"), there.pop("options")) == ({"time_limit": 0.0}, {"time_limit": 15.0})
        assert here == there
    for name in ("smooth", "interval"):
        assert found.distances[name] is found[name].measurement


def test_arrays_and_forecasts_give_the_same_evaluation():
    y, p = data()
    one, other = cb.evaluate(y, p, seed=4), cb.evaluate(cb.Forecasts(y, p), seed=4)
    assert one.to_dict() == other.to_dict()


def test_the_same_seed_gives_the_same_page_and_a_drawn_seed_is_recorded(tmp_path):
    y, p = data(500)
    groups = {"half": np.arange(500) < 250}
    first = cb.evaluate(y, p, groups=groups, seed=9).to_html(tmp_path / "a.html").read_bytes()
    second = cb.evaluate(y, p, groups=groups, seed=9).to_html(tmp_path / "b.html").read_bytes()
    assert first == second
    drawn = cb.evaluate(y, p)
    assert drawn.to_dict() == cb.evaluate(y, p, seed=drawn.seed).to_dict()


@pytest.mark.slow
def test_the_page_stays_small_for_many_rows(tmp_path):
    d = demonstration(1_000_000, seed=2)
    page = cb.evaluate(d["default"], d["p"], seed=1, draws=19).to_html(tmp_path / "r.html")
    assert page.stat().st_size < 2_000_000


def test_the_page_is_small_and_names_no_address_to_fetch(tmp_path):
    d = demonstration(5000, seed=2)
    groups = {"employment": d["employment"], "region": d["region"]}
    page = cb.evaluate(d["default"], d["p"], groups=groups, seed=1).to_html(tmp_path / "r.html")
    assert page.stat().st_size < 2_000_000
    text = page.read_text(encoding="utf-8").replace(library(), "")  # the policy below stops the library too
    assert not re.search(
        r"<(script|img|iframe|link|source)[^>]+(src|href)\s*=\s*[\"']?(?!data:,)[^\"'>\s]+", text
    )
    assert "default-src 'none'" in text


def test_groups_are_audited_and_need_rows():
    y, p = data(wrong=0.0)
    half = np.arange(len(y)) % 2 == 0
    shifted = np.where(half, np.clip(p - 0.04, 0, 1), p)
    found = cb.evaluate(y, shifted, groups={"even rows": half}, seed=1)
    assert found.audit is not None
    assert found.audit.worst.rule == "even rows"
    assert {"groups", "group-curves"} <= set(found.charts)
    again = cb.evaluate(cb.Forecasts(y, shifted), groups={"even rows": half}, seed=1)
    assert again.audit.to_dict() == found.audit.to_dict()
    with pytest.raises(cb.CalibrantError, match="rows are not known"):
        cb.evaluate(cb.Sketch.from_arrays(y, p).forecasts(), groups={"even rows": half})


def test_missing_values_are_refused_or_dropped_and_counted():
    y, p = data(100)
    p = p.copy()
    p[7] = np.nan
    with pytest.raises(cb.CalibrantError, match="row 7"):
        cb.evaluate(y, p)
    found = cb.evaluate(y, p, missing="drop", seed=1)
    assert found.facts.dropped == 1
    assert "1 row with missing values left out" in " ".join(repr(found).split())


def test_rows_that_a_sketch_leaves_out_need_not_be_missing():
    rows = {"y": [0, 1] * 50, "p": [1.5, 0.25001, 0.25002, 0.75] * 25}
    sketch = cb.Sketch.from_frame(rows, outcome="y", prediction="p", invalid="drop", cells=64)
    assert "; 25 rows left out" in repr(cb.evaluate(sketch, draws=19, seed=1))


def test_fractional_outcomes_are_measured_and_tested_by_signs(tmp_path):
    y, p = data(wrong=0.1)
    y = y.astype(float)
    y[::7] = 0.5
    found = cb.evaluate(y, p, groups={"half": np.arange(len(y)) % 2 == 0}, seed=1)
    for name in ("kuiper", "smooth", "ece", "atb", "slope"):
        tested = cb.calibration_test(y, p, measure=name, seed=1)
        assert (found[name].pvalue, found[name].chance) == (tested.pvalue, tested.null_mean), name
        assert (found[name].pvalue_method, tested.method) == ("signs", "signs")
    assert found.verdict.noise == found["smooth"].chance
    assert "chance alone" not in found.verdict.sentence
    assert found["brier-mcb"].pvalue is None
    assert not any("fraction" in row.note for row in found.rows)
    count = len(y[::7])
    assert found.facts.fractional == count
    printed = " ".join(repr(found).split())
    assert printed.count("fractions") == 1
    assert f"{count:,} of {len(y):,} outcomes are fractions" in printed
    assert found["smooth"].low <= found["smooth"].value <= found["smooth"].high
    assert found.to_html(tmp_path / "r.html").stat().st_size > 1000


def test_many_fractional_outcomes_get_a_verdict():
    rng = np.random.default_rng(0)
    p = rng.random(5000)  # more levels than are simulated
    for truth, calibrated in ((p, True), (p**1.2, False)):
        y = np.clip(truth + rng.uniform(-0.1, 0.1, 5000) * np.minimum(p, 1 - p), 0, 1)
        assert cb.evaluate(y, p, seed=1).verdict.calibrated is calibrated


@settings(max_examples=25)
@given(samples(max_size=12))
def test_ugly_data_give_an_evaluation_and_finite_json(sample):
    found = cb.evaluate(sample.y, sample.p, sample_weight=sample.w, seed=1, draws=19)
    text = script_json(found.to_dict())
    assert json.loads(text)["schema_version"] == 2
    assert repr(found)
    assert found._repr_html_()


@pytest.mark.parametrize(
    ("y", "p"),
    [([1], [0.3]), ([0], [0.0]), ([1, 1], [1.0, 1.0]), ([0, 1], [0.5, 0.5]), ([1, 1, 1], [0.1, 0.1, 0.1])],
)
def test_tiny_data_give_a_page(y, p, tmp_path):
    found = cb.evaluate(y, p, seed=1, draws=19)
    assert found.to_html(tmp_path / "r.html").stat().st_size > 1000
    for chart in found.charts.values():
        chart.to_dict()  # with Altair's own check of the specification


def test_charts_are_valid_and_can_be_saved(tmp_path):
    d = demonstration(800, seed=2)
    charts = cb.evaluate(d["default"], d["p"], groups={"region": d["region"]}, seed=1).charts
    for name, chart in charts.items():
        chart.to_dict()
        assert chart.title.text, name
    charts["reliability"].save(tmp_path / "r.svg")
    charts["cumulative"].save(tmp_path / "c.png")
    assert "<svg" in (tmp_path / "r.svg").read_text()[:300]


def test_to_frame_is_a_table_of_the_rows():
    found = cb.evaluate(*data(), seed=1)
    for backend in ("pandas", "polars", "pyarrow"):
        frame = found.to_frame(backend)
        assert len(frame) == len(found.rows)


def test_the_library_is_kept_and_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    library.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = library()
    assert "vegaEmbed" in code
    assert "</script" not in code
    (kept,) = (tmp_path / "calibrant").iterdir()
    assert kept.read_text(encoding="utf-8") == code
    library.cache_clear()
    assert library() == code
    library.cache_clear()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert library() == code
    library.cache_clear()


def test_script_json_survives_hostile_text():
    hostile = "</script><!--<script>\u2028&amp;"
    text = script_json({hostile: [hostile, float("nan"), float("inf")]})
    assert "<" not in text
    assert json.loads(text) == {hostile: [hostile, None, None]}


def test_the_documented_keys_are_the_keys():
    """docs/report-schema.md describes the JSON that is written: no key more, none less."""
    found = cb.evaluate(*data(), seed=1).to_dict()
    text = (Path(__file__).parents[2] / "docs" / "report-schema.md").read_text(encoding="utf-8")
    top = re.findall(r"^\| `(\w+)` \|", text.split("`verdict`\n")[0], re.MULTILINE)
    assert top == list(found)
    for part in (found["verdict"], found["facts"], found["measures"][0], found["options"]):
        for key in part:
            assert f"`{key}`" in text, key


def test_progress_is_told_step_by_step():
    reported = []
    cb.evaluate(
        [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.7, 0.4, 0.9, 0.4], seed=1, draws=19, progress=reported.append
    )
    assert reported == sorted(reported)
    assert len(reported) > 5
    assert reported[-1] == pytest.approx(1.0)


def test_a_sketch_of_fractions_is_never_called_calibrated():
    p = np.random.default_rng(1).random(1000)
    found = cb.evaluate(
        cb.Sketch.from_arrays(0.3 * p, p).forecasts(), measures=["in-the-large"], draws=19, seed=1
    )
    assert not found.verdict.calibrated
    assert found.verdict.status == "untested"
    assert "cannot be tested from this sketch" in found.verdict.sentence
    row = found["in-the-large"]
    assert row.low <= row.value <= row.high < -0.25


def test_a_weighted_sketch_is_called_weighted_and_judged_like_its_rows():
    rng = np.random.default_rng(3)
    p, w = rng.beta(1, 50, 5000), rng.uniform(1, 3, 5000)
    sketch = cb.Sketch.from_arrays(rng.random(5000) < 2 * p, p, sample_weight=w).forecasts()
    found = cb.evaluate(sketch, measures=["kuiper"], draws=99, seed=1)
    assert found.facts.weighted
    assert not found.verdict.calibrated


def test_weights_whose_squares_vanish_are_refused():
    p = np.random.default_rng(1).random(100)
    with pytest.raises(cb.CalibrantError, match="squares that a float can hold"):
        cb.Sketch.from_arrays(p < 0.5, p, sample_weight=np.full(100, 1e-160)).forecasts()
