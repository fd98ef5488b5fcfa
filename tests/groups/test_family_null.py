"""The null: exact coins, one range by two routes, step-down p-values, false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import multicalibration as oracle

from calibrant.groups.audit import audit
from calibrant.groups.family import (
    MIN_BITS_AHEAD,
    WORDS_AHEAD,
    FamilyNull,
    RandomWords,
    bernoulli_words,
)
from calibrant.groups.statistics import Terms, Variant
from calibrant.groups.subpopulations import Lists
from calibrant.inference.pvalues import adjusted_pvalues
from calibrant.kernels.groups import LANES, MIN_STRETCH, null_ranges, settle_coins
from calibrant.records import Records, check_records


def test_coins_fall_with_their_chance():
    rng = np.random.default_rng(0)
    chance = np.array([0.0, 1.0, 0.5, 0.1, 1 / 3, 1e-3, 1 - 2**-53, 5e-324])
    words = bernoulli_words(chance, 4000, RandomWords(rng))
    share = np.bitwise_count(words).sum(axis=1) / (64 * words.shape[1])
    bound = 5 * np.sqrt(chance * (1 - chance) / (64 * words.shape[1]))
    assert np.all(np.abs(share - chance) <= bound + 1e-15)
    assert share[0] == 0
    assert share[1] == 1


def test_machine_code_and_numpy_draw_the_same_coins():
    chance = np.append(np.random.default_rng(2).random(500), [0.0, 1.0, 0.5, 1e-9])
    expected = bernoulli_words(chance, 3, RandomWords(np.random.default_rng(3)))
    for settle in (settle_coins.plain, settle_coins.machine_code()):
        found = bernoulli_words(chance, 3, RandomWords(np.random.default_rng(3)), settle)
        np.testing.assert_array_equal(found, expected)


def test_words_drawn_ahead_are_those_of_the_generator():
    at_once, ahead = (RandomWords(np.random.default_rng(4), bits) for bits in (0, MIN_BITS_AHEAD))
    for shape in ((3, 5), (WORDS_AHEAD - 20,), (7, 2), (2, WORDS_AHEAD), (0, 4), (1,)):
        np.testing.assert_array_equal(ahead(*shape), at_once(*shape))


def test_lanes_are_independent_of_each_other():
    words = bernoulli_words(np.full(20_000, 0.3), 1, RandomWords(np.random.default_rng(1)))
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1)
    correlation = np.corrcoef(bits.T.astype(float)) - np.eye(64)
    assert np.max(np.abs(correlation)) < 5 / np.sqrt(20_000)


def _null(n: int, draws: int, variant: str = "plain", digits: int = 2) -> tuple[FamilyNull, Lists]:
    rng = np.random.default_rng(7)
    p = np.round(rng.random(n), digits)
    y = (rng.random(n) < p).astype(int)
    checked = check_records(y, p, rng.random(n) + 0.1, kind="real" if variant == "real" else "labels")
    records = Records.of(checked)
    batch = Lists.of(
        ["a", "b", "c"], [np.flatnonzero(rng.random(n) < c).astype(np.int32) for c in (1, 0.4, 0.1)]
    )
    return FamilyNull(records, Variant(variant), draws, RandomWords(rng)), batch


@pytest.mark.parametrize("digits", [2, 9])
def test_machine_code_and_numpy_simulate_the_same_ranges(digits):
    null, batch = _null(400, 130, digits=digits)
    expected = null._ranges_by_numpy(batch)
    for kernel in (null_ranges.plain, null_ranges.machine_code()):
        found = np.empty((3, LANES * null.bits.shape[1]))
        kernel(batch.members, batch.offsets, null.steps, null.bits, 0, found)
        np.testing.assert_allclose(found[:, :130], expected, rtol=1e-12)


@pytest.mark.parametrize("digits", [3, 9])
def test_compiled_ranges_go_on_from_stretch_to_stretch(digits):
    null, batch = _null(2 * MIN_STRETCH + 100, 70, digits=digits)
    found = null._compiled_ranges(batch, null_ranges.machine_code())
    np.testing.assert_allclose(found, null._ranges_by_numpy(batch), rtol=1e-11)


@pytest.mark.parametrize("variant", ["plain", "proportional", "proportional-shifted"])
def test_simulated_z_is_the_z_of_the_simulated_outcomes(variant):
    null, batch = _null(150, 70, variant)
    curves = batch.measure(_terms(null, null.records.outcome))
    found = null.z(batch, curves.sigma * curves.weight)
    np.testing.assert_allclose(found, null._z_draw_by_draw(batch), rtol=1e-10, atol=1e-12)


def _terms(null: FamilyNull, y: np.ndarray) -> Terms:
    return null.variant.terms(null.records.prediction, y, null.records.weight)


def test_first_draw_by_hand():
    null, batch = _null(150, 3)
    first = batch.measure(_terms(null, (null.bits[:, 0] & np.uint64(1)).astype(float)))
    np.testing.assert_allclose(null.z(batch, first.sigma * first.weight)[:, 0], first.z, rtol=1e-12)


@given(
    st.integers(1, 6).flatmap(
        lambda k: st.tuples(
            st.lists(st.integers(0, 9), min_size=k, max_size=k),
            st.lists(st.lists(st.integers(0, 9), min_size=8, max_size=8), min_size=k, max_size=k),
        )
    )
)
def test_adjusted_pvalues_are_step_down_maxima(case):
    z, simulated = np.array(case[0], float), np.array(case[1], float)
    np.testing.assert_allclose(adjusted_pvalues(z, simulated), oracle.step_down(z, simulated))


def calibrated(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Perfect predictions, every other time heavily tied, and three columns that make 80 segments."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.05, 0.2, 0.5, 0.9], n) if seed % 2 else rng.beta(0.6, 2.0, n)
    columns = {name: rng.integers(0, 4, n) for name in ("a", "b", "c", "d")}
    return (rng.random(n) < p).astype(int), p, columns


def false_alarms(seeds: range) -> int:
    alarms = 0
    for seed in seeds:
        y, p, columns = calibrated(seed)
        found = audit(y, p, groups=columns, draws=199, seed=seed)
        assert found.tested > 60
        alarms += found.pvalue <= 0.05
    return alarms


def test_few_false_alarms():
    assert false_alarms(range(40)) <= 6  # 0.3% chance to fail at a true rate of 5%


@pytest.mark.slow
def test_false_alarms_stay_at_five_percent():
    alarms = false_alarms(range(1000, 1400))
    assert alarms <= 31  # 400 data sets: 20 expected, three deviations above


def test_steps_of_earlier_draws_count_toward_machine_code():
    """Ten small redraws are one large simulation: together they repay starting numba."""
    null, batch = _null(200, 64)
    steps = 0
    for _ in range(2):
        null.z(batch, np.ones(len(batch)))
        again = FamilyNull(null.records, null.variant, null.draws, null.words)
        steps += len(batch.members) * null.draws
        assert again.words.steps == steps
        null = again
