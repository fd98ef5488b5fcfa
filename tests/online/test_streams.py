"""What every forecaster and calibrator of streams keeps to: keys, late outcomes, runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import MAKERS, answer

import calibrant as cb
from calibrant.errors import InvalidInputError
from calibrant.kernels import online
from calibrant.online import (
    DecisionLossForecaster,
    DistanceForecaster,
    ExpectedErrorForecaster,
    OnlineCalibrator,
    total_certificate,
)
from calibrant.online.inputs import batch_ends

GOLDEN = Path(__file__).parent / "golden"
guides = st.one_of(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1))


@pytest.fixture
def compiled():
    """Machine code whatever the length, and plain Python again afterwards."""
    kernels = [online.run_grid, online.run_bins, online.run_experts]
    for kernel in kernels:
        kernel.compile_now()
    yield
    for kernel in kernels:
        kernel._fast = None


def stepped(player, y, p, ends):
    out = []
    begin = 0
    for end in ends:
        out += [answer(player, p[t], key=t) for t in range(begin, end)]
        for t in range(begin, end):
            player.learn_one(y[t], key=t)
        begin = end
    return out


def runner(player, y, p, batches):
    if isinstance(player, (DistanceForecaster, OnlineCalibrator)):
        return player.run(y, p, batches=batches)
    return player.run(y, p)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
@given(
    rows=st.lists(st.tuples(st.booleans(), guides), max_size=80),
    size=st.integers(1, 5),
    cut=st.integers(0, 80),
)
@settings(max_examples=25, deadline=None)
def test_a_run_is_its_steps_and_saving_changes_nothing(maker, rows, size, cut):
    y, p = [int(a) for a, _ in rows], [b for _, b in rows]
    player, walker = maker(), maker()
    if not isinstance(player, (DistanceForecaster, OnlineCalibrator)):
        size = 1
    ends = [*range(size, len(y), size), len(y)] if y else []
    batches = np.arange(len(y)) // size
    cut = min(cut // size * size, len(y))
    first = runner(player, y[:cut], p[:cut], batches[:cut])
    player = type(player).from_json(player.to_json())
    second = runner(player, y[cut:], p[cut:], batches[cut:])
    assert [*first.predictions, *second.predictions] == stepped(walker, y, p, ends)
    assert player.to_json() == walker.to_json()
    assert repr(player) == repr(walker)
    assert json.dumps(second.to_dict())
    assert repr(second).startswith("Run(")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("chance", [0.0, 0.4, 1.0])
def test_machine_code_is_the_steps_bit_for_bit(maker, chance):
    rng = np.random.default_rng(7)
    y, p = (rng.random(1500) < chance).astype(int), np.round(rng.random(1500), 2)
    player, walker = maker(), maker()
    size = 3 if isinstance(player, (DistanceForecaster, OnlineCalibrator)) else 1
    run = runner(player, y, p, np.arange(1500) // size)
    assert run.predictions.tolist() == stepped(walker, y.tolist(), p.tolist(), range(size, 1501, size))
    assert player.to_json() == walker.to_json()


def test_groups_and_segments_run_as_they_step():
    rng = np.random.default_rng(2)
    y, p, n = (rng.random(900) < 0.6).astype(int), rng.random(900), 900
    groups = {"a": rng.random(n) < 0.5, 3: rng.random(n) < 0.3}
    runs, steps = (DecisionLossForecaster(groups=["a", 3.0], seed=4) for _ in range(2))
    out = runs.run(y, p, groups=groups).predictions
    for t in range(n):
        inside = [name for name in groups if groups[name][t]]
        assert steps.predict_one(p[t], groups=inside) == out[t]
        steps.learn_one(y[t])
    assert runs.to_json() == steps.to_json()
    league = np.array(["x", None, 1.0], dtype=object)[rng.integers(0, 3, n)]
    runs, steps = (OnlineCalibrator(by="league") for _ in range(2))
    out = runs.run(y, p, by=league)
    for t in range(n):
        assert steps.transform_one(p[t], by=league[t]) == out.predictions[t]
        steps.learn_one(y[t])
        assert steps.certificate == out.certificate[t]
    assert runs.to_json() == steps.to_json()
    assert set(runs.segments) == {"x", "(missing)", "1"}
    assert runs.brier_bound() is None or runs.brier_bound() == pytest.approx(3 * math.log(2) / 2)
    assert sum(runs.weights(1).values()) == pytest.approx(1)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_saving_while_outcomes_wait(maker, tmp_path):
    rng = np.random.default_rng(3)
    player, waiting = maker(), []
    twin = maker()
    for t in range(300):
        p = float(rng.random())
        key = t if t % 2 else f"record {t}"
        assert answer(player, p, key=key) == answer(twin, p, key=key)
        waiting.append(key)
        if len(waiting) > 3:
            late = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.2:
                player.forget(late)
                twin.forget(late)
            else:
                outcome = int(rng.random() < 0.3)
                player.learn_one(outcome, key=late)
                twin.learn_one(outcome, key=late)
        if t % 50 == 0:
            player.save(tmp_path / "state.json")
            player = type(player).load(tmp_path / "state.json")
    assert player.pending == twin.pending == len(waiting)
    assert player.to_json() == twin.to_json()
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_keys(maker):
    player = maker()
    answer(player, 0.3)
    with pytest.raises(InvalidInputError, match="needs a key while an earlier forecast"):
        answer(player, 0.3)
    player.learn_one(True)
    for key in ("a", 1, np.int64(2), "2"):
        answer(player, 0.3, key=key)
    before = player.to_json()
    for bad, message in (
        (lambda: answer(player, 0.3, key="a"), "must not be waiting already"),
        (lambda: answer(player, 0.3, key=2.5), "text or a whole number"),
        (lambda: answer(player, 0.3, key=True), "text or a whole number"),
        (lambda: answer(player, 1.7, key=9), r"must lie in \[0, 1\]"),
        (lambda: answer(player, float("nan"), key=9), r"must lie in \[0, 1\]"),
        (lambda: answer(player, "0.5", key=9), "must be a number"),
        (lambda: player.learn_one(1, key="z"), "must belong to a forecast that waits"),
        (lambda: player.learn_one(1), "must belong to a forecast that waits"),
        (lambda: player.learn_one(0.5, key="a"), "must be 0 or 1"),
        (lambda: player.learn_one(None, key="a"), "must be 0 or 1"),
        (lambda: player.learn_one(np.nan, key="a"), "must be 0 or 1"),
        (lambda: player.forget("z"), "must belong to a forecast that waits"),
        (lambda: runner(player, [1], [0.5], None), "needs every earlier outcome"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            bad()
    assert player.to_json() == before, "what was refused changed nothing"
    player.forget("a")
    for key in (2, 1, "2"):
        player.learn_one(np.bool_(False), key=key)
    assert (player.pending, player.rounds) == (0, 4)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_more_late_outcomes_than_announced_withdraw_the_promise_for_ever(maker):
    player = maker()
    promise = player.brier_bound if isinstance(player, OnlineCalibrator) else player.bound
    for t in range(player.delay + 1):
        answer(player, 0.4, key=t)
    promised = promise() is not None
    assert promised == (getattr(player, "potential", "") != "quadratic")
    answer(player, 0.4, key="one too many")
    assert promise() is None
    for t in range(player.delay + 1):
        player.learn_one(0, key=t)
    player.learn_one(1, key="one too many")
    assert promise() is None
    assert type(player).from_json(player.to_json()).to_json() == player.to_json()
    if player.certificate is not None:
        assert player.certificate >= 0


def test_rolling_outcomes_withdraw_the_brier_promise():
    calibrator = OnlineCalibrator(guard=False, delay=2)
    for key in "ab":
        calibrator.transform_one(0.3, key=key)
    calibrator.learn_one(1, key="a")
    assert calibrator.brier_bound() == pytest.approx(3 * math.log(2) / 2)
    calibrator.transform_one(0.3, key="c")  # while b waits and a was learned
    assert calibrator.brier_bound() is None


def test_what_is_added_is_certificates():
    parts = [DistanceForecaster(), DistanceForecaster(), OnlineCalibrator()]
    rng = np.random.default_rng(0)
    y = (rng.random((3, 200)) < 0.3).astype(int)
    p = [part.run(rows, np.full(200, 0.5)).predictions for part, rows in zip(parts, y, strict=True)]
    total = total_certificate(parts)
    assert total == pytest.approx(sum(part.certificate for part in parts))
    assert 600 * cb.lower_distance(y.ravel(), np.concatenate(p)) <= total
    with pytest.raises(InvalidInputError, match="position in one game"):
        parts[0] + parts[1]
    for bad in ([*parts, ExpectedErrorForecaster()], [OnlineCalibrator(guard=False)], [3]):
        with pytest.raises(InvalidInputError):
            total_certificate(bad)
    assert total_certificate([]) == 0


@pytest.mark.parametrize("kind", ["DistanceForecaster", "ExpectedErrorForecaster", "DecisionLossForecaster"])
def test_bad_arguments(kind):
    make = getattr(cb.online, kind)
    bad = [{"horizon": 0}, {"horizon": 1.5}, {"horizon": True}]
    if kind != "DistanceForecaster":
        bad += [{"bins": 0}, {"bins": "many"}, {"seed": -1}]
    if kind == "DecisionLossForecaster":
        bad += [{"potential": "cubic"}, {"groups": ["a", "a"]}, {"groups": ["everybody"]}, {"groups": "ab"}]
    else:
        bad += [{"delay": -1}, {"delay": 0.5}]
    for arguments in bad:
        with pytest.raises(cb.CalibrantError):
            make(**arguments)
    player = make()
    with pytest.raises(cb.CalibrantError):
        player.bound(-1)
    for y in ([0, 2], [0.5], [[1, 0]], ["a"], [np.nan]):
        with pytest.raises(cb.CalibrantError):
            player.run(y)
    with pytest.raises(cb.CalibrantError):
        player.run([1, 0], [0.5])
    assert len(player.run([])) == 0
    assert player.rounds == 0


def test_bad_arguments_of_the_calibrator():
    for arguments in (
        {"by": 3}, {"guard": 1}, {"bins": 0}, {"decay": 0}, {"decay": 1.1}, {"decay": np.nan},
        {"prior": 0}, {"prior": 1}, {"prior": "half"}, {"delay": -1}, {"delay": None},
    ):  # fmt: skip
        with pytest.raises(cb.CalibrantError):
            OnlineCalibrator(**arguments)
    with pytest.raises(cb.CalibrantError, match="made with by="):
        OnlineCalibrator().transform_one(0.5, by="a")
    with pytest.raises(cb.CalibrantError, match=r"by must name the segment of each row: .* by='league'"):
        OnlineCalibrator(by="league").run([1], [0.5])
    with pytest.raises(cb.CalibrantError, match="has no segments"):
        OnlineCalibrator().run([1], [0.5], by=["a"])
    with pytest.raises(cb.CalibrantError, match="in one stretch"):
        OnlineCalibrator().run([1, 0, 1], [0.5, 0.5, 0.5], batches=["mon", "tue", "mon"])
    with pytest.raises(cb.CalibrantError, match="must be one of"):
        DecisionLossForecaster(groups=["a"]).predict_one(groups=["b"])
    with pytest.raises(cb.CalibrantError, match="array of bool"):
        DecisionLossForecaster(groups=["a"]).run([1], groups={"a": [1]})


def test_a_batch_that_comes_back_is_refused_at_once():
    labels = np.arange(200_000)
    labels[-1] = 5
    with pytest.raises(InvalidInputError, match="got 5 in two stretches"):
        batch_ends(labels, len(labels))
    with pytest.raises(InvalidInputError, match="must be one-dimensional"):
        batch_ends([[1], [1]], 2)


@pytest.mark.parametrize("gap", [None, np.nan, np.datetime64("NaT")])
def test_rows_without_a_batch_are_refused(gap):
    with pytest.raises(InvalidInputError, match=r"batches must not be missing; got .* in row 1 .2 rows."):
        OnlineCalibrator().run([1, 0, 1], [0.5, 0.5, 0.5], batches=np.array(["mon", gap, gap], dtype=object))


@pytest.mark.parametrize("groups", [b"ab", np.array("a"), "ab", 3])
def test_what_is_no_list_of_groups_is_refused(groups):
    for make in (cb.GroupMonitor, lambda names: DecisionLossForecaster(groups=names)):
        with pytest.raises(InvalidInputError, match="groups must be a list of names"):
            make(groups)
    with pytest.raises(InvalidInputError, match="streams must be a list"):
        cb.online.total_certificate(DistanceForecaster())


@pytest.mark.parametrize("seed", [10**15 + 1, 2**64, 10**40])
@pytest.mark.parametrize("make", [ExpectedErrorForecaster, DecisionLossForecaster])
def test_large_seeds_are_saved_too(make, seed):
    forecaster = make(bins=4, seed=seed)
    forecaster.run([1, 0, 1, 1, 0] * 5)
    assert make.from_json(forecaster.to_json()).run([1, 0] * 9).predictions.tolist() == (
        forecaster.run([1, 0] * 9).predictions.tolist()
    )


@pytest.mark.parametrize("decay", [5e-324, 1e-310, 1e-200])
def test_forgetting_everything_is_no_overflow(decay):
    calibrator = OnlineCalibrator(decay=decay, guard=False)
    p, y = [0.0, 1.0, 0.5, 1e-9] * 5, [0, 1, 1, 0, 1] * 4
    almost = OnlineCalibrator(decay=1e-16, guard=False).run(y, p).predictions
    assert calibrator.run(y, p).predictions == pytest.approx(almost)


def test_a_tiny_prior_has_a_finite_promise():
    assert OnlineCalibrator(prior=1e-320, guard=False).brier_bound() == pytest.approx(160 * math.log(10))
