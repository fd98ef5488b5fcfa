"""The base class of results: what follows from the declared fields."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import calibrant as cb
from calibrant.results import Array, Result, Table


@dataclass(frozen=True, slots=True, repr=False)
class Part(Result):
    """A result inside another."""

    name: str
    value: float = math.nan


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Whole(Result):
    """A result with fields of every kind."""

    parts: tuple[Part, ...]
    named: Mapping[str, Part]
    curve: Array
    first: Part | None = None
    pair: tuple[int, str] = (1, "a")
    long: Array = field(default_factory=lambda: np.zeros(9))

    HIDDEN: ClassVar[tuple[str, ...]] = ("long",)
    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "size", "approximate")
    approximate: ClassVar[tuple[str, ...]] = ("curve",)

    @property
    def size(self) -> int:
        """How many parts there are."""
        return len(self.parts)

    def __str__(self) -> str:
        return f"{self.size} < 3 parts."

    def rows(self) -> tuple[Part, ...]:
        """Return the parts."""
        return self.parts

    def tables(self) -> tuple[Table]:
        """Return one table."""
        return (Table.from_texts(["name"], [[part.name] for part in self.parts]),)


WHOLE = Whole((Part("a", 1.0), Part("b")), {"x": Part("c", 2.0)}, np.array([0.5, math.nan]), Part("d", 3.0))


def test_json_has_the_sentence_first_and_leaves_out_what_is_hidden():
    stored = WHOLE.to_dict()
    assert list(stored) == ["sentence", "parts", "named", "curve", "first", "pair", "size", "approximate"]
    assert stored["parts"] == [{"name": "a", "value": 1.0}, {"name": "b", "value": None}]
    assert stored["curve"] == [0.5, None]
    assert stored["approximate"] == ["curve"]
    json.dumps(stored, allow_nan=False)


def test_from_dict_restores_what_to_dict_wrote():
    again = Whole.from_dict(json.loads(json.dumps(WHOLE.to_dict())))
    assert again.parts[0] == WHOLE.parts[0]
    assert math.isnan(again.parts[1].value)
    assert again.named == WHOLE.named
    assert again.first == WHOLE.first
    assert again.pair == (1, "a")
    np.testing.assert_array_equal(again.curve, WHOLE.curve)
    assert again.to_dict() == WHOLE.to_dict()
    assert Whole.from_dict({**WHOLE.to_dict(), "first": None}).first is None


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_have_one_row_per_part(backend):
    frame = WHOLE.to_frame(backend)
    assert list(frame["name"]) == ["a", "b"]
    assert list(frame.columns) == ["name", "value"]
    assert len(WHOLE.parts[0].to_frame(backend)) == 1


def test_notebooks_show_the_sentence_and_the_tables_or_the_repr():
    shown = WHOLE._repr_html_()
    assert shown is not None
    assert shown.startswith("<p>2 &lt; 3 parts.</p><table>")
    assert WHOLE.parts[0]._repr_html_() is None
    assert repr(WHOLE.parts[0]) == "Part(name='a', value=1)"
    assert "long=<9 numbers>" in repr(WHOLE)


def test_a_stored_test_result_is_restored():
    y, p = np.tile([0, 1, 1], 40), np.tile([0.2, 0.6, 0.7], 40)
    found: Any = cb.calibration_test(y, p, clusters=np.repeat(np.arange(40), 3), draws=99)
    assert type(found).from_dict(found.to_dict()).pvalue == found.pvalue
