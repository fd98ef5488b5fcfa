"""Stored states of streams and monitors: golden files, edited files, locks between processes."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from streams import answer

import calibrant as cb
from calibrant.errors import InvalidInputError, UnreadableFileError, UnwritableFileError
from calibrant.files import atomic_write, lock_file
from calibrant.online import (
    ClassForecaster,
    CutoffForecaster,
    DecisionLossForecaster,
    DistanceForecaster,
    ExpectedErrorForecaster,
    OnlineCalibrator,
)

GOLDEN = Path(__file__).parent / "golden"
guides = st.one_of(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1))


def golden_player(name):
    """The state that the golden files hold: a few rounds, one outcome learned late, two that wait."""
    makers = {
        "ClassForecaster": lambda: ClassForecaster(2, seed=7),
        "CutoffForecaster": lambda: CutoffForecaster(seed=7),
        "DistanceForecaster": lambda: DistanceForecaster(delay=2),
        "ExpectedErrorForecaster": lambda: ExpectedErrorForecaster(delay=2, seed=7),
        "DecisionLossForecaster": lambda: DecisionLossForecaster(groups=["a"], seed=7),
        "OnlineCalibrator": lambda: OnlineCalibrator(delay=2),
    }
    player, rng = makers[name](), np.random.default_rng(1)
    for t in range(30):
        answer(player, float(rng.random()), key=t)
        if t >= 2:
            player.learn_one(int(rng.random() < 0.6), key=t - 2)
    return player


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_states_of_every_version_are_read_and_go_on_as_they_would_have(path):
    kind = path.stem.split(".")[0]
    expected = json.loads(path.with_suffix(".next").read_text())
    player = getattr(cb.online, kind).load(path)
    if kind == "Monitor":
        reading = player.update([1, 0, 1], [0.2, 0.5, 0.1]).to_dict()
        assert {name: reading[name] for name in expected} == pytest.approx(expected)
        return
    if kind == "GroupMonitor":
        readings = player.update([1, 0, 1], [0.2, 0.5, 0.1], ["a", 1.0, None])
        assert list(readings) == list(expected)
        for name, fields in expected.items():
            reading = readings[name].to_dict()
            assert {field: reading[field] for field in fields} == pytest.approx(fields)
        return
    out = []
    for key in range(100, 140):
        out.append(answer(player, key / 150, key=key))
        player.learn_one(key % 3 == 0, key=key)
    assert out == pytest.approx(expected, rel=1e-12)
    assert player.pending == 2


def test_there_is_a_golden_file_of_every_kind():
    kinds = {path.stem.split(".")[0] for path in GOLDEN.glob("*.json")}
    assert kinds == {
        name for name in cb.online.__all__ if name not in ("Reading", "Run", "total_certificate")
    }
    for kind in ("Monitor", "GroupMonitor"):
        newest = sorted(GOLDEN.glob(f"{kind}.v*.json"))[-1].read_text()
        written = json.loads(getattr(cb, kind).from_json(newest).to_json())
        assert _names(written) == _names(json.loads(newest)), "a changed state needs a new golden file"
    for kind in kinds - {"Monitor", "GroupMonitor"}:
        written = json.loads(golden_player(kind).to_json())
        newest = json.loads(sorted(GOLDEN.glob(f"{kind}.v*.json"))[-1].read_text())
        del newest["checksum"]  # of the file, not of the state
        assert written["version"] == newest["version"]
        assert _shape(written) == _shape(newest), "a changed state needs a new version and a new golden file"


def _names(item):
    """The fields of a monitor's state, and its version; of a state of groups, those of everybody."""
    state = item.get("everybody", item)
    return sorted(set(state) - {"checksum"}), state["calibrant_monitor"]


def _shape(item):
    if isinstance(item, dict):
        return {name: _shape(part) for name, part in item.items()}
    return [_shape(part) for part in item] if isinstance(item, list) else type(item)


def everywhere(item, path=()):
    """Yield the place of every field and list entry of a state (of long lists, the first)."""
    yield path
    parts = (
        item.items()
        if isinstance(item, dict)
        else list(enumerate(item))[:2]
        if isinstance(item, list)
        else []
    )
    for name, part in parts:
        yield from everywhere(part, (*path, name))


def changed(state, path, value):
    copy = json.loads(json.dumps(state))
    place = copy
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return copy


STATES = [path for path in sorted(GOLDEN.glob("*.json")) if not path.stem.startswith("Group")]


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)
def test_edited_states_are_refused_or_harmless(path):
    """Every field in turn becomes nonsense: that is refused, or the state it makes can be played on."""
    kind = getattr(cb.online, path.stem.split(".")[0])
    state = json.loads(path.read_text())
    refused = 0
    for place in list(everywhere(state))[1:]:
        for value in (None, "x", -1, 1e400, float("nan"), [], {}, 2**70, True, 0.5, "(missing)"):
            text = json.dumps(changed(state, place, value))
            try:
                player = kind.from_json(text)
            except InvalidInputError as error:
                refused += "must" in str(error)
                continue
            json.loads(player.to_json())
            if kind in (cb.Monitor, cb.GroupMonitor):
                assert _readings(player)
            elif player.rounds < 10**6:
                answer(player, 0.5, key="new")
                player.learn_one(1, key="new")
    assert refused > 50


def _readings(player):
    readings = player.readings() if isinstance(player, cb.GroupMonitor) else {"one": player.reading()}
    return all(
        0 <= reading.pvalue <= 1 and not math.isnan(reading.log_evalue) for reading in readings.values()
    )


def test_edited_states_of_groups_are_refused():
    state = json.loads((GOLDEN / "GroupMonitor.v2.json").read_text())
    for bad in (
        {**state, "a": {**state["a"], "peak": float("nan")}},
        {**state, "a": {**state["a"], "alpha": 0.5}},
        {**state, "a": 3},
        {name: part for name, part in state.items() if name != "everybody"},
    ):
        with pytest.raises(InvalidInputError):
            cb.GroupMonitor.from_json(json.dumps(bad))


def test_groups_that_lost_records_are_refused():
    watch = cb.GroupMonitor(["a", "b"])
    watch.update([1, 0, 1], [0.5, 0.4, 0.3], ["a", "b", "b"])
    state = json.loads(watch.to_json())
    state["a"] = json.loads(cb.GroupMonitor(["a", "b"]).to_json())["a"]
    with pytest.raises(InvalidInputError, match="must count each record for everybody and for one group"):
        cb.GroupMonitor.from_json(json.dumps(state))


def test_a_monitor_cannot_be_silenced_by_its_peak():
    state = json.loads((GOLDEN / "Monitor.v2.json").read_text())
    for peak in (float("nan"), float("inf"), -1, None, "0", 10**400):
        with pytest.raises(InvalidInputError):
            cb.Monitor.from_json(json.dumps({**state, "peak": peak}))
    alarmed = cb.Monitor()
    alarmed.update([1] * 60, [0.5] * 60)
    for edited in ({"alarm_at": None}, {"peak": 0.0}, {"peak": 0.0, "alarm_at": None}):
        with pytest.raises(InvalidInputError):
            cb.Monitor.from_json(json.dumps({**json.loads(alarmed.to_json()), **edited}))


def test_monitors_are_saved_like_everything_else(tmp_path):
    monitor, groups = cb.Monitor(), cb.GroupMonitor([1, "nan", None])
    groups.update([1, 0, 1], [0.5, 0.5, 0.5], np.array([1.0, np.nan, 1.0]))
    groups.update([1, 0], [0.5, 0.5], ["nan", None])
    assert [reading.n for reading in groups.readings().values()] == [5, 2, 1, 2]
    assert groups.alpha == pytest.approx(0.05)
    monitor.update([1, 0], [0.5, 0.2])
    for watch in (monitor, groups):
        watch.save(tmp_path / "watch.json")
        assert type(watch).load(tmp_path / "watch.json").to_json() == watch.to_json()
    with pytest.raises(InvalidInputError, match="which is reserved for missing"):
        groups.update([1], [0.5], ["(missing)"])


def test_suspicions_name_the_direction():
    often, seldom = cb.Monitor(), cb.Monitor()
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, 3000)
    assert "more often than predicted" in often.update(rng.random(3000) < p + 0.2, p).suspicion
    assert "less often than predicted" in seldom.update(rng.random(3000) < p - 0.2, p).suspicion
    p = rng.choice([0.02, 0.98], 3000)
    assert "too extreme" in cb.Monitor().update(rng.random(3000) < 0.5 + 0.7 * (p - 0.5), p).suspicion


def test_states_are_told_apart():
    text = DistanceForecaster().to_json()
    for bad in (text, "{}", "[]", "3", "", "{", text.replace("1", "9", 1), None, text + text):
        with pytest.raises(InvalidInputError):
            ExpectedErrorForecaster.from_json(bad)
    with pytest.raises(InvalidInputError, match="version 2"):
        DistanceForecaster.from_json(text.replace('"version": 2', '"version": 3'))
    with pytest.raises(InvalidInputError, match="JSON of a"):
        DistanceForecaster.from_json(text[:-1] + ', "moved": 0}')


def test_files_that_cannot_be_read_or_written(tmp_path):
    forecaster = DistanceForecaster()
    with pytest.raises(UnwritableFileError, match="must exist"):
        forecaster.save(tmp_path / "no" / "s.json")
    with pytest.raises(UnwritableFileError, match="got a folder"):
        forecaster.save(tmp_path)
    with pytest.raises(UnreadableFileError, match="must be readable"):
        DistanceForecaster.load(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFileError, match="not text"):
        DistanceForecaster.load(tmp_path / "bytes.json")


def test_a_lock_keeps_a_second_process_out(tmp_path):
    path = tmp_path / "s.json"
    with (
        lock_file(path),
        pytest.raises(UnreadableFileError, match="in use by another process"),
        lock_file(path, 0.1),
    ):
        pass
    with lock_file(path, 0.1):
        atomic_write(path, "{}")
    old = os.umask(0o077)
    try:
        atomic_write(tmp_path / "new.json", "{}")
        assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


def _count_up(path, times):
    for _ in range(times):
        with lock_file(path):
            atomic_write(path, str(int(Path(path).read_text()) + 1))


def test_two_processes_lose_nothing(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count_up, args=(path, 30)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert path.read_text() == "60"


def test_a_state_with_groups_is_refused_with_the_class_that_reads_it():
    state = cb.GroupMonitor(["a", "b"], alpha=0.05).to_json()
    with pytest.raises(cb.CalibrantError, match="load it with GroupMonitor"):
        cb.Monitor.from_json(state)
    assert set(cb.GroupMonitor.from_json(state).readings()) == {"everybody", "a", "b"}
