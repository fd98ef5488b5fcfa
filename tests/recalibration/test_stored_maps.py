"""Stored recalibrations are data, and every number is checked before it is believed."""

from __future__ import annotations

import copy
import json
import math
import pkgutil
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from calibrant import load_recalibration, recalibrate
from calibrant.errors import CalibrantError
from calibrant.recalibration import maps
from calibrant.recalibration.maps.base import Map
from calibrant.recalibration.result import Recalibration

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))
COVARIATES = ("hierarchical", "patch", "boost", "augment")
PARTS = ("spline", "vector", "boost")
LIES = [
    None,
    "x",
    [],
    {},
    True,
    -1,
    0,
    1.5,
    1e308,
    -1e308,
    math.inf,
    math.nan,
    [0.5],
    [[0.5]],
    "0.5",
    10**400,
    -(10**400),
]


def places(item, path=()):
    """Yield the path of every value inside the parts that a map is read from."""
    pairs = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


def edited(stored, path, lie):
    copied = copy.deepcopy(stored)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = lie
    return copied


def test_every_kind_of_map_is_loaded_where_files_are_read():
    """A kind that storage.py does not import could be saved but not loaded in a new process."""
    files = [import_module(f"{maps.__name__}.{found.name}") for found in pkgutil.iter_modules(maps.__path__)]
    kinds = {kind for file in files for kind in vars(file).values() if isinstance(kind, type)}
    stored = {kind for kind in kinds if issubclass(kind, Map) and hasattr(kind, "form")}
    reader = (
        "import calibrant.recalibration.storage; from calibrant.recalibration.maps.base import FORMS;"
        "print(*FORMS, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, check=True)
    astray = {kind.form for kind in stored} ^ set(done.stdout.splitlines())
    assert not astray, f"import the files of {sorted(astray)} in recalibration/storage.py"


@pytest.mark.filterwarnings("ignore::calibrant.RecalibrationWarning")  # covariates that the fit has not seen
@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_an_edited_map_is_refused_or_stays_a_map(file):
    stored = json.loads(file.read_text())
    known = stored.pop("golden")
    columns = {"covariates": known["covariates"]} if "covariates" in known else {}
    every = [(path, lie) for path in places(stored["map"], ("map",)) for lie in LIES]
    every += [(path, lie) for path in places(stored["fit"], ("fit",)) for lie in LIES]
    for path, lie in random.Random(file.stem).sample(every, min(len(every), 300)):
        try:
            found = Recalibration.from_dict(edited(stored, path, lie))
            q = found.predict(known["p"], **columns)
        except CalibrantError:
            continue
        assert np.all((q >= 0) & (q <= 1)), (path, lie)
        assert found.fit.n >= 0


def test_a_number_of_thousands_of_digits_is_no_map(tmp_path):
    text = (GOLDEN[0].parent / "format1-isotonic.json").read_text()
    (tmp_path / "map.json").write_text(text.replace('"n": ', '"n": 1' + "0" * 5000, 1))
    with pytest.raises(CalibrantError, match="got a file that is not JSON"):
        load_recalibration(tmp_path / "map.json")


@pytest.mark.parametrize("lie", ["NaN", "Infinity", "1e999", '"0.5"', "null", "2"])
def test_rates_that_no_map_has_are_refused(tmp_path, lie):
    text = (GOLDEN[0].parent / "format1-isotonic.json").read_text()
    stored = json.loads(text)
    stored["map"]["rates"][1] = "LIE"
    path = tmp_path / "map.json"
    path.write_text(json.dumps(stored).replace('"LIE"', lie))
    with pytest.raises(CalibrantError, match="must be"):
        load_recalibration(path)


def test_repeated_fields_and_deep_nesting_are_refused(tmp_path):
    path = tmp_path / "map.json"
    for text in (
        '{"calibrant_recalibration": 1, "calibrant_recalibration": 1}',
        "[" * 100_000,
        "{",
        "",
        "\0",
    ):
        path.write_text(text)
        with pytest.raises(CalibrantError, match=r"map\.json"):
            load_recalibration(path)


def test_maps_that_cannot_be_parts_of_a_map_are_refused():
    read = {name: json.loads((GOLDEN[0].parent / f"format1-{name}.json").read_text()) for name in PARTS}
    spline, classes, boost = (read[name] for name in PARTS)
    nothing = edited(edited(spline, ("map", "logits"), []), ("map", "shifts"), [])
    inside = edited(spline, ("map",), {"form": "prevalence", "ratio": 1.0, "inner": classes["map"]})
    start = edited(boost, ("map", "start"), boost["map"])
    for stored in (nothing, inside, start, edited(spline, ("columns",), 3)):
        with pytest.raises(CalibrantError, match="it may have been edited"):
            Recalibration.from_dict(stored)


@pytest.mark.filterwarnings("ignore::calibrant.recalibration.result.RecalibrationWarning")
@pytest.mark.parametrize("method", COVARIATES)
def test_a_map_of_covariates_at_another_prevalence_is_read_back(method, tmp_path):
    if method in ("boost", "augment"):
        pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    p, group = rng.random(400), rng.choice(["a", "b"], 400)
    y = (rng.random(400) < p**1.5).astype(int)
    fitted = recalibrate(y, p, method=method, covariates={"g": group}, prevalence=0.2)
    fitted.save(tmp_path / "map.json")
    again = load_recalibration(tmp_path / "map.json")
    np.testing.assert_array_equal(again.predict(p, {"g": group}), fitted.predict(p, {"g": group}))
