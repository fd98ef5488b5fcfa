"""Anything in any field of a log: read or refused by name, never another exception."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from writers import inspect_sample, questions, token, write_inspect, write_lm_eval

from calibrant import logs
from calibrant.errors import CalibrantError

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.logs.LogWarning")
ODD = [
    None,
    True,
    0,
    -1,
    7.5,
    1e400,
    "",
    "x",
    "nan",
    "\x00",
    "é\ud800",
    [],
    [[]],
    [None],
    {},
    {"a": 1},
    [1, "b"],
]


def places(value, path=()):
    """Yield the path of every value inside a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(document, path, value):
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def read(path, **options):
    try:
        logs.read(path, **options)
    except CalibrantError as error:
        assert str(path) in str(error) or "confidence" in str(error)  # noqa: PT017


@pytest.mark.parametrize("seed", range(4))
def test_lm_eval(tmp_path, seed):
    path = write_lm_eval(tmp_path, questions(1), mutual=seed % 2 == 1, version="0.4.5")
    whole, rng = json.loads(path.read_text()), np.random.default_rng(seed)
    every = [place for place in places(whole) if place]
    options = [
        {},
        {"score": "acc_norm"},
        {"confidence": "agreement"},
        {"field": "doc.subject"},
        {"cluster": "passage"},
    ]
    for k in range(60):
        place, value = every[rng.integers(len(every))], ODD[rng.integers(len(ODD))]
        path.write_text(json.dumps(changed(whole, place, value)) + "\n")
        read(path, tool="lm-eval", **options[k % len(options)])


@pytest.mark.parametrize("seed", range(4))
def test_inspect(tmp_path, seed):
    tokens = [token("ANSWER:", 0.9), token(" A", 0.8, B=0.1)] if seed % 2 else None
    sample = inspect_sample("a", "C", "ANSWER: A\nConfidence: 80%", tokens=tokens)
    path = write_inspect(tmp_path / "log.json", [sample])
    whole, rng = json.loads(path.read_text()), np.random.default_rng(seed)
    every = [place for place in places(whole) if place]
    options = [
        {},
        {"confidence": "token"},
        {"confidence": "agreement"},
        {"field": "subject"},
        {"score": "choice"},
    ]
    for k in range(60):
        place, value = every[rng.integers(len(every))], ODD[rng.integers(len(ODD))]
        path.write_text(json.dumps(changed(whole, place, value)))
        read(path, tool="inspect", **options[k % len(options)])
