"""Benchmarks: the growth table has a line for every public function of rows, and all of them can be run."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import benchmarks
import calibrant as cb
from benchmarks.__main__ import HELPERS
from benchmarks.functions import NOT_OF_ROWS, calls
from calibrant.public_names import all_homes

RUN = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in HELPERS]


@pytest.mark.parametrize("name", RUN)
def test_every_benchmark_can_be_called_without_arguments(name):
    """`make bench` runs them one after the other; without a peer they import nothing of it."""
    inspect.signature(importlib.import_module(f"benchmarks.{name}").main).bind()


def test_every_public_function_has_a_line_or_a_reason():
    """Lines are named after functions, with what is chosen after a comma or the method after a dot."""
    functions = {
        name for name in all_homes() if callable(getattr(cb, name)) and not inspect.isclass(getattr(cb, name))
    }
    lines = {line.split(",")[0].split(".")[0] for line in calls()}
    assert functions - lines == set(NOT_OF_ROWS)


def test_every_line_names_something_public():
    assert {line.split(",")[0].split(".")[0] for line in calls()} <= set(all_homes())
