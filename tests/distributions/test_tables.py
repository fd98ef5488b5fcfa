"""PIT tests, coverage of quantiles and intervals, thresholds: statistics, exact size, words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import beyond
from scipy.stats import cramervonmises, kstest, norm, poisson

import calibrant as cb
from calibrant import distributions as cd
from calibrant.distributions.tables import along
from calibrant.distributions.uniformity import statistics


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
    quantile = 0
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
    return {**{name: count / data_sets for name, count in hits.items()}, "quantile": quantile / data_sets}


@pytest.mark.parametrize("kind", ["cdf", "members", "rounded members", "quantiles", "counts"])
def test_size_in_a_few_data_sets(kind: str) -> None:
    assert max(rejections(kind, 50, 200).values()) <= 0.05 + 3.2 * 0.0154


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 200])
@pytest.mark.parametrize("kind", ["cdf", "members", "rounded members", "quantiles", "counts"])
def test_size_in_2000_data_sets(kind: str, n: int) -> None:
    assert max(rejections(kind, n, 2000).values()) <= 0.05 + 3 * 0.0049


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0.1, 0.5, 0.8]), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    )
)
def test_range_along_the_forecast_is_exact(rows: list[tuple[int, float, int]]) -> None:
    hit, promised, order = (np.array(column) for column in zip(*rows, strict=True))
    found = along(hit.astype(bool), promised, (order.astype(float),), 1999, 0)
    exact = beyond.exact_range_pvalue(hit.tolist(), promised.tolist(), order.tolist())
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
    with pytest.raises(cb.InvalidInputError, match="clusters must have at least 10"):
        cd.pit(y, norm(0, 1), clusters=codes // 8)


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
