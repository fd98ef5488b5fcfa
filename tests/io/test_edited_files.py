"""Edited maps and states: refused or unchanged, never a raw error and never another answer in silence."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from calibrant import GroupMonitor, Monitor, load_recalibration, online, recalibrate
from calibrant.errors import CalibrantError

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.result.RecalibrationWarning")

RNG = np.random.default_rng(0)
P = RNG.random(400)
Y = (RNG.random(400) < P**1.4).astype(int)
G = RNG.choice(["a", "b", "checksum"], 400)
ODD = [None, True, False, 0, -1, 1, 2, 0.5, 1e308, -1e308, "", "x", "0.5", [], {}, [0.5], {"a": 1}, 10**400]


def map_file(path, **options):
    recalibrate(Y, P, seed=0, **options).save(path)


def monitor_file(path):
    watch = Monitor()
    watch.update(Y, P)
    watch.save(path)


def groups_file(path):
    watch = GroupMonitor(["a", "b", "checksum"])
    watch.update(Y, P, G)
    watch.save(path)


def stream_file(path):
    calibrator = online.OnlineCalibrator()
    calibrator.run(Y[:100], P[:100])
    calibrator.save(path)


def shown_map(path):
    fitted = load_recalibration(path)
    covariates = {"g": G[:50]} if fitted.map.needs_covariates else None
    return str(fitted), repr(fitted), str(fitted.assessment), fitted.predict(P[:50], covariates).tolist()


def shown_state(kind):
    return lambda path: (repr(state := kind.load(path)), state.to_json())


FILES = {
    "platt": (lambda path: map_file(path, method="platt"), shown_map),
    "isotonic": (lambda path: map_file(path, method="isotonic"), shown_map),
    "hierarchical": (lambda path: map_file(path, method="hierarchical", covariates={"g": G}), shown_map),
    "boost": (lambda path: map_file(path, method="boost", covariates={"g": G}), shown_map),
    "monitor": (monitor_file, shown_state(Monitor)),
    "groups": (groups_file, shown_state(GroupMonitor)),
    "stream": (stream_file, shown_state(online.OnlineCalibrator)),
}


def places(content, path=()):
    """Yield the path of every value in a JSON document."""
    yield path
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in items:
        yield from places(value, (*path, key))


def edited(content, rng, every):
    """Return the document with one value replaced, removed, repeated or moved."""
    copy = json.loads(json.dumps(content))
    path = rng.choice([place for place in every if place and place[0] != "checksum"])
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    way = rng.randrange(4)
    if way == 0 and isinstance(holder[path[-1]], float):
        holder[path[-1]] = np.nextafter(holder[path[-1]], rng.choice([-1e9, 1e9]))
    elif way == 1:
        del holder[path[-1]]
    elif way == 2 and isinstance(holder, list):
        holder.append(holder[path[-1]])
    else:
        holder[path[-1]] = rng.choice(ODD)
    return copy


def attack(name, folder, times, seed):
    """Edit a file many times; return how often it was refused, and what went wrong."""
    write, show = FILES[name]
    path, rng, refused, wrong = folder / f"{name}.json", random.Random(seed), 0, []
    write(path)
    expected, content = show(path), json.loads(path.read_text())
    every = list(places(content))
    for _ in range(times):
        copy = edited(content, rng, every)
        path.write_text(json.dumps(copy, indent=rng.choice([None, 1, 2])))
        try:
            if copy != content and show(path) != expected:
                wrong.append(("changed", copy))
        except CalibrantError:
            refused += 1
        except Exception as error:
            wrong.append((repr(error), copy))
    return refused, wrong


@pytest.mark.parametrize("name", FILES)
def test_edits_are_refused(name, tmp_path):
    refused, wrong = attack(name, tmp_path, 100, 1)
    assert [what for what, _ in wrong] == []
    assert refused > 80


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_edits_are_refused(name, tmp_path):
    refused, wrong = attack(name, tmp_path, 4_300, 2)
    assert [what for what, _ in wrong] == []
    assert refused > 4_000


@pytest.mark.parametrize("name", FILES)
def test_other_spacing_and_order_are_no_edit(name, tmp_path):
    write, show = FILES[name]
    path = tmp_path / "x.json"
    write(path)
    expected, content = show(path), json.loads(path.read_text())
    if name != "groups":  # one of its groups is called like the last field
        for indent in (None, 3):
            path.write_text(json.dumps(content, indent=indent, sort_keys=indent is None))
            assert show(path) == expected


@pytest.mark.parametrize("name", FILES)
def test_the_checksum_is_required(name, tmp_path):
    write, show = FILES[name]
    path = tmp_path / "x.json"
    write(path)
    text = path.read_text().rstrip()
    start = text.rindex('"checksum"')
    path.write_text(text[:start].rstrip().rstrip(",") + "}")
    with pytest.raises(CalibrantError, match="checksum"):
        show(path)
