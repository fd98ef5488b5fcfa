"""compare_groups: Fisher's test where predictions are constant, odd data, trends, words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact
from scipy.stats.contingency import odds_ratio

import calibrant as cb
from calibrant.inference.pvalues import holm


def test_one_constant_prediction_is_fishers_exact_test():
    table = [[12, 8], [9, 21]]
    y = [1] * 12 + [0] * 8 + [1] * 9 + [0] * 21
    pair = cb.compare_groups(y, [0.3] * 50, ["a"] * 20 + ["b"] * 30, seed=1).differences[0]
    smaller = min(fisher_exact(table, alternative=side).pvalue for side in ("less", "greater"))
    ends = odds_ratio(table).confidence_interval()
    assert pair.pvalue == pytest.approx(2 * smaller)
    assert (pair.lower, pair.upper) == pytest.approx((ends.low, ends.high), rel=1e-6)


def sample(n=600, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(0.02, 0.98, n), 2)
    group = np.array(["north", "south", "west"])[rng.integers(0, 3, n)]
    return (rng.random(n) < p).astype(int), p, group, rng


def test_row_order_names_and_seeds():
    y, p, group, rng = sample()
    one = cb.compare_groups(y, p, group, seed=5, draws=99)
    order = rng.permutation(len(y))
    assert cb.compare_groups(y[order], p[order], group[order], seed=5, draws=99).to_dict() == one.to_dict()
    assert cb.compare_groups(y, p, group, seed=5, draws=99).to_dict() == one.to_dict()
    swapped = cb.compare_groups(1 - y, 1 - p, group, seed=5, draws=99)
    assert swapped.differences[0].odds_ratio == pytest.approx(1 / one.differences[0].odds_ratio)
    assert swapped.differences[0].pvalue == pytest.approx(one.differences[0].pvalue)


def test_equal_weights_are_no_weights_and_the_limit_law_is_near():
    y, p, group, rng = sample()
    plain = cb.compare_groups(y, p, group, draws=99).to_dict()
    assert cb.compare_groups(y, p, group, sample_weight=np.full(len(y), 3.0), draws=99).to_dict() == plain
    drawn = cb.compare_groups(y, p, group, method="exact", draws=9999)
    limit = cb.compare_groups(y, p, group, method="approximate")
    assert (drawn.method, limit.method, limit.reason) == ("permutation", "approximate", "as requested")
    assert limit.pvalue == pytest.approx(drawn.pvalue, abs=0.03)
    weighted = cb.compare_groups(y, p, group, sample_weight=rng.uniform(0.99, 1.01, len(y)), draws=9999)
    assert weighted.pvalue == pytest.approx(drawn.pvalue, abs=0.05)
    for one, other in zip(drawn.differences, weighted.differences, strict=True):
        assert one.odds_ratio == pytest.approx(other.odds_ratio, rel=0.1)
        assert one.pvalue == pytest.approx(other.pvalue, abs=0.15)


def test_a_trend_along_seasons_is_seen_and_said():
    rng = np.random.default_rng(1)
    season = np.repeat([2019, 2020, 2021, 2022], 800)
    p = rng.uniform(0.1, 0.9, len(season))
    y = rng.random(len(p)) < np.clip(p + 0.03 * (season - 2019), 0, 1)
    found = cb.compare_groups(y, p, season, seed=1)
    assert found.ordered
    assert found.trend.pvalue <= 0.005
    assert found.trend.odds_ratio > 1
    assert "Along group the outcome becomes more frequent at equal predictions" in str(found)
    assert "from one group to the next, on average (p " in str(found)  # not every season follows it
    text = np.char.add(season.astype(str), "-x")
    assert cb.compare_groups(y, p, text, seed=1).trend is None
    assert cb.compare_groups(y, p, text, seed=1, ordered=True).trend.pvalue == found.trend.pvalue


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": ["a"] * 4}, "must have 2 to 200 different values; got 1"),
        ({"groups": None}, "groups must be given"),
        ({"groups": ["a", "b"]}, "groups 'group' and y_prob must have the same length|length"),
        ({"groups": {"a": [1, 2, 1, 2], "b": [1, 1, 2, 2]}}, "groups must be one column; got a, b"),
        ({"method": "best"}, "method must be one of auto, permutation, approximate"),
        ({"y_prob": [0.1, np.nan, 0.2, 0.3]}, 'missing="drop"'),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_input_is_refused_in_words(change, message):
    arguments = {"y_true": [0, 1, 1, 0], "y_prob": [0.1, 0.2, 0.7, 0.3], "groups": ["a", "a", "b", "b"]}
    with pytest.raises(cb.CalibrantError, match=message):
        cb.compare_groups(**{**arguments, **change})


def test_odd_groups_give_numbers_and_never_hang():
    y, p, group, _ = sample(60)
    certain = np.where(group == "west", np.round(p), p)
    found = cb.compare_groups(y, certain, group, seed=1, draws=19)
    assert found.certain == int((group == "west").sum())
    assert found.wrong == int((np.round(p) != y)[group == "west"].sum())
    for outcome in (np.zeros(60), np.ones(60)):
        alike = cb.compare_groups(outcome, p, group, seed=1, draws=19)
        assert alike.pvalue == 1.0
        assert all(pair.pvalue == 1.0 for pair in alike.differences)
    every = cb.compare_groups(y, p, [f"{k}" for k in range(60)], seed=1, draws=19)
    assert len(every.groups) == 60
    assert every.differences == ()
    gap = [None if k < 9 else g for k, g in enumerate(group)]
    assert cb.compare_groups(y, p, gap, seed=1, draws=19).groups[0].name == "missing"
    dropped = cb.compare_groups([*y, np.nan], [*p, 0.5], [*group, "moon"], missing="drop", seed=1, draws=19)
    assert dropped.dropped == 1
    assert "moon" not in [g.name for g in dropped.groups]
    assert len(found.to_frame("pandas")) == 3


def test_holm_is_that_of_the_definition():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_false_alarms_stay_below_the_level_in_small_unlike_groups(shift):
    """Groups of 4 to 60 with very different predictions: a test of residuals would alarm far too often."""
    rng = np.random.default_rng(11)
    sets, alarms = 400, np.zeros(3)
    sizes = (4, 60, 15)
    group = np.repeat([1, 2, 3], sizes)
    for _ in range(sets):
        p = np.concatenate([rng.uniform(0.4, 0.6, 4), rng.beta(1, 30, 60), rng.uniform(0, 1, 15)])
        odds = p / (1 - p) * np.exp(shift)
        y = rng.random(len(p)) < odds / (1 + odds)
        found = cb.compare_groups(y, p, group, seed=int(rng.integers(1 << 30)), draws=99)
        pair = min(pair.adjusted for pair in found.differences)
        alarms += np.array([found.pvalue, found.trend.pvalue, pair]) <= 0.05
    assert np.all(alarms <= binom.ppf(1 - 1e-4, sets, 0.05))
    assert alarms[0] > 0.01 * sets  # a test that never alarms would pass as well


@pytest.mark.slow
def test_approximate_tests_hold_their_level_with_weights_and_fractions():
    rng = np.random.default_rng(12)
    sets, alarms = 400, np.zeros(2)
    group = np.repeat([1, 2, 3], (150, 300, 600))
    for _ in range(sets):
        p = rng.uniform(0.05, 0.95, len(group)) ** group
        y = (rng.random(len(group)) < p).astype(float)
        found = cb.compare_groups(y, p, group, sample_weight=rng.exponential(1.0, len(group)) + 0.1)
        alarms += np.array([found.pvalue, found.trend.pvalue]) <= 0.05
    assert np.all(alarms <= binom.ppf(1 - 1e-4, sets, 0.06))
    assert np.all(alarms > 0.02 * sets)


ODD = st.lists(
    st.tuples(
        st.sampled_from([0.0, 5e-324, 1e-300, 0.001, 0.1, 0.5, 0.9, 1.0]),
        st.sampled_from([0.0, 0.0, 0.001, 0.3, 1.0, 1.0]),
        st.integers(0, 3),
        st.sampled_from([0.0, 1e-150, 1e-9, 0.1, 1.0, 1.0, 7.0, 1e12]),
    ),
    min_size=2,
    max_size=14,
).filter(lambda rows: len({group for _, _, group, w in rows if w}) > 1)


@settings(max_examples=60, deadline=None)
@given(ODD, st.sampled_from(["binary", "fractions", "weights", "both"]), st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::calibrant.SwappedArgumentsWarning")
def test_whatever_the_rows_estimates_lie_in_their_intervals_and_order_does_not_count(rows, kind, rng):
    def compared(rows):
        p, y, group, w = map(np.array, zip(*rows, strict=True))
        y = y if kind in ("fractions", "both") else np.round(y)
        weight = w if kind in ("weights", "both") else None
        return cb.compare_groups(y, p, group, sample_weight=weight, seed=1, draws=9)

    found = compared(rows)
    for group in found.groups:
        assert np.isnan(group.lower) or group.lower <= group.gap <= group.upper
        unknown = np.isnan(group.odds) or np.isnan(group.odds_lower)
        assert unknown or group.odds_lower <= group.odds * (1 + 1e-9) <= group.odds_upper * (1 + 1e-8)
    for pair in found.differences:
        assert np.isnan(pair.odds_ratio) or pair.lower <= pair.odds_ratio <= pair.upper
        assert 0 <= pair.pvalue <= pair.adjusted <= 1
        assert (pair.pvalue <= 0.05) == (not pair.lower <= 1 <= pair.upper)
    assert 0 <= found.pvalue <= 1
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert compared(shuffled).to_dict() == found.to_dict()


@pytest.mark.parametrize("rate", [1e-6, 0.001, 0.5, 0.999])
def test_outcomes_that_are_the_predictions_themselves_never_differ(rate):
    """Small rates add up to less than half an event; that is what they say, and no missing event."""
    p = np.full(1010, rate)
    found = cb.compare_groups(p, p, np.repeat(["small", "large"], [10, 1000]))
    assert found.pvalue > 0.9
    assert [group.odds for group in found.groups] == pytest.approx([1, 1], abs=1e-9)
    assert "large (1,000 rows): " in found.sentence()
    assert "small (10 rows): " in found.sentence()


def test_events_of_little_weight_have_the_odds_that_fit():
    y, p = [0] * 100 + [1] * 50, [0.5] * 150
    found = cb.compare_groups(
        y * 2, p * 2, ["a"] * 150 + ["b"] * 150, sample_weight=([1.0] * 100 + [1e-4] * 50) * 2
    )
    assert found.groups[0].odds == pytest.approx(50e-4 / 100)


def test_whether_groups_are_ordered_is_true_or_false():
    with pytest.raises(cb.CalibrantError, match="ordered must be True or False"):
        cb.compare_groups([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], ["a", "b", "a", "b"], ordered="no")


def leagues(n=900, seed=3):
    """Three leagues of three seasons; in "b" outcomes become rarer from season to season."""
    rng = np.random.default_rng(seed)
    league, season = rng.choice(["a", "b", "c"], n), rng.integers(2020, 2023, n)
    p = np.round(rng.uniform(0.2, 0.8, n), 2)
    y = (rng.random(n) < p - 0.15 * (season - 2020) * (league == "b")).astype(int)
    return y, p, league, season


def test_within_compares_the_rows_of_each_value_alone_and_adjusts_for_all():
    y, p, league, season = leagues()
    found = cb.compare_groups(y, p, {"season": season}, within={"league": league}, seed=2)
    alone = {}
    for part in found.within:
        rows = league == part.name
        alone[part.name] = cb.compare_groups(
            y[rows], p[rows], {"season": season[rows]}, seed=2, draws=part.compared.draws
        )
        assert part.compared.groups == alone[part.name].groups
        assert part.compared.pvalue == pytest.approx(alone[part.name].pvalue, abs=0.02)
    assert list(alone) == ["a", "b", "c"]
    pvalues = {part.name: part.compared.trend.pvalue for part in found.within}
    ranked, running = sorted(pvalues, key=pvalues.get), 0.0
    for tests, name in zip((3, 2, 1), ranked, strict=True):  # Holm, by hand
        running = max(running, min(1.0, tests * pvalues[name]))
        assert next(part for part in found.within if part.name == name).trend_adjusted == running
    assert "there is a trend along season beyond chance in 1 of 3: b (p" in str(found)
    assert found.pvalue == cb.compare_groups(y, p, {"season": season}, seed=2).pvalue  # all rows, as before
    lines = found.within_sheet().lines
    assert [line[0].text for line in lines] == ["a", "b", "c"]
    assert [int(line[1].text) for line in lines] == [int((league == name).sum()) for name in "abc"]


def test_within_says_what_it_cannot_compare():
    y, p, league, season = leagues()
    season[league == "c"] = 2021
    found = cb.compare_groups(y, p, {"season": season}, within={"league": league}, draws=99)
    assert [part.name for part in found.within] == ["a", "b"]
    assert found.left_out == {"c": "one group"}
    assert "Not compared: c (one group)." in str(found)
    with pytest.raises(cb.InvalidInputError, match="within 'league' must have 2 to 200 different values"):
        cb.compare_groups(y, p, season, within={"league": ["a"] * len(y)})


def test_within_draws_enough_for_many_values():
    """With 60 values of 999 draws each no adjusted p-value could be below 0.06."""
    rng = np.random.default_rng(0)
    n = 6000
    league, season = rng.integers(0, 60, n), rng.integers(0, 3, n)
    p = np.full(n, 0.5)
    y = (rng.random(n) < np.where(league == 7, 0.9 - 0.4 * season, 0.5)).astype(int)
    found = cb.compare_groups(y, p, {"season": season}, within={"league": league})
    assert [part.name for part in found.within if part.adjusted <= 0.05] == ["7"]


def test_comparisons_within_survive_json():
    y, p, league, season = leagues(300)
    found = cb.compare_groups(y, p, {"season": season}, within={"league": league}, draws=99)
    again = type(found).from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()


@pytest.mark.slow
def test_within_raises_a_false_alarm_anywhere_in_at_most_one_of_twenty():
    """Four leagues of calibrated forecasts: differences and trends, each family at level 5%."""
    rng = np.random.default_rng(5)
    runs, alarms = 200, np.zeros(2)
    for _ in range(runs):
        league, season = rng.integers(0, 4, 320), rng.integers(0, 3, 320)
        p = rng.uniform(0.1, 0.9, 320)
        y = rng.random(320) < p
        found = cb.compare_groups(y, p, {"season": season}, within={"league": league})
        alarms += [
            any(part.adjusted <= 0.05 for part in found.within),
            any(part.trend_adjusted <= 0.05 for part in found.within),
        ]
    assert (alarms <= binom.ppf(0.999, runs, 0.05)).all(), alarms / runs


def test_groups_that_read_alike_have_names_of_their_own():
    """Text is quoted where a number or a gap could read the same, as in an audit."""
    rng = np.random.default_rng(5)
    p = rng.random(600)
    y = rng.random(600) < p
    found = cb.compare_groups(y, p, [1, "1", 2.0] * 200)
    assert [group.name for group in found.groups] == ["2", "1", '"1"']
    found = cb.compare_groups(y, p, [None, "missing", "b"] * 200)
    assert [group.name for group in found.groups] == ["missing", "b", '"missing"']
    outer = np.array([1, "1", 1, "1", 1, "1"] * 100, dtype=object)
    within = cb.compare_groups(y, p, ["a", "b"] * 300, within={"league": outer}).left_out
    assert set(within) == {"1", '"1"'}
