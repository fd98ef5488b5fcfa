"""The growth table has a line for every public function of rows, or says why not."""

from __future__ import annotations

import inspect

import calibrant as cb
from benchmarks.functions import NOT_OF_ROWS, calls
from calibrant.public_names import all_homes


def test_every_public_function_has_a_line_or_a_reason():
    """Lines are named after functions, with what is chosen after a comma or the method after a dot."""
    functions = {
        name for name in all_homes() if callable(getattr(cb, name)) and not inspect.isclass(getattr(cb, name))
    }
    lines = {line.split(",")[0].split(".")[0] for line in calls()}
    assert functions - lines == set(NOT_OF_ROWS)


def test_every_line_names_something_public():
    assert {line.split(",")[0].split(".")[0] for line in calls()} <= set(all_homes())
