"""Maps of very long columns, in few long steps: threads that map several parts do not wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant.kernels.map_columns import cells_before, linear_column, pair_column
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.maps.logistic import LogisticMap
from calibrant.recalibration.maps.pairs import PairMap, merged_pair
from calibrant.recalibration.maps.piecewise import PiecewiseMap, SplineMap, bounded_pieces
from calibrant.results import Array

LONG = 2 * 10**7  # rows from which loading machine code, about a second, is repaid
CROWD = 64  # cuts in one cell of a grid, beyond which `predict`, which bisects them, is faster
Mapper = Callable[[Array], Array]


def column_mapper(fitted: Map, rows: int) -> Mapper:
    """Return what maps parts of a column of `rows` predictions in [0, 1].

    What it returns is what `predict` returns, but for the last digits of logarithms.
    """
    if rows < LONG:
        return fitted.predict
    if isinstance(fitted, LogisticMap):
        return _logistic(fitted)
    if find_spec("numba") is None or not _are_spread(_cuts(fitted)):
        return fitted.predict
    if isinstance(fitted, SplineMap):
        return _spline(fitted)
    if isinstance(fitted, PiecewiseMap):
        return _linear(fitted.values, fitted.rates)
    if isinstance(fitted, PairMap):
        between = merged_pair(fitted.if_zero, fitted.if_one, fitted.merge)
        at = merged_pair(np.append(fitted.if_zero[1:], 0.0), fitted.if_one, fitted.merge)
        return _filled(pair_column, fitted.values, *cells_before(fitted.values), np.vstack([between, at]))
    return fitted.predict


def _cuts(fitted: Map) -> Array:
    """Return where the pieces of a map meet; none for maps that have no kernel."""
    if isinstance(fitted, SplineMap):
        return fitted.logits
    return fitted.values if isinstance(fitted, PiecewiseMap | PairMap) else np.empty(0)


def _are_spread(cuts: Array) -> bool:
    """Return whether there are cuts, in no cell so many that kernels, which try each of them, take long."""
    if not len(cuts):
        return False
    before, *_ = cells_before(cuts)
    return int(np.diff(before, append=len(cuts)).max()) <= CROWD


def _linear(values: Array, heights: Array) -> Mapper:
    return _filled(linear_column, values, *cells_before(values), bounded_pieces(values, heights))


def _filled(kernel: Any, *numbers: Any) -> Mapper:
    """Return what a kernel makes of a column."""
    kernel.expect_much()

    def mapped(p: Array) -> Array:
        out = np.empty(len(p))
        kernel(p, *numbers, out)
        return out

    mapped(np.empty(0))  # machine code is loaded here, not by several threads at once
    return mapped


def _logistic(fitted: LogisticMap) -> Mapper:
    def mapped(p: Array) -> Array:
        low, high = _parts(p, fitted.clip)
        if fitted.low == fitted.high:
            low /= high
            np.log(low, out=low)
            low *= fitted.low
        else:
            np.log(low, out=low)
            np.log(high, out=high)
            low *= fitted.low
            high *= fitted.high
            low -= high
        low += fitted.intercept
        return _rates(low)

    return mapped


def _spline(fitted: SplineMap) -> Mapper:
    shift = _linear(fitted.logits, fitted.shifts)

    def mapped(p: Array) -> Array:
        place, rest = _parts(p, fitted.clip)
        place /= rest
        np.log(place, out=place)
        place += shift(place)
        return _rates(place)

    return mapped


def _rates(logits: Array) -> Array:
    """Return 1 / (1 + exp(-logit)) in place of the logits."""
    np.negative(logits, out=logits)
    with np.errstate(over="ignore"):
        np.exp(logits, out=logits)
    logits += 1.0
    return np.asarray(np.divide(1.0, logits, out=logits))


def _parts(p: Array, clip: float) -> tuple[Array, Array]:
    """Return the clipped predictions, and what they lack of 1."""
    clipped = np.clip(p, clip, 1.0 - clip)
    return clipped, 1.0 - clipped
