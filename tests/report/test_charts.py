"""Charts show the numbers they claim to show."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.repair_preview import propose
from calibrant.metrics.scores import isotonic_curve
from calibrant.report import charts
from calibrant.report.charts.canvas import chart_target, image_of, without_text
from calibrant.report.charts.evidence import HALF_WIDTH
from calibrant.report.charts.reliability import Axis, corners_of_isotonic


@pytest.fixture(scope="module")
def forecasts():
    rng = np.random.default_rng(2)
    p = rng.beta(2, 4, 3000)
    return cb.Forecasts(rng.random(3000) < p**1.3, p)


def rows(chart, *columns):
    """Return the first data set that has all these columns."""
    return next(data for data in chart.to_dict()["datasets"].values() if set(columns) <= set(data[0]))


def test_the_cumulative_chart_keeps_the_extremes_and_marks_the_kuiper_interval(forecasts):
    chart = charts.cumulative_differences(forecasts)
    drawn = [row["sum"] for row in rows(chart, "sum", "share")]
    assert max(drawn) - min(drawn) == pytest.approx(cb.kuiper_error(forecasts), rel=1e-4)
    assert len(drawn) <= 402
    edges = [row["edge"] for row in rows(chart, "edge")]
    found = cb.measure(forecasts, "kuiper").details
    inside = (forecasts.values >= found["start"]) & (forecasts.values <= found["stop"])
    assert edges[1] - edges[0] == pytest.approx(forecasts.weights[inside].sum(), rel=1e-4)


def test_the_band_of_the_cumulative_chart_holds_calibrated_curves_as_often_as_it_says():
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 1, 400)
    f = cb.Forecasts(rng.random(400) < p, p)
    limit = HALF_WIDTH * np.sqrt(f.null_variance)
    kept = np.mean([np.abs(cb.Forecasts(rng.random(400) < p, p).curve).max() <= limit for _ in range(600)])
    assert 0.93 < kept < 0.985  # discrete steps make it a little conservative


def test_the_reliability_curve_is_the_isotonic_fit(forecasts):
    drawn = [r for r in rows(charts.reliability_diagram(forecasts), "curve") if "isotonic" in r["curve"]]
    fit = isotonic_curve(forecasts)
    at = np.searchsorted(forecasts.values, [r["prediction"] * (1 - 1e-5) for r in drawn])
    assert [r["rate"] for r in drawn] == pytest.approx(fit[at], abs=1e-4)


def test_the_witness_chart_attains_the_smooth_error(forecasts):
    drawn = rows(charts.smooth_witness(forecasts), "weight")
    weights = np.interp(forecasts.values, [r["prediction"] for r in drawn], [r["weight"] for r in drawn])
    assert forecasts.residuals @ weights == pytest.approx(cb.smooth_calibration_error(forecasts), rel=0.02)


def test_the_threshold_chart_marks_the_worst_threshold(forecasts):
    curve = cb.threshold_loss_curve(forecasts, recalibrator="isotonic", seed=1)
    chart = charts.threshold_loss(curve)
    worst = rows(chart, "worst")[0]["worst"]
    assert curve.at(worst) == pytest.approx(curve.peaks.max(), rel=1e-3)
    assert max(r["loss"] for r in rows(chart, "threshold", "loss")) == pytest.approx(
        1000 * curve.peaks.max(), rel=1e-4
    )


def test_the_null_histogram_counts_every_draw():
    draws = np.random.default_rng(1).gamma(3, 0.01, 500)
    chart = charts.null_histogram(draws, 0.2, 0.002, "smooth")
    assert sum(r["draws"] for r in rows(chart, "draws")) == 500
    assert rows(chart, "observed")[0]["observed"] == 0.2


def test_the_forest_and_the_picker_hold_the_worst_groups(forecasts):
    rng = np.random.default_rng(3)
    p = rng.uniform(0, 1, 2000)
    kind = rng.choice(list("abcdefgh"), 2000)
    found = cb.audit(rng.random(2000) < p, p, groups={"kind": kind}, draws=19, seed=1)
    drawn = rows(charts.forest(found), "gap", "group")
    assert [r["group"] for r in drawn] == [g.rule for g in found.groups[:20]]
    assert [r["gap"] for r in drawn] == pytest.approx(
        [g.mean_outcome - g.mean_prediction for g in found.groups[:20]], abs=1e-5
    )
    spec = charts.group_curves(found).to_dict()
    picker = next(p for p in spec["params"] if p["name"] == "group")
    assert picker["bind"]["options"] == [c.rule for c in found.curves]


def test_two_or_three_models_can_be_compared(forecasts):
    rng = np.random.default_rng(4)
    p = rng.uniform(0, 1, 500)
    other = cb.Forecasts(rng.random(500) < p, p)
    drawn = rows(charts.comparison({"first": forecasts, "second": other}), "curve")
    assert {r["curve"] for r in drawn} == {"first", "second"}
    for models in ({"one": forecasts}, {str(k): other for k in range(4)}):
        with pytest.raises(cb.CalibrantError, match="two or three"):
            charts.comparison(models)


@pytest.mark.parametrize("scale", [1e-3, 1e-9])
def test_tiny_probabilities_fill_the_picture(scale):
    rng = np.random.default_rng(5)
    p = rng.uniform(0, scale, 2000)
    chart = charts.reliability_diagram(cb.Forecasts(rng.random(2000) < p, p), scale="linear").to_dict()
    domain = next(
        layer["encoding"]["x"]["scale"]["domain"]
        for layer in chart["layer"]
        if "scale" in layer["encoding"].get("x", {})
    )
    assert domain[1] <= max(2 * scale, 0.06)


@pytest.fixture
def one_prediction():
    """Return forecasts whose isotonic curve is one point, off the diagonal."""
    return cb.Forecasts([0, 1, 1, 0] * 20, [0.4] * 80)


@pytest.mark.parametrize("other", [0.4, 0.4001, 0.4 + 1e-9, 0.9], ids=str)
def test_the_smoothed_curve_is_drawn_inside_the_frame_however_narrow_that_is(other):
    forecasts = cb.Forecasts([0, 1, 1, 1] * 20, [0.4, other] * 40)
    chart = charts.reliability_diagram(forecasts, curve="smoothed", scale="linear")
    drawn = rows(chart, "curve")
    shown = next(
        layer["encoding"] for layer in chart.to_dict()["layer"] if "scale" in layer["encoding"].get("y", {})
    )
    for channel, column in (("x", "prediction"), ("y", "rate")):
        low, high = shown[channel]["scale"]["domain"]
        assert low - 1e-6 <= min(r[column] for r in drawn) <= max(r[column] for r in drawn) <= high + 1e-6


@pytest.mark.parametrize(("start", "gap"), [(1 - 1e-6, 1e-8), (0.4, 1e-10), (0.123456, 1e-7), (0.0, 1e-3)])
def test_predictions_that_begin_with_the_same_digits_are_told_apart(start, gap):
    p = start + gap * np.arange(100)
    forecasts = cb.Forecasts(np.arange(100) % 3 == 0, p)
    chart = charts.reliability_diagram(forecasts, scale="linear")
    fit = [row["prediction"] for row in rows(chart, "curve")]
    assert (min(fit), max(fit)) == pytest.approx((p[0], p[-1]), rel=0, abs=gap / 10)
    assert all(row["from"] < row["to"] for row in rows(chart, "from", "to"))
    assert len({row["prediction"] for row in rows(chart, "lower", "upper")}) >= 100
    assert len({row["prediction"] for row in rows(charts.smooth_witness(forecasts), "weight")}) == 100


def test_predictions_a_rounding_apart_have_a_band_that_can_be_seen():
    p = np.repeat([0.5, np.nextafter(0.5, 1)], 20)
    layers = charts.reliability_diagram(cb.Forecasts(np.arange(40) % 2, p)).to_dict()["layer"]
    assert any(layer["mark"]["type"] == "rule" and "y2" in layer["encoding"] for layer in layers)


@pytest.mark.parametrize(("y", "p"), [([1, 0, 0, 0, 0], [0.2] * 5), ([1, 0, 0], [1 / 3] * 3), ([0.7], [0.7])])
def test_the_base_rate_as_prediction_is_drawn_as_a_dot(y, p):
    chart = charts.reliability_diagram(cb.Forecasts(y, p), curve="smoothed", scale="linear")
    drawn = rows(chart, "curve")
    assert drawn
    assert [row[column] for row in drawn for column in ("prediction", "rate")] == pytest.approx(
        [p[0]] * 2 * len(drawn), rel=1e-5
    )


def test_a_curve_that_is_one_point_is_drawn_as_a_dot(one_prediction):
    proposal = propose(one_prediction, seed=1)
    compared = charts.comparison({"first": one_prediction, "second": cb.Forecasts([0, 1], [0.2, 0.9])})
    drawn = (charts.reliability_diagram(one_prediction), charts.recalibration_map(*proposal), compared)
    for chart, dots in zip(drawn, (1, 3, 1), strict=True):
        marks = [layer["mark"] for layer in chart.to_dict()["layer"]]
        assert sum(mark["type"] == "point" for mark in marks) == dots, chart.title.text


def test_dots_on_the_line_of_the_witness_have_its_colour(one_prediction):
    marks = [layer["mark"] for layer in charts.smooth_witness(one_prediction).to_dict()["layer"]]
    line = next(mark for mark in marks if mark["type"] == "line")
    assert line["point"]["color"] == line["color"]


def test_a_missing_altair_is_said_with_the_remedy(forecasts, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(cb.CalibrantError, match=r"calibrant\[report\]"):
        charts.cumulative_differences(forecasts)


def test_charts_are_saved_for_papers_with_or_without_their_text():
    chart = charts.reliability_diagram(cb.Forecasts([0, 1, 1, 0, 1], [0.2, 0.4, 0.6, 0.6, 0.9]))
    full, bare = image_of(chart, ".svg").decode(), image_of(without_text(chart), ".svg").decode()
    assert "Reliability diagram" in full
    assert "Reliability diagram" not in bare
    assert "dashed diagonal" not in image_of(without_text(chart, title=True), ".svg").decode()
    assert image_of(chart, ".png").startswith(b"\x89PNG")
    assert image_of(chart, ".pdf").startswith(b"%PDF")
    assert chart_target("reliability=a/b.svg")[1].name == "b.svg"
    for wrong, said in (
        ("reliability", "NAME=FILE"),
        ("reliability=x.gif", ".svg"),
    ):
        with pytest.raises(cb.CalibrantError, match=said):
            chart_target(wrong)


def test_labels_of_long_groups_are_wrapped_and_stay_apart():
    rng = np.random.default_rng(0)
    p, long = rng.random(400), "a category whose name is much longer than one line of a chart can hold"
    found = cb.audit(
        rng.random(400) < p, p, groups={"k": np.where(p < 0.5, long + " A", long + " B")}, draws=9, seed=1
    )
    labels = [row["label"] for row in charts.forest(found).to_dict()["datasets"]["data0"]]
    assert len(set(labels)) == len(labels)
    assert max(len(line) for label in labels for line in label.split("\n")) <= 40


def test_the_smoothed_curve_fades_where_records_are_few():
    rng = np.random.default_rng(0)
    p = np.concatenate((rng.uniform(0, 0.3, 3000), [0.95, 0.97]))
    spec = charts.reliability_diagram(cb.Forecasts(rng.random(len(p)) < p, p), curve="smoothed").to_dict()
    faint = [
        row["prediction"] for data in spec["datasets"].values() for row in data if row.get("opacity") == 0.3
    ]
    assert faint
    assert min(faint) > 0.25


def test_mostly_certain_predictions_are_drawn_as_observed():
    """A kernel as wide as the data was flat at 0 where 5% occurred; the isotonic fit is not."""
    p = np.repeat([0.0, 0.02, 0.98, 1.0], [400, 100, 100, 400])
    y = np.repeat([1, 0, 1, 0, 1, 0, 1, 0], [20, 380, 10, 90, 90, 10, 380, 20])
    drawn = rows(charts.reliability_diagram(cb.Forecasts(y, p), scale="linear"), "curve")
    rates = {row["prediction"]: row["rate"] for row in drawn}
    assert rates[0.0] == pytest.approx(0.05)
    assert rates[1.0] == pytest.approx(0.95)


def test_rare_events_are_placed_by_their_log_odds():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 100, 4000)
    forecasts = cb.Forecasts(rng.random(4000) < p, p)
    labels = [
        layer["encoding"]["x"].get("axis", {}).get("labelExpr", "")
        for layer in charts.reliability_diagram(forecasts).to_dict()["layer"]
        if isinstance(layer["encoding"].get("x"), dict)
    ]
    assert any("exp(-datum.value)" in label for label in labels)
    for options in ({"scale": "odd"}, {"curve": "odd"}):
        with pytest.raises(cb.CalibrantError, match="odd"):
            charts.reliability_diagram(forecasts, **options)


@pytest.mark.parametrize("curve", ["isotonic", "spline", "smoothed"])
def test_the_public_diagram_can_be_saved(curve, tmp_path):
    loans = cb.load_demo(800)
    chart = cb.reliability_diagram(loans, outcome="default", prediction="p", curve=curve)
    chart.save(tmp_path / "diagram.svg")
    assert "<svg" in (tmp_path / "diagram.svg").read_text(encoding="utf-8")


def test_with_predictions_of_0_and_1_the_curve_starts_and_ends_at_the_observed_frequencies():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.95, rng.integers(0, 2, 2000), rng.random(2000))
    y = rng.random(2000) < 0.049 + 0.9 * p
    line = corners_of_isotonic(cb.Forecasts(y, p))
    assert line.rate[0] == pytest.approx(y[p == 0].mean(), abs=0.01)
    assert line.rate[-1] == pytest.approx(y[p == 1].mean(), abs=0.01)


def test_the_logit_axis_of_rare_events_shows_the_bulk_of_the_predictions():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 40, 5000)  # some are as small as 1e-9
    axis = Axis.of("auto", cb.Forecasts(rng.random(5000) < p, p))
    assert axis.logit
    assert 1e-6 < axis.low < np.quantile(p, 0.05) < p.max() < axis.high < 0.6
    assert not Axis.of("auto", cb.Forecasts([0, 1], [0.3, 0.6])).logit
    with pytest.raises(cb.CalibrantError, match="scale"):
        Axis.of("probit", cb.Forecasts([0, 1], [0.3, 0.6]))
