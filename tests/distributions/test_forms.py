"""PIT intervals, CDFs and scores of the four forms, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import beyond
from scipy.stats import gamma, norm, poisson

import calibrant as cb
from calibrant import distributions as cd
from calibrant.distributions.forms import ForecastRows

VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.0000001, 2.0, 1e6])
LEVELS = [0.1, 0.25, 0.5, 0.9]


@given(st.lists(st.tuples(VALUES, st.lists(VALUES, min_size=3, max_size=3)), min_size=1, max_size=5))
def test_members(rows: list[tuple[float, list[float]]]) -> None:
    y, members = np.array([a for a, _ in rows]), np.array([b for _, b in rows])
    form = ForecastRows.of(y, members).form
    low, high = form.pit(y)
    assert list(zip(low, high, strict=True)) == [beyond.member_interval(b, a) for a, b in rows]
    for z in (0.5, 1.0):
        assert form.cdf(z).tolist() == [sum(x <= z for x in b) / 3 for _, b in rows]
    plain, fair = form.crps(y), form.crps(y, fair=True)  # type: ignore[call-arg]
    for k, (a, b) in enumerate(rows):
        scale = max(1.0, *map(abs, b), abs(a))
        assert plain[k] == pytest.approx(beyond.ensemble_crps(b, a), abs=1e-12 * scale)
        assert plain[k] == pytest.approx(beyond.step_crps(b, a), abs=1e-12 * scale)
        assert fair[k] == pytest.approx(beyond.ensemble_crps(b, a, fair=True), abs=1e-12 * scale)


@pytest.mark.parametrize("y", [[0.0, 2.0], [150.0], [0.0, 50.0]])
def test_crps_of_counts_however_unlikely_the_outcomes(y: list[float]) -> None:
    support = np.arange(400)
    expected = np.mean([np.sum((poisson.cdf(support, 50) - (support >= one)) ** 2) for one in y])
    assert cd.evaluate(y, poisson(50), at=[50], draws=9).crps == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(VALUES, st.lists(VALUES, min_size=4, max_size=4)), min_size=1, max_size=5))
def test_quantiles(rows: list[tuple[float, list[float]]]) -> None:
    y, quantiles = np.array([a for a, _ in rows]), np.sort([b for _, b in rows], axis=1)
    form = ForecastRows.of(y, quantiles, levels=LEVELS).form
    low, high = form.pit(y)
    expected = [beyond.quantile_interval(b, LEVELS, a) for a, b in zip(y, quantiles, strict=True)]
    assert list(zip(low, high, strict=True)) == expected
    for z in (0.5, 1.0):
        f = form.cdf(z)
        for k, row in enumerate(quantiles):
            at_least = max([lv for lv, q in zip(LEVELS, row, strict=True) if q <= z], default=0.0)
            at_most = min([lv for lv, q in zip(LEVELS, row, strict=True) if q > z], default=1.0)
            assert at_least <= f[k] <= at_most


@given(st.lists(st.tuples(VALUES, st.lists(st.floats(0, 1), min_size=3, max_size=3)), min_size=1, max_size=5))
def test_cdf_values(rows: list[tuple[float, list[float]]]) -> None:
    y, values, at = np.array([a for a, _ in rows]), np.sort([b for _, b in rows], axis=1), [0.0, 1.0, 2.0]
    form = ForecastRows.of(y, values, thresholds=at).form
    low, high = form.pit(y)
    expected = [beyond.cdf_interval(b, at, a) for a, b in zip(y, values, strict=True)]
    assert list(zip(low, high, strict=True)) == expected
    assert form.crps(y) is None
    with pytest.raises(cb.InvalidInputError, match="threshold must be one of"):
        form.cdf(0.5)


def test_known_answers() -> None:
    found = cd.pit([2], [[1, 2, 3]])
    assert (found.low[0], found.high[0]) == (0.25, 0.75)
    form = ForecastRows.of([0.5], [[0, 1]]).form
    assert (form.crps(np.array([0.5]))[0], form.crps(np.array([0.5]), fair=True)[0]) == (0.25, 0.0)  # type: ignore
    y = norm.rvs(size=100_000, random_state=0)
    standard = ForecastRows.of(y, norm(0, 1)).form
    assert np.mean(standard.crps(y)) == pytest.approx(1 / math.sqrt(math.pi), abs=0.005)


@pytest.mark.parametrize("y", [8.2, 8.3, 8.5, 50.0, -8.5, -37.0, -39.0, -60.0])
def test_crps_of_an_outcome_far_outside_its_forecast(y: float) -> None:
    """F(y) rounds to 1 above 8.3 standard deviations and to 0 below -39: the score is |y| - 1/sqrt(pi)."""
    found = cb.distributions.evaluate(np.full(5, y), norm(np.zeros(5), 1), draws=19)
    assert found.crps == pytest.approx(abs(y) - 1 / math.sqrt(math.pi), abs=1e-10)


def test_crps_of_distributions() -> None:
    y, mu = np.linspace(-4, 4, 41), np.linspace(1, -1, 41)
    z = (y - mu) / 2
    closed = 2 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    form = ForecastRows.of(y, norm(mu, 2)).form
    assert form.crps(y) == pytest.approx(closed, abs=1e-10)
    grid = np.linspace(0, 60, 600_001)
    f, x = gamma.cdf(grid, 3), 2.5
    expected = np.trapezoid((f - (x <= grid)) ** 2, grid)
    skewed = ForecastRows.of([x], gamma(3)).form
    assert skewed.crps(np.array([x]))[0] == pytest.approx(expected, abs=1e-5)
    counts = ForecastRows.of([4], poisson(3.3)).form
    k = np.arange(60)
    assert counts.crps(np.array([4.0]))[0] == pytest.approx(np.sum((poisson.cdf(k, 3.3) - (k >= 4)) ** 2))


class Rain:
    """Dry with probability `dry`, else exponential: F jumps at 0 and there is no `pmf` to say so."""

    def __init__(self, dry: np.ndarray) -> None:
        self.dry = dry

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, 0.0, self.dry + (1 - self.dry) * -np.expm1(-np.maximum(x, 0)))

    def ppf(self, level: np.ndarray) -> np.ndarray:
        return -np.log1p(-np.maximum(0, (level - self.dry) / (1 - self.dry)))


def test_jumps_are_found_without_a_pmf() -> None:
    rng, dry = np.random.default_rng(0), np.tile([0.3, 0.6], 1000)
    y = np.where(rng.random(2000) < dry, 0.0, rng.exponential(size=2000))
    found = cd.evaluate(y, Rain(dry), at=[0, 1], draws=199)
    assert (found.pit.low[y == 0] == 0).all()
    assert (found.pit.high[y == 0] == dry[y == 0]).all()
    assert (found.pit.low[y > 0] == found.pit.high[y > 0]).all()
    assert found.status == "fine"
    lowest = found.quantiles.levels[0]
    assert (lowest.level, lowest.promised) == (0.05, pytest.approx(dry.mean()))
    assert not found.quantiles.wrong
    assert found.crps is None  # the integral over levels is exact for smooth F only


def test_refusals_say_what_is_wrong() -> None:
    with pytest.raises(cb.InvalidInputError, match=r"ascending quantiles in each row.*row 1"):
        cd.pit([1, 2], [[1, 2], [2, 1]], levels=[0.1, 0.9])
    with pytest.raises(cb.InvalidInputError, match="levels must lie strictly"):
        cd.pit([1], [[1, 2]], levels=[0, 0.9])
    with pytest.raises(cb.InvalidInputError, match=r"must lie in \[0, 1\]"):
        cd.pit([1], [[0.1, 1.2]], thresholds=[0, 1])
    with pytest.raises(cb.InvalidInputError, match="same length"):
        cd.pit([1, 2], [[1, 2]])
    with pytest.raises(cb.InvalidInputError, match="table of numbers"):
        cd.pit([1, 2], [1, 2])
    with pytest.raises(cb.InvalidInputError, match="exclude each other"):
        cd.pit([1], [[1]], levels=[0.5], thresholds=[1])
    with pytest.raises(cb.InvalidInputError, match="one number per column"):
        cd.pit([1], [[1]], levels=[0.5, 0.6])
    with pytest.raises(cb.InvalidInputError, match=r"forecast must have a .cdf"):
        cd.pit([1, 2, 3], norm([0, 1], 1))
    with pytest.raises(cb.InvalidInputError, match="y_true must not be missing"):
        cd.pit([1, None], [[1], [2]])


def test_missing_rows_are_dropped_and_counted() -> None:
    y, members = [1.0, np.nan, 3.0, 4.0], [[1.0, 2], [1, 2], [1, np.nan], [3, 4]]
    found = cd.pit(y, members, missing="drop")
    assert (found.n, found.dropped) == (2, 2)
    with_mean = cd.pit([1.0, np.nan, 3.0], norm([0, 1, 2], 1), missing="drop")
    assert with_mean.low == pytest.approx(norm.cdf([1, 1]))


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        ([1, np.inf, 2], {}, "must be finite; got inf in row 0"),
        (
            [1, 3, 2],
            {"levels": [0.1, 0.5, 0.9]},
            "must have ascending quantiles in each row; got 2.0 in row 0",
        ),
        ([0.1, 0.2, 1.5], {"thresholds": [0, 1, 2]}, "must lie in .0, 1.; got 1.5 in row 0"),
    ],
)
def test_a_refused_forecast_is_shown_by_its_wrong_number(row, options, words):
    with pytest.raises(cb.InvalidInputError, match=words):
        cb.distributions.pit([1.0], [row], **options)
