"""Boosting from a start: as many trees as held-out records want, none where they gain nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from calibrant.fits.trees import STAGE_TREES, STRETCH_TREES, TreeParams, _held_out, boosted, grown_trees

pytest.importorskip("lightgbm")


def sample(seed: int, n: int, effect: float) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    start = rng.normal(size=n)
    y = (rng.random(n) < expit(start + effect * (rows[:, 0] > 0))).astype(float)
    return np.column_stack((rows, start)), y, start, np.ones(n), rng.integers(0, 4, n)


def test_stretches_are_one_long_growth():
    rows, y, start, weight, fold = sample(0, 1500, 1.0)
    growth = TreeParams(trees=2 * STRETCH_TREES, smallest_leaf=50)
    losses = _held_out(rows, y, start, weight, fold, np.unique(fold), growth)
    for k in range(4):
        inside = fold == k
        whole = grown_trees(rows[~inside], y[~inside], weight[~inside], growth, start[~inside])
        eta = start[inside, None] + whole.staged(rows[inside], STAGE_TREES)[:, : losses.shape[1]]
        expected = np.logaddexp(0, eta) - y[inside, None] * eta
        np.testing.assert_allclose(losses[inside], expected, atol=1e-6)


def test_a_real_effect_is_kept_and_its_gain_is_out_of_sample():
    rows, y, start, weight, fold = sample(1, 4000, 1.0)
    made = boosted(rows, y, start, weight, fold, TreeParams(trees=200), range(4))
    assert len(made.forest) == made.trees > 0
    assert made.gain > 3 * made.error
    new, fresh, before, *_ = sample(2, 4000, 1.0)
    after = before + made.forest.predict(new)
    gain = np.mean(np.logaddexp(0, before) - fresh * before - np.logaddexp(0, after) + fresh * after)
    assert gain == pytest.approx(made.gain, abs=4 * made.error)


def test_noise_grows_no_trees():
    kept = sum(
        len(boosted(*sample(seed, 600, 0.0), TreeParams(trees=50), range(4)).forest) > 0 for seed in range(10)
    )
    assert kept <= 3


def test_growth_ends_soon_after_the_best():
    rows, y, start, weight, fold = sample(3, 800, 0.0)
    losses = _held_out(rows, y, start, weight, fold, np.unique(fold), TreeParams(trees=400, smallest_leaf=20))
    assert losses.shape[1] * STAGE_TREES < 400


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("together", [False, True])
def test_stopping_early_loses_next_to_nothing_against_all_trees(seed, together, monkeypatch):
    """With slow learning the loss of columns that say something only together rests, and falls again."""
    rng = np.random.default_rng(seed)
    columns, start = rng.normal(size=(2_000, 4)), rng.normal(size=2_000)
    moved = 0.6 * (np.sign(columns[:, 0] * columns[:, 1]) if together else columns.sum(axis=1))
    y = (rng.random(2_000) < expit(start + moved)).astype(float)
    data = np.column_stack((columns, start)), y, start, np.ones(2_000), np.arange(2_000) % 4
    stopped = _held_out(*data, range(4), TreeParams(trees=400)).mean(axis=0).min()
    monkeypatch.setattr("calibrant.fits.trees.STRETCH_TREES", 400)
    every = _held_out(*data, range(4), TreeParams(trees=400)).mean(axis=0)
    assert len(every) == 400 // STAGE_TREES
    assert stopped - every.min() < 5e-4  # half of a thousandth of a nat
