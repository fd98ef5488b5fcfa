"""Monitor: fair bets, few false alarms for ever, quick true ones, small state, and joining."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb
from calibrant.inference.bets import bet_names, log_pays


@given(v=st.floats(0, 1))
def test_every_bet_is_fair(v):
    pays = np.exp(log_pays(np.array([0.0, 1.0]), np.array([v, v])))
    if 0 < v < 1:
        np.testing.assert_allclose((1 - v) * pays[0] + v * pays[1], 1, rtol=1e-12)
    else:
        np.testing.assert_allclose(pays[int(v)], 1)
    assert pays.shape[1] == len(bet_names()) == len(set(bet_names()))


def stream(n, rng, shape="uniform"):
    p = rng.random(n) if shape == "uniform" else rng.beta(0.5, 40, n)
    return (rng.random(n) < p).astype(int), p


def false_alarms(runs, shape):
    rng = np.random.default_rng(3)
    return sum(cb.Monitor(alpha=0.1).update(*stream(10_000, rng, shape)).alarm for _ in range(runs))


def test_false_alarms_are_rare():
    assert false_alarms(40, "uniform") <= 11  # 4 expected at most; 11 or fewer but once in 1,000


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "rare"])
def test_false_alarms_over_ten_thousand_steps(shape):
    runs = 1000
    assert false_alarms(runs, shape) <= 0.1 * runs + 3 * math.sqrt(0.09 * runs)


def test_evidence_has_mean_one_under_calibration():
    rng = np.random.default_rng(0)
    finals = [math.exp(cb.Monitor().update(*stream(300, rng)).log_evalue) for _ in range(400)]
    assert np.mean(finals) <= 1 + 4 * np.std(finals) / math.sqrt(len(finals))


@pytest.mark.parametrize("shape", ["uniform", "rare"])
def test_trouble_is_found_and_dated(shape):
    rng = np.random.default_rng(5)
    y, p = stream(12_000, rng, shape)
    onset = 6000
    odds = np.log(p / (1 - p)) + 1.0
    y[onset:] = rng.random(len(p) - onset) < (1 / (1 + np.exp(-odds)))[onset:]
    monitor = cb.Monitor()
    assert not monitor.update(y[:onset], p[:onset]).alarm
    found = monitor.update(y[onset:], p[onset:])
    assert found.alarm
    assert onset < found.alarm_at < onset + (1500 if shape == "uniform" else 6000)
    assert abs(found.onset - onset) < (300 if shape == "uniform" else 1500)
    assert found.suspicion.startswith(("shift", "near", "spread"))
    assert found.pvalue < 0.05


def test_micro_batches_make_hardly_a_difference():
    rng = np.random.default_rng(1)
    y, p = stream(2000, rng)
    whole, single = cb.Monitor(), cb.Monitor()
    whole.update(y, p)
    for start in range(0, 2000, 7):
        single.update(y[start : start + 7], p[start : start + 7])
    np.testing.assert_allclose(single.pay, whole.pay)
    np.testing.assert_allclose(single.lowest, whole.lowest)
    assert single.n == whole.n == 2000


def test_json_keeps_everything():
    rng = np.random.default_rng(2)
    monitor = cb.Monitor(alpha=0.01)
    assert cb.Monitor.from_json(monitor.to_json()).reading() == monitor.reading()
    monitor.update(*stream(1000, rng))
    copy = cb.Monitor.from_json(monitor.to_json())
    more = stream(1000, rng)
    assert copy.update(*more) == monitor.update(*more)
    assert len(monitor.to_json()) < 100_000
    for text in ("{}", "nonsense", json.dumps({"calibrant_monitor": 9, "pay": []})):
        with pytest.raises(cb.CalibrantError):
            cb.Monitor.from_json(text)


@pytest.mark.slow
def test_state_stays_small_after_ten_million_records():
    rng = np.random.default_rng(4)
    monitor = cb.Monitor()
    for _ in range(100):
        monitor.update(*stream(100_000, rng))
    assert monitor.n == 10**7
    assert len(monitor.to_json()) < 100_000


def test_joining():
    rng = np.random.default_rng(6)
    first, second = stream(3000, rng), stream(3000, rng)
    a, b = cb.Monitor(), cb.Monitor()
    a.update(*first)
    b.update(*second)
    whole = cb.Monitor()
    whole.update(*first)
    whole.update(*second)
    joined = a + b
    np.testing.assert_allclose(joined.pay, whole.pay)
    np.testing.assert_allclose(joined.lowest, whole.lowest)
    assert np.array_equal(joined.lowest_at, whole.lowest_at)
    assert not joined.reading().alarm
    empty = cb.Monitor()
    assert (empty + a).log_evalue == (a + empty).log_evalue == a.log_evalue
    joined.update(*stream(100, rng))
    assert joined.n == 6100


def test_joined_evidence_has_mean_one_and_finds_trouble():
    rng = np.random.default_rng(8)
    finals = []
    for _ in range(300):
        a, b = cb.Monitor(), cb.Monitor()
        a.update(*stream(150, rng))
        b.update(*stream(250, rng))
        finals.append(math.exp((a + b).log_evalue))
    assert np.mean(finals) <= 1 + 4 * np.std(finals) / math.sqrt(len(finals))
    parts = []
    for _ in range(4):  # none of them long enough to see it alone
        part = cb.Monitor()
        p = rng.random(400)
        part.update(rng.random(400) < np.clip(p + 0.07, 0, 1), p)
        parts.append(part)
    assert sum(parts, cb.Monitor()).reading().alarm


def test_groups():
    rng = np.random.default_rng(9)
    watch = cb.GroupMonitor(["a", "b"], alpha=0.05)
    y, p = stream(4000, rng)
    group = np.where(rng.random(4000) < 0.5, "a", "b")
    y[group == "b"] = rng.random(np.sum(group == "b")) < p[group == "b"] ** 2
    found = watch.update(y, p, group)
    assert found["b"].alarm
    assert not found["a"].alarm
    assert found["a"].n + found["b"].n == found["everybody"].n == 4000
    assert cb.GroupMonitor.from_json(watch.to_json()).readings() == watch.readings()
    for bad in (
        lambda: cb.GroupMonitor([]),
        lambda: cb.GroupMonitor(["a", "a"]),
        lambda: watch.update([1], [0.5], ["z"]),
    ):
        with pytest.raises(cb.CalibrantError):
            bad()


def test_impossible_events_end_the_matter():
    found = cb.Monitor().update([0, 1], [0.0, 0.0])
    assert found.alarm
    assert found.alarm_at == 2
    assert cb.Monitor().update([0, 1], [0.0, 1.0]).log_evalue == pytest.approx(0)


def test_bad_input_is_refused():
    for y, p in (([0, 1], [0.5]), ([0, 2], [0.5, 0.5]), ([0, 1], [0.5, np.nan])):
        with pytest.raises(cb.CalibrantError):
            cb.Monitor().update(y, p)
    with pytest.raises(cb.CalibrantError):
        cb.Monitor(alpha=0)
