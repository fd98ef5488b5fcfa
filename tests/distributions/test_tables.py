"""PIT tests, coverage of quantiles and intervals, thresholds: statistics, exact size, words."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import beyond
from scipy.stats import cramervonmises, kstest, norm, poisson

import calibrant as cb
from calibrant import distributions as cd
from calibrant.clusters import Clusters
from calibrant.distributions.forms import ForecastRows
from calibrant.distributions.tables import along, quantiles_of
from calibrant.distributions.uniformity import statistics
from calibrant.errors import TooFewClustersError

VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.0000001, 2.0, 1e6])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_statistics_equal_their_definitions(values: list[float]) -> None:
    found = statistics(np.sort(values)[None, :])[0]
    assert found == pytest.approx(beyond.uniformity(values), abs=1e-12)
    assert found[1] == pytest.approx(kstest(values, "uniform").statistic, abs=1e-12)
    if len(values) > 1:
        assert found[2] == pytest.approx(cramervonmises(values, "uniform").statistic, abs=1e-12)


def test_pvalues_agree_with_the_known_law() -> None:
    values = np.random.default_rng(5).random(40) ** 1.2
    found = cd.pit(norm.ppf(values), norm(0, 1), draws=19_999)
    expected = kstest(values, "uniform").pvalue
    assert found.pvalues["ks"] == pytest.approx(expected, abs=0.02)
    large = norm.ppf(np.random.default_rng(6).random(50_000) ** 1.006)  # beyond what is simulated exactly
    found = cd.pit(large, norm(0, 1), draws=1999)
    assert found.pvalues["ks"] == pytest.approx(kstest(norm.cdf(large), "uniform").pvalue, abs=0.04)


def rejections(kind: str, n: int, data_sets: int, seed: int = 0) -> dict[str, float]:
    """Return how often calibrated forecasts of a kind are rejected at the 5% level."""
    rng, hits = np.random.default_rng(seed), dict.fromkeys(("kuiper", "ks", "cramer-von-mises"), 0)
    quantile = 0.0
    for k in range(data_sets):
        mu = rng.normal(size=n)
        y: np.ndarray = mu + rng.normal(size=n)
        forecast, levels = norm(mu, 1), None
        if kind == "members":
            forecast = mu[:, None] + rng.normal(size=(n, 9))
        elif kind == "rounded members":
            forecast, y = np.round(mu[:, None] + rng.normal(size=(n, 9))), np.round(y)
        elif kind == "quantiles":
            levels = [0.1, 0.5, 0.9]
            forecast = mu[:, None] + norm.ppf(levels)
        elif kind == "counts":
            rate = np.exp(mu)
            y, forecast = rng.poisson(rate), poisson(rate)
        found = cd.pit(y, forecast, levels=levels, draws=99, seed=k)
        for name in hits:
            hits[name] += found.pvalues[name] <= 0.05
        q, expected = (poisson.ppf(0.9, np.exp(mu)), None) if kind == "counts" else (mu + norm.ppf(0.9), None)
        if kind == "counts":
            expected = poisson.cdf(q, np.exp(mu))[:, None]
        if kind in ("quantiles", "counts"):
            table = cd.quantile_table(y, q[:, None], [0.9], expected=expected, draws=99, seed=k)
            quantile += table.levels[0].pvalue <= 0.05
        elif kind != "cdf":
            ranked = cd.evaluate(y, forecast, at=[0], draws=99, seed=k).quantiles
            quantile += np.mean([one.pvalue <= 0.05 for one in ranked.levels])
    return {**{name: count / data_sets for name, count in hits.items()}, "quantile": quantile / data_sets}


@pytest.mark.parametrize("kind", ["cdf", "members", "rounded members", "quantiles", "counts"])
def test_size_in_a_few_data_sets(kind: str) -> None:
    assert max(rejections(kind, 50, 200).values()) <= 0.05 + 3.2 * 0.0154


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 200])
@pytest.mark.parametrize("kind", ["cdf", "members", "rounded members", "quantiles", "counts"])
def test_size_in_2000_data_sets(kind: str, n: int) -> None:
    assert max(rejections(kind, n, 2000).values()) <= 0.05 + 3 * 0.0049


@given(st.lists(VALUES, min_size=4, max_size=4), st.sampled_from([0.25, 0.5, 0.75]))
def test_members_are_ordered_by_what_does_not_say_which_is_the_outcome(
    values: list[float], level: float
) -> None:
    """Exchanging the outcome with any member leaves the place in the order alone."""
    places = set()
    for k in range(4):
        y, members = np.array([values[k]]), np.array([values[:k] + values[k + 1 :]])
        form = ForecastRows.of(y, members).form
        places.add(float(form.pooled_quantile(level, y)[0]))  # type: ignore[union-attr]
    assert places == {sorted(values)[round(4 * level) - 1]}


def test_the_order_of_members_still_finds_what_cancels() -> None:
    rng = np.random.default_rng(3)
    mu = rng.normal(size=3000)
    bias = np.where(mu > 0, 0.5, -0.5)  # too low where high, too high where low
    found = cd.evaluate(mu + bias + rng.normal(size=3000), mu[:, None] + rng.normal(size=(3000, 9)), at=[0])
    middle = found.quantiles.levels[2]
    assert middle.low <= 0.5 <= middle.high
    assert middle.adjusted <= 0.01


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0.1, 0.5, 0.8]), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    )
)
def test_range_along_the_forecast_is_exact(rows: list[tuple[int, float, int]]) -> None:
    hit, promised, order = (np.array(column) for column in zip(*rows, strict=True))
    found = along((hit.astype(bool),) * 2, promised, (order.astype(float),), 1999, 0)
    exact = beyond.exact_range_pvalue(hit.tolist(), promised.tolist(), order.tolist())
    assert found == pytest.approx(exact, abs=0.05)


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0.1, 0.5, 0.8]), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=8,
    )
)
def test_range_along_the_forecast_draws_one_sign_per_cluster(rows: list[tuple[int, float, int, int]]) -> None:
    hit, promised, order, labels = (np.array(column) for column in zip(*rows, strict=True))
    clusters = Clusters.of(labels.astype(str))
    found = along((hit.astype(bool),) * 2, promised, (order.astype(float),), 1999, 0, clusters)
    exact = beyond.sign_range_pvalue(hit.tolist(), promised.tolist(), order.tolist(), labels.tolist())
    assert found == pytest.approx(exact, abs=0.05)


def test_verdicts() -> None:
    y = norm.rvs(size=2000, random_state=1)
    assert cd.pit(y, norm(0, 1)).status == "fine"
    assert cd.pit(y, norm(0, 0.7)).status == "too narrow"
    assert cd.pit(y, norm(0, 1.4)).status == "too wide"
    high = cd.pit(y, norm(0.3, 1))
    assert high.status == "biased"
    assert "too high" in high.verdict
    both = cd.pit(y, norm(0.2, 0.5))
    assert both.status == "too narrow"
    assert "Also biased" in both.verdict
    two = np.where(y > 0, 0.5, -0.5) + 0.01 * y  # most outcomes in two spots
    assert cd.pit(two, norm(0, 1)).status != "fine"


def test_histogram_is_expected_not_drawn() -> None:
    found = [cd.pit([2, 1], [[1, 2, 3], [0, 0, 5]], seed=seed) for seed in (1, 2)]
    assert found[0].shares.tolist() == found[1].shares.tolist() == [0, 0.25, 0.75, 0]
    edge = cd.pit([9.0], norm(0, 0.001), bins=5)
    assert edge.shares.tolist() == [0, 0, 0, 0, 1]


def test_clusters_are_resampled() -> None:
    rng = np.random.default_rng(2)
    rejected = np.zeros(2)
    for k in range(60):
        shared = np.repeat(rng.normal(size=40), 10)  # one weather for ten stations
        y = np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.normal(size=400)
        codes = np.repeat(np.arange(40), 10)
        rejected += [cd.pit(y, norm(0, 1), draws=99, seed=k).pvalue <= 0.05,
                     cd.pit(y, norm(0, 1), clusters=codes, draws=99, seed=k).pvalue <= 0.05]  # fmt: skip
    assert rejected[0] > 30
    assert rejected[1] <= 9
    with pytest.raises(TooFewClustersError, match="clusters must have at least 10"):
        cd.pit(y, norm(0, 1), clusters=codes // 8)


def clustered(clusters: int, size: int, seed: int) -> cd.DistributionEvaluation:
    rng, codes = np.random.default_rng(seed), np.repeat(np.arange(clusters), size)
    mu, shared = rng.normal(size=(2, clusters, 1)).repeat(size, axis=2).reshape(2, -1)
    y = mu + np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=len(mu))
    return cd.evaluate(y, norm(mu, 1), at=[-1, 0, 1], clusters=codes, draws=99, seed=seed)


def test_quantiles_and_thresholds_heed_clusters() -> None:
    wrong, missed = np.zeros(2), 0
    for k in range(40):
        found = clustered(60, 6, k)
        wrong += [bool(found.quantiles.wrong), bool(found.thresholds.wrong)]
        missed += sum(not one.low <= one.promised <= one.high for one in found.quantiles.levels)
    assert wrong.max() <= 7  # 2 expected
    assert missed <= 25  # 10 expected of 200


def test_too_few_clusters_give_no_number() -> None:
    found = clustered(12, 3, 0)
    assert np.isnan([found.quantiles.levels[0].low, found.quantiles.levels[0].adjusted]).all()
    assert found.quantiles.to_dict()["levels"][0]["pvalue"] is None
    assert found.quantiles.sheet().lines[0][3].text == "–"
    assert "0 of 5 levels off beyond chance, 2 with too little data for a test" in str(found.quantiles)
    labels = [None, *map(str, range(35)), *map(str, range(35))]
    with pytest.raises(cb.InvalidInputError, match=r"clusters must not be missing.*row 0"):
        cd.pit(np.arange(71.0), norm(0, 1), clusters=labels)
    kept = cd.pit([np.nan, *range(70)], norm(0, 1), clusters=labels, missing="drop")
    assert (kept.n, kept.clusters) == (70, 35)


def test_clusters_of_single_records_give_the_exact_tests() -> None:
    y = norm.rvs(size=60, random_state=4)
    for forecast in (norm(0, 1), np.sort(y[::-1, None] + np.arange(5.0), axis=1)):
        one, other = (
            cd.evaluate(y, forecast, at=[0], clusters=labels, draws=99) for labels in (None, np.arange(60))
        )
        assert one.to_dict() == other.to_dict()


def counts_of_members(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rate = rng.integers(1, 4, n)
    return rng.poisson(rate).astype(float), rng.poisson(rate[:, None], (n, 3)).astype(float)


@pytest.mark.parametrize("form", ["members", "counts", "quantiles"])
def test_neither_row_order_nor_labels_of_clusters_matter(form: str) -> None:
    y, members = counts_of_members(1)
    levels = [0.25, 0.5, 0.75] if form == "quantiles" else None
    labels, site = np.repeat(np.arange(40), 5), np.repeat(["a", "b"], 100)
    if form == "quantiles":
        members = np.sort(members, axis=1)
    found, rng = [], np.random.default_rng(2)
    for names in (np.arange(40), rng.permutation(40)):
        for rows in (np.arange(200), rng.permutation(200)):
            forecast = poisson(1 + members[rows, 0]) if form == "counts" else members[rows]
            how = {"levels": levels, "groups": {"site": site[rows]}, "at": [2], "draws": 99}
            for clusters in (None, names[labels[rows]]):
                one = cd.evaluate(y[rows], forecast, clusters=clusters, **how)
                pvalues = [level.pvalue for level in one.quantiles.levels]
                audits = [one.bias_by_group.verdict, one.width_by_group.verdict]
                found.append((clusters is None, one.pit.pvalues, pvalues, one.status, audits))
    assert all(one == found[one[0] is False] for one in found)


def test_ensembles_are_judged_alike_by_all_seeds_up_to_their_draws() -> None:
    y, members = counts_of_members(3)
    found = [cd.pit(y, members, draws=9, seed=seed) for seed in range(5)]
    assert all(one.statistics == found[0].statistics for one in found)
    assert len({(one.mean, one.spread, one.below_median) for one in found}) == 1


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=4))
def test_an_ensemble_with_ties_is_compared_with_all_places_of_the_outcome(rows: list[list[int]]) -> None:
    """Each of the values of a row is as likely to be the outcome: the p-value counts their combinations."""
    table = np.array(rows, dtype=float)

    def kuiper(places: tuple[int, ...]) -> float:
        chosen = np.arange(len(rows)), np.array(places)
        rest = np.ones(table.shape, dtype=bool)
        rest[chosen] = False
        return cd.pit(table[chosen], table[rest].reshape(-1, 2), draws=1).statistics["kuiper"]

    observed = kuiper((0,) * len(rows)) - 1e-9
    exact = np.mean([kuiper(places) >= observed for places in itertools.product(range(3), repeat=len(rows))])
    found = cd.pit(table[:, 0], table[:, 1:], draws=1999).pvalues["kuiper"]
    assert found == pytest.approx(exact, abs=0.05)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([0.25, 0.5, 0.8]), st.integers(0, 4)),
        min_size=1,
        max_size=7,
    )
)
def test_ties_with_a_quantile_count_in_favor_of_the_forecast(rows: list[tuple[int, float, int]]) -> None:
    kind, promised, order = (np.array(column) for column in zip(*rows, strict=True))
    hits = kind == 0, kind <= 1  # below for sure, or not above
    found = along(hits, promised, (order.astype(float),), 1999, 0)
    free = np.flatnonzero(kind == 1)
    largest = 0.0
    for chosen in itertools.product([False, True], repeat=len(free)):
        one = hits[0].copy()
        one[free] = chosen
        largest = max(largest, beyond.exact_range_pvalue(one.tolist(), promised.tolist(), order.tolist()))
    assert found >= largest - 0.05
    if not len(free):
        assert found == pytest.approx(largest, abs=0.05)


def counts_and_quantiles(seed: int, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rate, levels = rng.uniform(2, 6, 300), np.arange(1, 10) / 10
    return rng.poisson(rate * factor), np.column_stack([poisson.ppf(one, rate) for one in levels]), levels


def test_right_quantiles_of_counts_are_not_called_wrong() -> None:
    for seed in range(12):
        y, quantiles, levels = counts_and_quantiles(seed)
        found = cd.evaluate(y, quantiles, levels=levels, at=[3], draws=99)
        assert not found.quantiles.wrong
        assert found.status == "fine"
        ends = quantiles[:, [0, -1]].T
        assert cd.interval_coverage(y, *ends, coverage=0.8, draws=99).status == "fine"
        assert 0.4 <= found.pit.below_median <= 0.6
    assert "of outcomes equal their quantile" in str(found.quantiles)
    assert "expected=" in str(found.quantiles)
    y, quantiles, levels = counts_and_quantiles(1, 1.6)
    found = cd.evaluate(y, quantiles, levels=levels, at=[3], draws=199)
    assert len(found.quantiles.wrong) >= 5
    assert found.status == "biased"
    assert cd.interval_coverage(y, *quantiles[:, [0, -1]].T, coverage=0.8).status != "fine"
    right = cd.quantile_table([1.0, 2.5], [[1.0], [2.0]], [0.5], expected=[[0.6], [0.6]])
    assert right.tied == 0


def test_clustered_pit_is_taken_at_the_ends_of_ties() -> None:
    rng, labels = np.random.default_rng(5), np.repeat(np.arange(20), 10)
    y, rows = np.round(rng.normal(size=200) * 2) / 2, rng.permutation(200)
    one, other = cd.pit(y, norm(0, 1), clusters=labels), cd.pit(y[rows], norm(0, 1), clusters=labels[rows])
    assert one.pvalues == other.pvalues


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "size"), [(30, 10), (60, 5), (100, 3)])
def test_clustered_tables_keep_their_level(clusters: int, size: int) -> None:
    wrong, labels = 0, np.repeat(np.arange(clusters), size)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        mu, shared = rng.normal(size=clusters * size), np.repeat(rng.normal(size=clusters), size)
        y = mu + np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=len(mu))
        rows = ForecastRows.of(y, norm(mu, 1), draws=199, seed=seed, clusters=labels)
        wrong += bool(quantiles_of(rows).wrong)
    assert wrong <= 400 * 0.05 + 2.6 * 4.4


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 5, 19])
def test_ensembles_of_counts_keep_their_level(members: int) -> None:
    rejected = np.zeros(3)
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        rate = rng.uniform(1, 6, 100)
        y, forecast = rng.poisson(rate), rng.poisson(rate[:, None], (100, members))
        rejected += [p <= 0.05 for p in cd.pit(y, forecast, draws=199, seed=seed).pvalues.values()]
    assert rejected.max() <= 1000 * 0.05 + 3 * 6.9


def test_coverage_along_the_forecast_finds_what_cancels() -> None:
    rng = np.random.default_rng(4)
    q = rng.normal(size=4000)
    level = np.where(q > 0, 0.95, 0.85)  # 90% on average
    y = np.where(rng.random(4000) < level, q - 1, q + 1)
    found = cd.quantile_table(y, q[:, None], [0.9]).levels[0]
    assert found.low <= 0.9 <= found.high
    assert found.pvalue <= 0.01
    assert cd.quantile_table(y, q[:, None], [0.9]).wrong


def test_interval_coverage() -> None:
    rng = np.random.default_rng(5)
    y = rng.normal(size=3000)
    z = norm.ppf(0.95)
    ends = np.full(3000, -z), np.full(3000, z)
    assert cd.interval_coverage(y, *ends, coverage=0.9).status == "fine"
    assert cd.interval_coverage(y, *ends, coverage=0.8).status == "too wide"
    assert cd.interval_coverage(y, *ends, coverage=0.95).status == "too narrow"
    shifted = cd.interval_coverage(y, norm.ppf(0.005) + 0 * y, norm.ppf(0.905) + 0 * y, coverage=0.9)
    assert shifted.status == "biased"
    score = np.mean(2 * z + 20 * (np.maximum(-z - y, 0) + np.maximum(y - z, 0)))
    assert cd.interval_coverage(y, *ends, coverage=0.9).coverage.score == pytest.approx(score)
    with pytest.raises(cb.InvalidInputError, match=r"upper must not be less than lower.*row 0"):
        cd.interval_coverage([1], [2], [1], coverage=0.9)


def test_verdicts_of_intervals_ask_three_questions_at_5_percent() -> None:
    rng, z, wrong = np.random.default_rng(9), norm.ppf(0.95), 0
    for k in range(200):
        width = np.exp(0.3 * rng.normal(size=800))
        y = width * rng.normal(size=800)
        found = cd.interval_coverage(y, -z * width, z * width, coverage=0.9, draws=59, seed=k)
        wrong += found.status != "fine"
    assert found.draws == 60
    assert wrong <= 20  # 10 expected at most, standard deviation 3.1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cd.interval_coverage([1, 2], [0, np.nan], [2, 3], coverage=0.9), "lower .*missing.*row 1"),
        (lambda: cd.interval_coverage([1, 2], [0, 0], [np.inf, 3], coverage=0.9), "upper must be finite"),
        (lambda: cd.quantile_table([1, 2], [[1], [np.nan]], [0.5]), "quantiles must not be missing.*row 1"),
        (
            lambda: cd.quantile_table([1, 2], [[1], [2]], [0.5], expected=[0.5]),
            "expected must have the shape",
        ),
        (lambda: cd.horizon_table([1, 2], [1, 1], [[0.5, 0.5]]), "predictions must map horizons"),
        (lambda: cd.horizon_table([1, 2], [1, 1], {1.0: [0.5, 0.5], "2": [1, 1]}), "horizon must be a posi"),
        (lambda: cd.horizon_table([1, 2], [1, 1], {1.0: [0.5]}), "predictions by 1.0 and time must have"),
        (
            lambda: cd.horizon_table([1, 2], [1, 1], {1.0: [0.5, 2]}),
            r"predictions by 1.0 must lie in .*row 1",
        ),
    ],
)
def test_refusals_name_what_was_passed(call: Callable[[], object], words: str) -> None:
    with pytest.raises(cb.InvalidInputError, match=words):
        call()


def test_rows_are_those_of_the_user_whatever_was_dropped() -> None:
    with pytest.raises(cb.InvalidInputError, match=r"ascending quantiles in each row; got 1\.0 in row 2"):
        cd.pit([np.nan, 1, 2], [[1, 2], [1, 2], [2, 1]], levels=[0.1, 0.9], missing="drop")
    with pytest.raises(cb.InvalidInputError, match=r"forecast must not have a \.cdf of NaN.*row 2"):
        cd.pit([np.nan, 1, 2], norm([0, 0, np.nan], 1), missing="drop")


def test_horizons_leave_out_the_same_rows() -> None:
    time, event = np.arange(1.0, 401), np.tile([1, 1, 0, 2], 100)
    rows = {20.0: np.full(400, 0.03), 200.0: np.full(400, 0.3)}
    rows[20.0][7], rows[200.0][8] = np.nan, np.nan
    found = cd.horizon_table(time, event, rows, missing="drop", draws=19)
    assert (found.n, found.dropped) == (398, 2)
    assert "398 records, 2 with missing values dropped" in str(found)
    few, many = found.horizons
    assert np.isnan([few.pvalue, few.adjusted]).all()  # 9 events
    assert many.adjusted == many.pvalue * 2 < 1
    for one in found.horizons:
        p = np.where(np.isin(np.arange(400), [7, 8]), np.nan, rows[one.horizon])
        same = cb.Forecasts(cb.censored(time, event, one.horizon), p, missing="drop")
        assert (one.predicted, one.observed) == (same.mean_prediction, same.base_rate)


def test_thresholds_are_ordinary_forecasts() -> None:
    rng = np.random.default_rng(6)
    mu = rng.normal(size=500)
    y = mu + rng.normal(size=500)
    f = cd.threshold_forecasts(y, norm(mu, 1), 0.5)
    assert cb.brier_score(f) == cb.brier_score(y <= 0.5, norm.cdf(0.5, mu, 1))
    table = cd.threshold_table(y, norm(mu, 1), at=[-1, 0, 2], weights=[1, 2, 3])
    expected = sum(
        w * cb.averaged_two_bin_error(y <= z, norm.cdf(z, mu, 1)) for z, w in ((-1, 1), (0, 2), (2, 3))
    )
    assert table.integrated_atb == pytest.approx(expected, abs=1e-15)
    assert table.fixed
    assert not cd.threshold_table(y, norm(mu, 1)).fixed


def test_integrated_brier_is_the_crps() -> None:
    rng = np.random.default_rng(7)
    members = rng.integers(0, 20, size=(50, 5))
    y = rng.integers(0, 20, size=50)
    table = cd.threshold_table(y, members, at=np.arange(0, 21), weights=np.ones(21), draws=9)
    expected = np.mean(
        [beyond.ensemble_crps(m, x) for m, x in zip(members.tolist(), y.tolist(), strict=True)]
    )
    assert table.integrated_brier == pytest.approx(expected, abs=1e-12)


def test_few_draws_can_show_that_one_of_many_tests_is_off() -> None:
    y = norm.rvs(size=60, random_state=1)
    at, levels = np.linspace(-1, 1, 9), np.arange(1, 10) / 10
    few, wrong = cd.threshold_table(y, norm(2, 0.5), at=at, draws=19), np.tile(norm.ppf(levels) + 2, (60, 1))
    assert len(few.wrong) == 9
    assert few.draws == 180
    assert len(cd.quantile_table(y, wrong, levels, draws=19).wrong) == 9
    times, later = np.arange(1.0, 61), {float(h): np.full(60, 0.95) for h in range(3, 12)}
    assert len(cd.horizon_table(times, np.ones(60), later, draws=19).wrong) == 9


def test_evaluate_groups_and_page(tmp_path: object) -> None:
    rng = np.random.default_rng(8)
    site = np.repeat(["coast", "inland"], 400)
    y = rng.normal(size=800) * np.where(site == "coast", 1.8, 1.0)
    found = cd.evaluate(y, rng.normal(size=(800, 19)), groups={"site": site}, draws=99)
    assert found.status == "too narrow"
    assert found.width_by_group is not None
    wrong = {str(group.rule) for group in found.width_by_group.significant()}
    assert "site = coast" in wrong
    assert "site = inland" not in wrong
    assert "site = coast" in found.verdict
    path = found.to_html(tmp_path / "page.html")  # type: ignore[operator]
    text = path.read_text()
    assert "Too narrow" in text
    assert "calibrant verify" not in text
    assert "For whom are they too narrow or too wide?" in text
    assert set(found.charts) == {"pit", "thresholds", "quantiles", "bias", "width"}
    assert found.to_dict()["status"] == "too narrow"


def test_rows_of_frames_in_another_order_are_refused() -> None:
    import pandas as pd

    y, turned = pd.Series([1.0, 2, 3]), [2, 1, 0]
    table, column = pd.DataFrame({"a": [1.0, 2, 3]}, index=turned), pd.Series([1.0, 2, 3], index=turned)
    for call in (
        lambda: cd.pit(y, table),
        lambda: cd.quantile_table(y, table, [0.5]),
        lambda: cd.interval_coverage(y, column, [3, 4, 5], coverage=0.5),
        lambda: cd.horizon_table(y, [1, 1, 1], {1.0: column / 3}),
        lambda: cb.censored(y, [1, 1, 1], 2.5, strata=column),
    ):
        with pytest.raises(cb.InvalidInputError, match="index labels in the same order"):
            call()
