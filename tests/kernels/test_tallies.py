"""Tallies of resampled rows follow the law of rows drawn with replacement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrant.kernels import resampling
from calibrant.kernels.resampling import UNSURE, CountedCodes, PoissonBytes, resampled_tallies


@pytest.fixture(autouse=True, scope="module")
def _in_machine_code():
    resampling.tally_poisson.compile_now()
    resampling.tally_picked.compile_now()


@pytest.mark.parametrize("mean", [0.2, 0.9, 0.994, 1.0, 7.5, 63.9])
def test_a_random_byte_and_the_rest_make_a_poisson_number(mean):
    poisson = PoissonBytes(mean)
    unsure = np.count_nonzero(poisson.numbers == UNSURE) / 256
    rest = np.diff(poisson.rest, prepend=0.0)
    for k in range(len(rest) - 1):
        chance = np.count_nonzero(poisson.numbers == k) / 256 + unsure * rest[k]
        assert chance == pytest.approx(math.exp(-mean) * mean**k / math.factorial(k), abs=2e-15)
    assert unsure < (0.05 if mean <= 1 else 0.12)


def test_equal_rows_are_counted_once_and_all_of_them_are_drawn_for():
    rng = np.random.default_rng(8)
    for columns in (2, 3):
        codes = np.minimum(rng.geometric(0.1, (3_000, columns)), 30)
        counted = CountedCodes.of(codes.T, 31)
        assert np.array_equal(
            counted.codes[counted.distinct],
            np.array(sorted(codes.tolist(), key=lambda r: r if columns == 2 else r[::-1])),
        )
        assert len({tuple(row) for row in counted.codes.tolist()}) == len(counted.codes)
        mean = 1 - resampling.SPARE / math.sqrt(3_000)
        drawn = {tuple(row): 0.0 for row in counted.codes.tolist()}
        for poisson, rows in counted.pieces:
            part = np.bincount(poisson.numbers[poisson.numbers != UNSURE], minlength=200)[:200] / 256
            rest = np.diff(poisson.rest, prepend=0.0)
            part[: len(rest)] += np.count_nonzero(poisson.numbers == UNSURE) / 256 * rest
            for row in rows.tolist():
                drawn[tuple(row)] += float(part @ np.arange(200))
        rows, times = np.unique(codes, axis=0, return_counts=True)
        assert [drawn[tuple(row)] for row in rows.tolist()] == pytest.approx(times * mean)


@pytest.mark.parametrize("spare", [6.0, -0.5], ids=["as it is", "too many drawn half of the time"])
def test_counts_have_the_means_and_covariances_of_drawing_with_replacement(spare, monkeypatch):
    monkeypatch.setattr(resampling, "SPARE", spare)
    rng = np.random.default_rng(3)
    n, draws = 400, 6_000
    codes = np.stack([rng.integers(0, 3, n), rng.integers(0, 4, n)], axis=1).astype(np.int32)
    counts = resampled_tallies(np.random.default_rng(4), CountedCodes.of(codes.T, 4), draws)
    assert np.all(counts.sum(axis=1) == n)
    cells = counts.reshape(8, draws)[[0, 1, 2, 4, 5, 6, 7]]
    member = np.concatenate([codes[:, [0]] == np.arange(3), codes[:, [1]] == np.arange(4)], axis=1) * 1.0
    mean, covariance = member.sum(axis=0), n * np.cov(member.T, bias=True)
    spread = np.sqrt(np.diag(covariance))
    assert np.abs((cells.mean(axis=1) - mean) / spread).max() < 4.5 / np.sqrt(draws)
    apart = (np.cov(cells) - covariance) / np.outer(spread, spread)
    assert np.abs(apart).max() < 4.5 * np.sqrt(2 / draws)


def test_few_rows_are_all_picked_one_by_one():
    codes = np.arange(3, dtype=np.int32)[:, None]
    counts = resampled_tallies(np.random.default_rng(5), CountedCodes.of(codes.T, 3), 27_000)[0]
    assert np.all(counts.sum(axis=0) == 3)
    once_each = np.count_nonzero(np.all(counts == 1, axis=0)) / 27_000
    assert once_each == pytest.approx(6 / 27, abs=4.5 * math.sqrt(6 / 27 * 21 / 27 / 27_000))


def test_machine_code_draws_what_plain_code_draws(monkeypatch):
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 10, (500, 2)).astype(np.int32)
    fast = resampled_tallies(np.random.default_rng(7), CountedCodes.of(codes.T, 10), 5)
    for name in ("tally_poisson", "tally_picked"):
        kernel = getattr(resampling, name)
        monkeypatch.setattr(resampling, name, kernel.plain)
    plain = resampled_tallies(np.random.default_rng(7), CountedCodes.of(codes.T, 10), 5)
    assert np.array_equal(fast, plain)
