"""Maps of very long columns: compiled, so that several threads map several parts at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant.kernels.map_columns import (
    grid_of,
    linear_column,
    logistic_column,
    pair_column,
    spline_column,
)
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.maps.logistic import LogisticMap
from calibrant.recalibration.maps.pairs import PairMap, merged_pair
from calibrant.recalibration.maps.piecewise import PiecewiseMap, SplineMap, bounded_pieces
from calibrant.results import Array

LONG = 2 * 10**7  # rows from which loading machine code, about a second, is repaid
Filled = tuple[Any, tuple[Any, ...]]  # a kernel, and what it takes between the column and the result


def column_mapper(fitted: Map, rows: int) -> Callable[[Array], Array]:
    """Return what maps parts of a column of `rows` predictions in [0, 1].

    What it returns is what `predict` returns, but for the last digits of logarithms.
    """
    made = _kernel(fitted) if rows >= LONG and find_spec("numba") is not None else None
    if made is None:
        return fitted.predict
    kernel, numbers = made
    kernel.expect_much()

    def mapped(p: Array) -> Array:
        out = np.empty(len(p))
        kernel(p, *numbers, out)
        return out

    mapped(np.empty(0))  # machine code is loaded here, not by several threads at once
    return mapped


def _kernel(fitted: Map) -> Filled | None:
    """Return the kernel of a map and its numbers; None for maps without one."""
    if isinstance(fitted, LogisticMap):
        return logistic_column, (fitted.intercept, fitted.low, fitted.high, fitted.clip)
    if isinstance(fitted, SplineMap):
        return spline_column, (fitted.logits, bounded_pieces(fitted.logits, fitted.shifts), fitted.clip)
    if isinstance(fitted, PiecewiseMap):
        pieces = bounded_pieces(fitted.values, fitted.rates)
        return linear_column, (fitted.values, *grid_of(fitted.values), pieces)
    if isinstance(fitted, PairMap) and len(fitted.values):
        between = merged_pair(fitted.if_zero, fitted.if_one, fitted.merge)
        at = merged_pair(np.append(fitted.if_zero[1:], 0.0), fitted.if_one, fitted.merge)
        return pair_column, (fitted.values, *grid_of(fitted.values), np.vstack([between, at]))
    return None
