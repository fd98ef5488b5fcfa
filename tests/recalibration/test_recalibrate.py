"""recalibrate: known answers, weights, prevalence, warnings, bad input, assessment, export."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.recalibration.samples import CellSample, rows_of
from recalibration.laws import GRID, fit, overconfident

X, Y = [0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]

# Known answers


def test_isotonic_known_answers():
    assert fit(Y, X, method="isotonic", ends="raw").predict(X).tolist() == [0, 0.5, 0.5, 1]
    assert fit(Y, X, method="centered-isotonic").predict(X) == pytest.approx([0.25, 5 / 12, 7 / 12, 0.75])


def test_bounded_slope_known_answers():
    assert fit(Y, X, method="bounded-slope").predict(X) == pytest.approx([0.1, 0.5, 0.5, 0.9])
    assert fit(Y, X, method="bounded-slope", slope=1).predict(X) == pytest.approx([0.3, 0.5, 0.5, 0.7])


def test_venn_abers_known_answers():
    found = fit(Y, X, method="venn-abers")
    lower, upper = found.interval([0.1, 0.4, 0.5, 0.8, 0.9])
    assert lower == pytest.approx([0, 1 / 3, 1 / 3, 1 / 2, 1 / 2])
    assert upper == pytest.approx([1 / 2, 2 / 3, 2 / 3, 1, 1])
    assert found.predict([0.4]) == pytest.approx([(2 / 3) / (1 - 1 / 3 + 2 / 3)])
    assert fit(Y, X, method="venn-abers", merge="brier").predict([0.4]) == pytest.approx([0.5])


def test_shift_known_answer():
    """All predictions one half, three of four outcomes 1: the shift is the log odds."""
    found = fit([1, 1, 1, 0], [0.5] * 4, method="shift", shrink=None)
    assert found.predict([0.5]) == pytest.approx([0.75], abs=1e-8)


def test_equal_predictions_are_shifted_and_that_is_said():
    with pytest.warns(cb.RecalibrationWarning, match="All predictions are equal"):
        found = cb.recalibrate([1, 1, 1, 0], [0.5] * 4, method="platt", shrink=None)
    assert found.predict([0.5]) == pytest.approx([0.75], abs=1e-8)


# Weights, prevalence, clusters


def test_the_kind_of_weights_matters_where_priors_count_records():
    weights = np.full(4, 100.0)
    few = fit(Y, X, method="isotonic", sample_weight=weights)
    many = fit(Y, X, method="isotonic", sample_weight=weights, weights="frequency")
    assert few.predict([0.2]) == pytest.approx([0.25])
    assert many.predict([0.2]) == pytest.approx([0.5 / 101])


def test_prevalence_multiplies_the_odds():
    y, p = overconfident()
    plain, moved = fit(y, p, method="platt"), fit(y, p, method="platt", prevalence=0.1)
    before, after = plain.predict(GRID), moved.predict(GRID)
    base = y.mean()
    ratio = (0.1 / 0.9) / (base / (1 - base))
    assert after / (1 - after) == pytest.approx(before / (1 - before) * ratio)


def test_clusters_are_never_split_over_folds():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 30, 300)
    rows = rows_of(rng.integers(0, 2, 300), rng.random(300), None, clusters=clusters)
    for rest, part in rows.cut(5, 0):
        assert not set(rest.clusters) & set(part.clusters)
    sizes = [part.n for _, part in rows.cut(5, 0)]
    assert max(sizes) - min(sizes) < 20


def test_folds_hold_every_record_once():
    rng = np.random.default_rng(0)
    rows = rows_of(rng.integers(0, 2, 103), rng.random(103), None)
    assert sum(part.n for _, part in rows.cut(5, 0)) == 103
    cells = CellSample(np.array([0.2, 0.5]), np.array([7, 11]), np.array([13, 2]))
    parts = cells.cut(5, 0)
    assert sum(part.ones for _, part in parts).tolist() == [7, 11]
    assert sum(part.zeros for _, part in parts).tolist() == [13, 2]
    assert all(rest.n + part.n == 33 for rest, part in parts)


def test_repeated_rows_in_clusters_do_not_help_by_themselves():
    """Each race 20 times: without clusters the copies leak across folds and memory looks like skill."""
    rng = np.random.default_rng(1)
    p = np.repeat(rng.random(40), 20)
    y = np.repeat(rng.integers(0, 2, 40), 20)
    races = np.repeat(np.arange(40), 20)
    leaky = fit(y, p, method="isotonic", clusters=np.arange(800)).assessment
    honest = fit(y, p, method="isotonic", clusters=races).assessment
    assert leaky.gain > honest.gain


# Auto and the assessment


def test_auto_leaves_calibrated_predictions_alone_and_repairs_others():
    rng = np.random.default_rng(5)
    p = rng.random(2000)
    calm = fit((rng.random(2000) < p).astype(int), p)
    assert calm.chosen == "identity"
    assert "No change is justified by these records." in calm.notes
    y, p = overconfident()
    found = fit(y, p)
    assert found.chosen not in ("identity", "shift")
    assert found.assessment.verdict == "helps"
    assert found.assessment.changes["smooth"].gain > 0
    assert "Assessment(helps" in repr(found.assessment)


def test_candidates_can_be_named_and_identity_is_always_among_them():
    y, p = overconfident(300)
    found = fit(y, p, candidates=["isotonic"])
    assert set(found.details["losses"]) == {"identity", "isotonic"}
    with pytest.raises(cb.CalibrantError, match="candidates must be names"):
        fit(y, p, candidates="isotonic")


def test_a_harmful_method_is_called_so():
    """Raw isotonic regression of noise is certain, and wrong."""
    rng = np.random.default_rng(0)
    p = np.full(200, 0.5) + 1e-3 * rng.random(200)
    found = fit(rng.integers(0, 2, 200), p, method="isotonic", ends="raw")
    assert found.assessment.gain < 0


def test_few_records_are_not_judged():
    assert fit(Y * 3, X * 3, method="shift").assessment.verdict == "too little data to say"
    alone = fit([1], [0.3], method="shift")
    assert alone.assessment is None
    assert "need 2 records" in alone.why_not_assessed


def test_same_seed_same_result_and_the_seed_is_recorded():
    y, p = overconfident(300)
    one = cb.recalibrate(y, p, method="platt")
    again = cb.recalibrate(y, p, method="platt", seed=one.fit.seed)
    assert one.assessment.to_dict() == again.assessment.to_dict()


def test_a_sketch_is_assessed_by_dealing_its_cells_unless_weighted():
    y, p = overconfident(1000)
    sketch = cb.Sketch.from_arrays(y, p)
    assert fit(sketch, None, method="platt").assessment.verdict == "helps"
    weighted = cb.Sketch.from_arrays(y, p, sample_weight=1.0 + np.arange(1000) % 3)
    found = fit(weighted, None, method="platt")
    assert found.assessment is None
    assert "cannot be cut" in found.why_not_assessed


# Warnings and bad input


def test_a_perfect_split_is_suspicious():
    with pytest.warns(cb.RecalibrationWarning, match="trained on"):
        cb.recalibrate([0] * 6 + [1] * 6, np.linspace(0.1, 0.9, 12), method="platt")


def test_scores_the_wrong_way_round_are_told():
    y, p = overconfident(500)
    with pytest.warns(cb.RecalibrationWarning, match="wrong way round"):
        cb.recalibrate(1 - y, p, method="platt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_prob": [0.2, 1.7]}, "y_prob must lie in"),
        ({"y_prob": [0.2, float("nan")]}, "must not be missing"),
        ({"y_prob": [0.2]}, "same length"),
        ({"y_true": [-1, 1]}, "pos_label=1"),
        ({"method": "plat"}, "did you mean 'platt'"),
        ({"weights": "survey"}, "weights must be one of"),
        ({"prevalence": 1.5}, "prevalence must lie strictly between"),
        ({"clusters": [1]}, "one value per row"),
        ({"seed": -1}, "seed must be"),
        ({"method": "platt", "shrink": -1}, "shrink must be"),
        ({"method": "platt", "clip": 0.7}, "clip must be"),
        ({"method": "isotonic", "ends": "flat"}, "ends must be one of"),
        ({"method": "bounded-slope", "slope": -2}, "slope must be"),
        ({"method": "venn-abers", "merge": "mean"}, "merge must be one of"),
        ({"method": "histogram", "bins": 9}, "needs 18 records"),
        ({"method": "histogram", "bins": 0}, "bins must be"),
        ({"method": "histogram", "bins": 1, "tolerance": 0.1}, "must not both"),
        ({"method": "histogram", "tolerance": 0.001}, "needs 1,497,868 records"),
        ({"method": "spline", "knots": 2}, "knots must be"),
        ({"y_prob": [[0.2, 0.9], [0.5, 0.5]]}, "must sum to 1"),
        ({"loss": "hinge"}, "loss must be one of"),
    ],
)
def test_bad_input_is_named(arguments, message):
    given = {"y_true": [0, 1], "y_prob": [0.2, 0.8], **arguments}
    with pytest.raises(cb.CalibrantError, match=message):
        fit(given.pop("y_true"), given.pop("y_prob"), **given)


def test_pairs_of_columns_count_as_their_second():
    pairs = np.column_stack([1 - np.array(X), X])
    found = fit(Y, pairs, method="isotonic")
    assert found.predict(pairs)[:, 1].tolist() == found.predict(X).tolist()
    assert found.predict(pairs).sum(axis=1) == pytest.approx(np.ones(4))


def test_new_predictions_are_checked():
    found = fit(Y, X, method="isotonic")
    for bad in ([1.2], [np.nan], ["a"]):
        with pytest.raises(cb.CalibrantError, match="y_prob"):
            found.predict(bad)
    with pytest.raises(cb.CalibrantError, match="has no interval"):
        found.interval([0.5])


# Files


def test_files_are_versioned_and_damage_is_refused(tmp_path):
    file = tmp_path / "map.json"
    y, p = overconfident(200)
    fitted = fit(y, p, method="platt")
    fitted.assess()
    fitted.save(file)
    stored = json.loads(file.read_text())
    assert cb.load_recalibration(file).assessment.to_dict() == stored["assessment"]
    assert len(stored["fit"]["data"]) == 32
    for change, message in (
        ({"calibrant_recalibration": 99}, "got format 99"),
        ({"map": {"form": "magic"}}, "got 'magic'"),
        ({"map": {"form": "logistic"}}, "must be complete"),
        ({"fit": {}}, "must be complete"),
    ):
        file.write_text(json.dumps({**stored, **change}))
        with pytest.raises(cb.CalibrantError, match=message):
            cb.load_recalibration(file)
    for text in ("", "[1]", "{}", "\x00"):
        file.write_text(text)
        with pytest.raises(cb.CalibrantError, match="must be a recalibration"):
            cb.load_recalibration(file)
    with pytest.raises(cb.CalibrantError, match="folder"):
        fit(y, p, method="shift").save(tmp_path / "no" / "map.json")
    assert [f.name for f in tmp_path.iterdir()] == ["map.json"]


def test_pickles_predict_the_same():
    import pickle

    y, p = overconfident(200)
    found = fit(y, p, method="spline")
    back = pickle.loads(pickle.dumps(found))
    assert back.predict(GRID).tobytes() == found.predict(GRID).tobytes()
    assert back.why_not_assessed == "it was not assessed before it was saved"
    assert found.assessment is not None
    assert pickle.loads(pickle.dumps(found)).assessment.to_dict() == found.assessment.to_dict()


def test_pairs_that_were_fitted_to_are_predicted_too():
    """Both take rows that miss 1 by rounding to four digits."""
    rng = np.random.default_rng(3)
    q = rng.random(100)
    pairs = np.column_stack([np.floor(1e4 * (1 - q)), np.floor(1e4 * q)]) / 1e4
    made = cb.recalibrate(rng.random(100) < q, pairs, method="platt")
    np.testing.assert_array_equal(made.predict(pairs)[:, 1], made.predict(pairs[:, 1]))


def test_dropped_rows_are_counted():
    y, p = overconfident(200)
    y, site = y.astype(float), np.arange(200) % 4
    y[[3, 5]] = np.nan
    for extra in ({}, {"clusters": np.arange(200)}):
        found = fit(y, p, method="platt", missing="drop", **extra)
        assert (found.fit.n, found.details["dropped"]) == (198, 2)
    assert fit(y, p, covariates={"site": site}, missing="drop", method="hierarchical").details["dropped"] == 2
    assert fit(cb.Forecasts(y, p, missing="drop"), None, method="platt").details["dropped"] == 2
    assert "dropped" not in fit(y[6:], p[6:], method="platt").details


def test_forecasts_refuse_what_they_hold_already():
    y, p = overconfident(200)
    forecasts = cb.Forecasts(y, p)
    with pytest.raises(
        cb.InvalidInputError, match="forecasts hold outcomes of 0 and 1 already; got pos_label=1"
    ):
        cb.recalibrate(forecasts, pos_label=1)
    with pytest.raises(cb.CalibrantError, match="missing must be one of error, drop; got 'bogus'"):
        cb.recalibrate(forecasts, missing="bogus")
    assert cb.recalibrate(forecasts, missing="drop", method="platt").fit.n == 200


@pytest.mark.parametrize("gap", [None, np.nan, np.datetime64("NaT")])
def test_missing_cluster_labels_are_no_cluster(gap):
    """They would be dealt to one fold together, as if they were one patient."""
    y, p = overconfident(200)
    dates = np.datetime64("2026-01-01") + np.arange(200)
    labels = (
        dates if isinstance(gap, np.datetime64) else np.arange(200).astype(object if gap is None else float)
    )
    labels[[3, 5]] = gap
    with pytest.raises(
        cb.InvalidInputError, match=r"clusters must not be missing; got .* in row 3 \(2 rows\).*missing=.drop"
    ):
        cb.recalibrate(y, p, clusters=labels, method="platt")
    found = fit(y, p, clusters=labels, method="platt", missing="drop")
    kept = ~np.isin(np.arange(200), [3, 5])
    other = fit(y[kept], p[kept], clusters=labels[kept], method="platt")
    assert (found.fit.n, found.details["dropped"]) == (198, 2)
    assert found.predict(GRID).tolist() == other.predict(GRID).tolist()
    hollow = np.where(kept, p, np.nan)
    assert fit(y, hollow, clusters=labels, method="platt", missing="drop").details["dropped"] == 2
    with pytest.raises(cb.InvalidInputError, match="clusters must have a row with a label; got 200 rows"):
        cb.recalibrate(y, p, clusters=np.full(200, np.nan), missing="drop", method="platt")


def test_one_name_for_two_columns_is_refused():
    y, p = overconfident(300)
    site, other = np.arange(300) % 3, np.arange(300) % 2
    with pytest.raises(
        cb.InvalidInputError, match=r"covariates and groups must have other names.*'site'.*differ"
    ):
        cb.recalibrate(y, p, covariates={"site": site}, groups={"site": other}, method="patch")
    same = fit(y, p, covariates={"site": site, "x": other}, groups={"site": site}, method="patch")
    assert same.fit.n == 300


@pytest.mark.parametrize(
    ("method", "option"),
    [
        ("histogram", {"bins": np.int64(5)}),
        ("histogram", {"tolerance": np.float32(0.25)}),
        ("scaling-binning", {"bins": np.int32(5)}),
        ("spline", {"knots": np.uint8(8)}),
        ("bounded-slope", {"slope": np.int64(3)}),
        ("platt", {"shrink": np.float32(0.5), "clip": np.float32(0.25)}),
        ("platt", {"prevalence": np.float32(0.25)}),
        ("auto", {"folds": np.int64(3), "candidates": ["platt"]}),
    ],
)
def test_numbers_of_numpy_are_numbers(method, option, tmp_path):
    y, p = overconfident(400)
    plain = {name: item.item() if isinstance(item, np.generic) else item for name, item in option.items()}
    found = fit(y, p, method=method, **option)
    assert found.predict(GRID).tolist() == fit(y, p, method=method, **plain).predict(GRID).tolist()
    found.save(tmp_path / "map.json")
    with pytest.raises(cb.CalibrantError):
        fit(y, p, method=method, **{next(iter(option)): np.bool_(True)})


@pytest.mark.parametrize("method", ["shift", "platt", "temperature", "beta", "spline", "scaling-binning"])
def test_a_clip_that_leaves_infinite_logits_is_refused(method):
    y, p = [0, 1, 0, 1, 1], [0.0, 1.0, 0.5, 0.2, 1.0]
    assert np.isfinite(fit(y, p, method=method, clip=1e-16).predict([0.0, 0.3, 1.0])).all()
    for clip in (5e-17, 1e-300, 0.5):
        with pytest.raises(cb.CalibrantError, match="clip must be"):
            fit(y, p, method=method, clip=clip)
