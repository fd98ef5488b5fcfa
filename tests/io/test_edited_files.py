"""Edited maps and states: refused or unchanged, never a raw error and never another answer in silence."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from calibrant import GroupMonitor, Monitor, load_recalibration, online, recalibrate
from calibrant.errors import CalibrantError
from calibrant.files import checksum_of, parse_json

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


def scratched(text, rng):
    """Return the text with one character replaced, left out or doubled, or cut short."""
    place, way = rng.randrange(len(text)), rng.randrange(4)
    if way == 0:
        return text[:place]
    middle = ["", text[place] * 2, rng.choice('0123456789.-eE"{}[],: truefalsn')][way - 1]
    return text[:place] + middle + text[place + 1 :]


def attack(name, folder, times, seed):
    """Edit a file many times; return how often each kind of edit was refused, and what went wrong.

    A file with a checksum that does not fit must be refused, or be the same document. Where the editor has
    computed the checksum again, the file may be another one: then only raw errors are wrong.
    """
    write, show = FILES[name]
    path, rng, wrong = folder / f"{name}.json", random.Random(seed), []
    counts = Counter()
    write(path)
    expected, original = show(path), path.read_text()
    content = json.loads(original)
    every = list(places(content))
    for _ in range(times):
        kind = rng.choice(["value", "value", "resealed", "text"])
        if kind == "text":
            text = scratched(original, rng)
        else:
            copy = edited(content, rng, every)
            if kind == "resealed":
                copy["checksum"] = checksum_of(parse_json(json.dumps({**copy, "checksum": ""})))
            text = json.dumps(copy, indent=rng.choice([None, 1, 2]))
        path.write_text(text)
        try:
            if show(path) != expected and kind != "resealed":
                wrong.append(("changed", text))
        except CalibrantError:
            counts[kind] += 1
        except Exception as error:
            wrong.append((repr(error), text))
    return counts, wrong


def check_edits(name, folder, times, seed, record_property):
    refused, wrong = attack(name, folder, times, seed)
    record_property("tried", times)
    record_property("wrong", len(wrong))
    assert [what for what, _ in wrong] == []
    assert refused["value"] > 0.45 * times
    assert refused["text"] > 0.15 * times
    assert refused["resealed"] > 0.02 * times


@pytest.mark.parametrize("name", FILES)
def test_edits_are_refused(name, tmp_path, record_property):
    check_edits(name, tmp_path, 100, 1, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_edits_are_refused(name, tmp_path, record_property):
    check_edits(name, tmp_path, 4_300, 2, record_property)


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


def test_a_version_too_large_for_a_float_is_refused(tmp_path):
    path = tmp_path / "stream.json"
    stream_file(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 10**400}))
    with pytest.raises(CalibrantError, match="checksum"):
        online.OnlineCalibrator.load(path)
