"""distinguish(): size at most the level, power on a planted XOR, and words for what carried it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from people import people, planted

from calibrant import audit, distinguish, search_groups
from calibrant.columns import code_columns
from calibrant.errors import CalibrantError
from calibrant.groups.distinguisher import shallow_tree

pytest.importorskip("lightgbm")


def xor(seed: int, n: int = 3000, bump: float = 0.12) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Residuals that depend on two features together and on neither alone; three more are noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    v = 0.1 + 0.8 * rng.beta(2, 2, n)
    y = rng.random(n) < v + bump * np.sign(x[:, 0] * x[:, 1])
    return y.astype(int), v, {f"x{j}": x[:, j] for j in range(5)}


def calibrated(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Outcomes drawn with the predictions, which depend on the features; heavily tied every other time."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(240, 3))
    v = 1 / (1 + np.exp(-x[:, 0] - 0.5 * x[:, 1]))
    v = np.round(v, 1) if seed % 2 else v
    columns = {"a": x[:, 0], "b": x[:, 1], "c": rng.choice(list("uvw"), 240)}
    return (rng.random(240) < v).astype(int), v, columns


class LeastSquares:
    """The quickest of learners: the p-value must be right whatever the model."""

    def fit(self, rows: np.ndarray, target: np.ndarray) -> None:
        self.slopes = np.linalg.lstsq(np.column_stack((np.ones(len(rows)), rows)), target, rcond=None)[0]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.slopes[0] + rows @ self.slopes[1:]


@pytest.fixture
def only_pvalues(monkeypatch):
    """Leave out the words for what was found, which take longer than the test on so few rows."""
    monkeypatch.setattr("calibrant.groups.distinguisher.shallow_tree", lambda *given, **named: {})


def rejections(seeds: range, draws: int, model: object = None) -> tuple[int, int]:
    pvalues = np.array(
        [distinguish(*calibrated(seed), draws=draws, seed=seed, model=model).pvalue for seed in seeds]
    )
    return int(np.sum(pvalues <= 0.05)), int(np.sum(pvalues <= 0.01))


def test_size_is_at_most_the_level(only_pvalues):
    five, one = rejections(range(200), 399, LeastSquares())
    assert five <= 20  # 10 expected at most; three deviations above
    assert one <= 6  # 2 expected at most; the least p-value of 399 draws is 1 / 200, so it could fail


def test_trees_reject_no_more_than_others(only_pvalues):
    five, one = rejections(range(300, 320), 199)
    assert five <= 4  # 1 expected at most
    assert one <= 2


@pytest.mark.slow
def test_size_is_at_most_the_level_over_two_thousand_data_sets(only_pvalues):
    five, one = rejections(range(5000, 7000), draws=999)
    assert five <= 100 + 3 * 10  # 2,000 data sets: 100 and 20 expected at most, three deviations above
    assert one <= 20 + 3 * 5


def test_an_interaction_that_no_single_group_shows_is_found_and_named():
    found = hits = alone = searched = 0
    for seed in range(4):
        y, v, x = xor(seed)
        one = distinguish(y, v, x, draws=199, seed=seed)
        found += one.pvalue <= 0.05
        searched += (search_groups(y, v, x, draws=99, seed=seed).worst.group.pvalue or 1) <= 0.05
        hits += set(list(one.importance)[:2]) == {"x0", "x1"}
        halves = {
            f"{name} {side}": (values > 0) == side for name, values in x.items() for side in (True, False)
        }
        alone += (audit(y, v, groups=halves, draws=99, seed=seed).pvalue or 1) <= 0.05
    assert found == 4
    assert hits >= 3
    assert alone <= 1
    assert searched <= found  # pairs of conditions are its tests too, but it pays for looking at all of them


def test_two_columns_that_say_nothing_alone_are_found_in_small_samples():
    """Greedy trees spend their questions on noise here: they found 14 of 30, trees with random cuts 28."""
    hits = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        a, b = rng.choice(["x", "y"], 800), rng.integers(0, 2, 800)
        p = rng.uniform(0.2, 0.8, 800)
        y = rng.random(800) < p + 0.15 * np.where((a == "x") == (b == 1), 1, -1)
        hits += distinguish(y, p, {"a": a, "b": b}, draws=99, seed=seed).pvalue <= 0.05
    assert hits >= 7


def test_rules_say_where():
    y, v, x = xor(0, 8000, 0.2)
    found = distinguish(y, v, x, draws=199, seed=0)
    assert found.lower > 0.015
    assert found.advantage == pytest.approx(0.02, abs=0.005)  # w is shrunken; +-0.2 would have 0.04
    text = " ".join(rule.rule for rule in found.rules[:2])
    assert "x0" in text
    assert "x1" in text
    assert sum(rule.carried for rule in found.rules) == pytest.approx(found.advantage, rel=0.05)
    assert sum(rule.share for rule in found.rules) == pytest.approx(1)
    assert abs(found.rules[0].gap) == pytest.approx(0.2, abs=0.05)
    assert "not drawn with the predicted probabilities" in str(found)
    assert {curve.rule for curve in found.curves} <= {rule.rule for rule in found.rules} | {"everyone"}


def test_a_planted_group_is_carried_by_its_columns():
    y, v, frame, _ = planted(1)
    found = distinguish(y, v, frame, draws=199, seed=1)
    assert found.pvalue <= 0.05
    assert set(list(found.importance)[:2]) == {"sex", "region"}
    assert search_groups(y, v, frame, seed=1, draws=99).worst.group.pvalue <= 0.05


def test_calibrated_but_ignorant_predictions_are_told_apart():
    rng = np.random.default_rng(4)
    x = rng.choice([0, 1], 1000)
    found = distinguish(x, np.full(1000, 0.5), {"x": x}, draws=199, seed=0)
    assert found.pvalue <= 0.02
    assert found.pvalue_is_bound
    assert found.advantage > 0.2
    assert next(iter(found.importance)) == "x"


@pytest.mark.parametrize("ties", [False, True])
def test_row_order_and_container_change_nothing(ties):
    y, v, frame = people(3, 500)
    v = np.round(v, 1) if ties else v
    w = np.random.default_rng(0).choice([1.0, 2.0, 0.5], 500)
    first = distinguish(y, v, frame, sample_weight=w, draws=99, seed=5)
    order = np.random.default_rng(9).permutation(500)
    shuffled = {name: frame[name].to_numpy()[order] for name in frame}
    again = distinguish(y[order], v[order], shuffled, sample_weight=w[order], draws=99, seed=5)
    assert first.to_dict() == again.to_dict()
    assert json.loads(json.dumps(first.to_dict()))["seed"] == 5


def test_weights_of_one_value_are_no_weights():
    y, v, x = xor(3, 400)
    plain = distinguish(y, v, x, draws=99, seed=2)
    weighted = distinguish(y, v, x, sample_weight=np.full(400, 3.0), draws=99, seed=2)
    assert plain.to_dict() == weighted.to_dict()


def test_a_model_of_the_users_own():
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(800, 2))
    v = np.full(800, 0.4)
    y = rng.random(800) < 0.4 + 0.1 * np.clip(x[:, 0], -2, 2)
    model = linear.Ridge()
    found = distinguish(y, v, x, model=model, draws=199, seed=1)
    assert found.pvalue <= 0.05
    assert next(iter(found.importance)) == "x0"
    assert not hasattr(model, "coef_")  # the user's model is left as it was


def test_a_covariate_may_be_called_prediction():
    y, v, x = xor(1, 200)
    found = distinguish(y, v, {"prediction": x["x0"]}, draws=19, seed=0)
    assert set(found.importance) == {"prediction", "y_prob"}


def test_missing_rows_are_counted_and_gaps_in_covariates_allowed():
    y, v, frame = people(6, 300)
    gaps = np.where(np.arange(300) < 5, np.nan, v)
    found = distinguish(y, gaps, frame, missing="drop", draws=19, seed=0)
    assert (found.n, found.dropped) == (295, 5)
    assert "5 with missing values dropped" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws must be"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"seed": -1}, "seed must be"),
        ({"nominal": ["z"]}, "nominal must be one of"),
    ],
)
def test_bad_options_are_refused(options, message):
    y, v, x = xor(0, 50)
    with pytest.raises(CalibrantError, match=message):
        distinguish(y, v, x, **options)


def test_too_few_rows_are_refused():
    with pytest.raises(CalibrantError, match="needs at least 20 rows; got 3"):
        distinguish([0, 1, 1], [0.2, 0.4, 0.6], {"a": [1, 2, 3]})


def test_leaves_divide_everyone_and_their_rules_mean_their_members():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"n": rng.normal(size=900), "c": rng.choice(list("abcdef"), 900)})
    target = (np.where(frame["c"].isin(["b", "e"]), 1.0, -1.0) * (frame["n"] > 0.3)).to_numpy()
    columns = code_columns(frame, 900, "covariates")
    leaves = shallow_tree(columns, [0, 1], target, np.ones(900), depth=3, smallest=10)
    assert sorted(np.concatenate(list(leaves.values()))) == list(range(900))
    for rule, members in leaves.items():
        np.testing.assert_array_equal(np.flatnonzero(rule.members(frame)), members)
    assert max(np.ptp(target[members]) for members in leaves.values()) == 0  # the structure, exactly
    assert any("c in {b, e}" in rule for rule in leaves)


class Answers:
    """A model that says the same whatever it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, rows, target):
        return self

    def predict(self, rows):
        return self.answer(len(rows))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: np.full(n, np.nan), "not finite"),
        (lambda n: np.zeros(n + 1), "shape"),
        (lambda n: np.zeros((n, 2)), "shape"),
    ],
)
def test_a_model_that_predicts_nonsense_is_refused(answer, said):
    """NaN was never reached by a simulated advantage, which counted as the strongest evidence there is."""
    rng = np.random.default_rng(0)
    p = rng.random(100)
    with pytest.raises(CalibrantError, match=f"one finite number per row; got .*{said}"):
        distinguish(rng.random(100) < p, p, {"x": p}, model=Answers(answer), draws=19, seed=1)
