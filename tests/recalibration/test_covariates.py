"""Repair by covariates: hierarchical, boost and patch as a user meets them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit, logit

from calibrant import audit, load_recalibration, recalibrate
from calibrant.errors import CalibrantError
from calibrant.recalibration.result import RecalibrationWarning

pytest.importorskip("lightgbm")
METHODS = ("hierarchical", "boost", "patch", "augment")
QUICK = {"boost": {"trees": 60, "learning_rate": 0.1}}


def people(seed: int, n: int, wrong: float = 1.0) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Predictions that are too low for region R2 and for the old, by `wrong` on the logit."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["R0", "R1", "R2", "R3"], n),
            "age": np.round(rng.uniform(18, 90, n), 1),
            "noise": rng.integers(0, 5, n).astype(float),
        }
    )
    p = rng.beta(2, 3, n)
    off = wrong * ((frame["region"] == "R2").to_numpy() + (frame["age"] > 70).to_numpy())
    return (rng.random(n) < expit(logit(p) + off)).astype(int), p, frame


def loss(y: np.ndarray, q: np.ndarray) -> float:
    q = np.clip(q, 1e-6, 1 - 1e-6)
    return float(-np.mean(y * np.log(q) + (1 - y) * np.log1p(-q)))


def fitted(method: str, seed: int = 0, n: int = 3000, **options):
    y, p, frame = people(seed, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        return recalibrate(
            y, p, method=method, covariates=frame, seed=1, **{**QUICK.get(method, {}), **options}
        )


@pytest.mark.parametrize("method", METHODS[:3])
def test_what_is_wrong_for_some_is_repaired_for_them(method):
    made = fitted(method, n=4000)
    y, p, frame = people(9, 6000)
    q = made.predict(p, frame)
    whole = recalibrate(*people(0, 4000)[:2], method="platt", seed=1).predict(p)
    assert loss(y, q) < loss(y, whole) - 0.01 < loss(y, p)
    before = audit(y, p, groups=frame[["region"]], draws=99, seed=1)
    after = audit(y, q, groups=frame[["region"]], draws=99, seed=1)
    assert after.ratio < before.ratio / 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: {name: frame[name].tolist() for name in frame},
        lambda frame: frame.assign(extra=1)[["extra", "age", "noise", "region"]],
    ],
)
def test_new_rows_may_come_in_any_container(method, convert):
    made = fitted(method)
    _, p, frame = people(3, 200)
    np.testing.assert_array_equal(made.predict(p, convert(frame)), made.predict(p, frame))


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_map_predicts_the_same_to_the_last_bit(method, tmp_path):
    made = fitted(method, n=1200)
    path = tmp_path / "map.json"
    made.with_assessment("not asked for").save(path)
    again = load_recalibration(path)
    _, p, frame = people(4, 500)
    np.testing.assert_array_equal(again.predict(p, frame), made.predict(p, frame))
    stored = json.loads(path.read_text())
    assert stored["map"]["form"] == method
    assert "pickle" not in path.read_text()


@pytest.mark.parametrize("method", METHODS)
def test_row_order_changes_nothing(method):
    y, p, frame = people(5, 1500)
    p = np.round(p, 2)
    order = np.random.default_rng(0).permutation(1500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        options = {"method": method, "seed": 2, **QUICK.get(method, {})}
        one = recalibrate(y, p, covariates=frame, **options)
        two = recalibrate(y[order], p[order], covariates=frame.iloc[order], **options)
    _, new, other = people(6, 300)
    np.testing.assert_allclose(one.predict(new, other), two.predict(new, other), rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_unseen_categories_and_new_gaps_are_counted_aloud(method):
    made = fitted(method)
    _, p, frame = people(7, 100)
    frame.loc[:4, "region"] = "R9"
    frame.loc[:2, "age"] = np.nan
    with pytest.warns(RecalibrationWarning) as said:
        q = made.predict(p, frame)
    text = " ".join(str(one.message) for one in said)
    assert "'region' has categories that were not seen in the fit, in 5 rows" in text
    assert "'age' is missing in 3 rows; in the fit it never was" in text
    assert np.all((q > 0) & (q < 1))
    with pytest.warns(RecalibrationWarning) as again:
        made.apply(frame.assign(p=p), prediction="p")
    assert {str(one.message) for one in said} <= {str(one.message) for one in again}


@pytest.mark.parametrize("method", METHODS[:3])
def test_gaps_that_the_fit_has_seen_are_a_level_of_their_own(method):
    y, p, frame = people(8, 4000)
    gap = np.random.default_rng(1).random(4000) < 0.3
    frame.loc[gap, "noise"] = np.nan
    y = np.where(gap, (np.random.default_rng(2).random(4000) < expit(logit(p) - 1.5)).astype(int), y)
    made = recalibrate(y, p, method=method, covariates=frame, seed=1, **QUICK.get(method, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = made.predict(p, frame)
    assert np.mean(q[gap] - y[gap]) == pytest.approx(0, abs=0.04)


def test_a_list_means_what_a_frame_means():
    """numpy reads the list ["u", nan] as text, which would make of a gap the category "nan"."""
    y, p, _ = people(2, 900)
    pick = np.random.default_rng(0).integers(0, 3, 900)
    columns = {
        "text": np.array(["u", np.nan, "v"], dtype=object)[pick],
        "mixed": np.array([1, "1", 2], dtype=object)[pick],
    }
    made = recalibrate(y, p, method="hierarchical", covariates=pd.DataFrame(columns), seed=0)
    lists = {name: column.tolist() for name, column in columns.items()}
    again = recalibrate(y, p, method="hierarchical", covariates=lists, seed=0)
    assert {row["group"] for row in again.details["shifts"]} == {
        row["group"] for row in made.details["shifts"]
    }
    assert "text is missing" in {row["group"] for row in made.details["shifts"]}
    np.testing.assert_array_equal(made.predict(p, lists), made.predict(p, pd.DataFrame(columns)))
    np.testing.assert_array_equal(made.predict(p, lists), again.predict(p, lists))


def test_a_dozen_records_are_boosted_without_trees():
    rng = np.random.default_rng(1)
    p, x = rng.random(12), rng.normal(size=12)
    with pytest.warns(RecalibrationWarning, match="the map is the spline alone"):
        made = recalibrate([0, 1] * 6, p, method="boost", covariates={"x": x}, trees=20, seed=0)
    assert made.details["trees"] == 0


def test_weights_in_another_order_are_the_same_weights():
    y, p, frame = people(4, 700)
    w, order = np.random.default_rng(3).random(700), np.random.default_rng(4).permutation(700)
    for method in ("hierarchical", "patch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecalibrationWarning)
            one = recalibrate(y, p, method=method, covariates=frame, sample_weight=w, seed=0)
            two = recalibrate(
                y[order],
                p[order],
                method=method,
                covariates=frame.iloc[order],
                sample_weight=w[order],
                seed=0,
            )
        np.testing.assert_array_equal(one.predict(p, frame), two.predict(p, frame))


def test_the_table_of_shifts_is_readable():
    made = fitted("hierarchical", n=5000)
    table = {row["group"]: row for row in made.details["shifts"]}
    assert {"region = R2", "region = R0"} <= set(table)
    gap = table["region = R2"]["shift"] - table["region = R0"]["shift"]
    assert gap == pytest.approx(1.0, abs=0.35)
    oldest = max((row for row in table if row.startswith("age >= ")), key=lambda text: table[text]["shift"])
    assert table[oldest]["shift"] > 0.3
    assert all(abs(row["shift"]) < 0.2 for name, row in table.items() if "noise" in name)
    assert all(row["error"] > 0 for row in table.values())


def test_slopes_may_differ_too():
    rng = np.random.default_rng(0)
    p, g = rng.beta(2, 2, 6000), rng.choice(["a", "b"], 6000)
    y = rng.random(6000) < expit(logit(p) * np.where(g == "a", 0.4, 1.6))
    plain = recalibrate(y, p, method="hierarchical", covariates={"g": g}, seed=0)
    steep = recalibrate(y, p, method="hierarchical", covariates={"g": g}, seed=0, slopes=True)
    assert loss(y, steep.predict(p, {"g": g})) < loss(y, plain.predict(p, {"g": g})) - 0.005


def test_every_patch_is_listed_with_rule_scores_and_shift():
    made = fitted("patch", n=5000)
    patches = made.details["patches"]
    assert patches
    assert {"rule", "scores", "shift", "z"} == set(patches[0])
    assert any(one["rule"] == "region = R2" and one["shift"] > 0 for one in patches)
    assert all("noise" not in one["rule"] for one in patches[:2])


def test_only_the_groups_named_are_patched():
    y, p, frame = people(1, 3000)
    made = recalibrate(y, p, method="patch", covariates=frame, groups=frame[["region"]], seed=0)
    assert made.details["patches"]
    assert all(one["rule"].startswith("region") for one in made.details["patches"])
    assert made.predict(p, frame[["region"]]).shape == p.shape


def test_augmentation_refits_with_its_own_prediction():
    y, p, frame = people(4, 3000)
    once = recalibrate(y, p, method="augment", covariates=frame, times=1, seed=0)
    assert np.mean(once.predict(p, frame)) == pytest.approx(y.mean(), abs=0.01)
    many = recalibrate(y, p, method="augment", covariates=frame, model="boosting", seed=0)
    assert loss(y, many.predict(p, frame)) < loss(y, p)  # on its own records, which it overfits
    new, fresh, other = people(5, 3000)
    assert loss(new, many.predict(fresh, other)) > loss(new, once.predict(fresh, other))
    with pytest.raises(CalibrantError, match="model must be one of"):
        recalibrate(y, p, method="augment", covariates=frame, model="forest")


def test_boost_without_a_gain_is_the_spline():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 800)
    y = rng.random(800) < p
    with pytest.warns(RecalibrationWarning, match="the map is the spline alone"):
        made = recalibrate(y, p, method="boost", covariates={"noise": rng.normal(size=800)}, seed=0)
    assert made.details["trees"] == 0
    spline = recalibrate(y, p, method="spline", seed=0)
    np.testing.assert_allclose(made.predict(p, {"noise": np.zeros(800)}), spline.predict(p), atol=1e-9)


def test_auto_takes_covariates_where_they_help_and_not_where_they_do_not():
    y, p, frame = people(2, 1500)
    chosen = recalibrate(y, p, covariates=frame, candidates=["platt", "hierarchical"], seed=0)
    assert chosen.chosen == "hierarchical"
    rng = np.random.default_rng(1)
    right = rng.random(1500) < p
    chosen = recalibrate(right, p, covariates=frame, candidates=["platt", "hierarchical"], seed=0)
    assert chosen.chosen == "identity"


@pytest.mark.slow
def test_covariates_that_are_noise_do_no_harm():
    harmed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, noise = (
            rng.beta(2, 3, 9000),
            pd.DataFrame({"a": rng.normal(size=9000), "b": rng.choice(list("uvw"), 9000)}),
        )
        y = (rng.random(9000) < p).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecalibrationWarning)
            made = recalibrate(y[:2000], p[:2000], covariates=noise[:2000], seed=seed)
        harmed += loss(y[2000:], made.predict(p[2000:], noise[2000:])) > loss(y[2000:], p[2000:]) + 0.0005
    assert harmed <= 1


def test_weights_of_one_value_are_no_weights():
    y, p, frame = people(3, 900)
    for method in ("hierarchical", "patch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecalibrationWarning)
            plain = recalibrate(y, p, method=method, covariates=frame, seed=0)
            heavy = recalibrate(
                y, p, method=method, covariates=frame, sample_weight=np.full(900, 7.0), seed=0
            )
        np.testing.assert_allclose(plain.predict(p, frame), heavy.predict(p, frame), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_missing_columns_and_options_are_refused_by_name(method):
    made = fitted(method, n=600)
    _, p, frame = people(3, 20)
    with pytest.raises(CalibrantError, match="needs covariates"):
        made.predict(p)
    with pytest.raises(CalibrantError, match="region"):
        made.predict(p, frame[["age", "noise"]])
    with pytest.raises(CalibrantError, match="'age' must be numbers, as when it was fitted; got 'old'"):
        made.predict(p, frame.assign(age="old"))
    with pytest.raises(CalibrantError, match="option of method"):
        fitted(method, n=200, nonsense=1)
    with pytest.raises(CalibrantError, match="needs covariates"):
        recalibrate([0, 1] * 20, [0.3, 0.6] * 20, method=method)


def test_augmentation_with_logistic_regression_is_that_of_the_paper(tmp_path):
    """Appendix E with the model of section 3.2: every regression reads the last prediction too."""
    models = pytest.importorskip("sklearn.linear_model")
    y, p, frame = people(4, 800)
    made = recalibrate(y, p, method="augment", covariates=frame, model="logistic", seed=0)
    scaled = np.column_stack(
        (
            pd.get_dummies(frame["region"]).to_numpy(float),
            frame["age"] / frame["age"].max(),
            frame["noise"] / 4,
        )
    )
    q = p
    for _ in range(3):
        rows = np.column_stack((scaled, q / q.max()))
        q = models.LogisticRegression(tol=1e-9, max_iter=10_000).fit(rows, y).predict_proba(rows)[:, 1]
    assert made.predict(p, frame) == pytest.approx(q, abs=1e-5)
    made.with_assessment("not asked for").save(tmp_path / "map.json")
    again = load_recalibration(tmp_path / "map.json")
    assert again.predict(p, frame).tolist() == made.predict(p, frame).tolist()


@pytest.mark.parametrize("method", ["hierarchical", "patch"])
def test_ordered_categories_keep_their_order_in_any_container(method):
    rng = np.random.default_rng(0)
    levels = ["low", "mid", "high", "top"]
    g, p = rng.choice(levels, 2000), rng.beta(2, 3, 2000)
    y = rng.random(2000) < expit(logit(p) + np.isin(g, ["high", "top"]))
    ordered = pd.Categorical(g, levels, ordered=True)
    series = pl.Series("g", g, dtype=pl.Enum(levels))
    made = [
        recalibrate(y, p, covariates=given, method=method, seed=0)
        for given in (pd.DataFrame({"g": ordered}), {"g": ordered}, series.to_frame(), {"g": series})
    ]
    key = "shifts" if method == "hierarchical" else "patches"
    words = str([row.get("group", row.get("rule")) for row in made[0].details[key]])
    assert "g >= " in words
    for one in made:
        assert one.details[key] == made[0].details[key]
        np.testing.assert_array_equal(one.predict(p, {"g": g}), made[0].predict(p, {"g": ordered}))
    assert "g >= " in made[0].assessment.for_whom.before.worst[0]


def test_an_identifier_among_the_covariates_is_named_instead_of_fitted_for_hours():
    y, p, frame = people(1, 2500)
    names = [f"person {k}" for k in range(2500)]
    with pytest.raises(CalibrantError, match=r"column 'who' has 2,501.*leave such a column out"):
        recalibrate(y, p, method="hierarchical", covariates=frame.assign(who=names), seed=0)


@pytest.mark.filterwarnings("ignore::calibrant.RecalibrationWarning")  # which says that they are equal
@pytest.mark.parametrize("n", [333, 500, 777])
def test_equal_predictions_have_no_slopes(n):
    """The mean of equal logits may miss them by rounding; divided by that, slopes of noise once exploded."""
    rng = np.random.default_rng(n)
    group = rng.integers(0, 3, n)
    y = (rng.random(n) < np.array([0.1, 0.3, 0.6])[group]).astype(int)
    weight, p = rng.random(n), np.full(n, 0.3)
    made = recalibrate(
        y, p, method="hierarchical", slopes=True, covariates={"g": group}, sample_weight=weight, seed=0
    )
    plain = recalibrate(y, p, method="hierarchical", covariates={"g": group}, sample_weight=weight, seed=0)
    new = {"g": [0, 1, 2]}
    assert made.predict([0.2, 0.3, 0.8], new) == pytest.approx(plain.predict([0.2, 0.3, 0.8], new), abs=1e-6)
