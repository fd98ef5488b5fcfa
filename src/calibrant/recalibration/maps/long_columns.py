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
Fill = Callable[[Array, Array], object]  # fills the second array by mapping the first, which may be lost


def column_mapper(fitted: Map, rows: int) -> Fill:
    """Return what maps parts of a column of `rows` predictions in [0, 1] in arrays that are used again.

    What it fills in is what `predict` returns, but for the last digits of logarithms. Memory that is fresh
    for every part would cost more than the map.
    """
    if rows < LONG:
        return _predicted(fitted)
    if isinstance(fitted, LogisticMap):
        return _logistic(fitted)
    if find_spec("numba") is None or not _are_spread(_cuts(fitted)):
        return _predicted(fitted)
    if isinstance(fitted, SplineMap):
        return _spline(fitted)
    if isinstance(fitted, PiecewiseMap):
        return _linear(fitted.values, fitted.rates)
    if isinstance(fitted, PairMap):
        between = merged_pair(fitted.if_zero, fitted.if_one, fitted.merge)
        at = merged_pair(np.append(fitted.if_zero[1:], 0.0), fitted.if_one, fitted.merge)
        return _filled(pair_column, fitted.values, *cells_before(fitted.values), np.vstack([between, at]))
    return _predicted(fitted)


def _predicted(fitted: Map) -> Fill:
    def fill(p: Array, out: Array) -> None:
        out[:] = fitted.predict(p)

    return fill


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


def _linear(values: Array, heights: Array) -> Fill:
    return _filled(linear_column, values, *cells_before(values), bounded_pieces(values, heights))


def _filled(kernel: Any, *numbers: Any) -> Fill:
    """Return what a kernel makes of a column."""
    kernel.expect_much()

    def fill(p: Array, out: Array) -> None:
        kernel(p, *numbers, out)

    fill(np.empty(0), np.empty(0))  # machine code is loaded here, not by several threads at once
    return fill


def _logistic(fitted: LogisticMap) -> Fill:
    def fill(p: Array, out: Array) -> None:
        _parts(p, out, fitted.clip)
        if fitted.low == fitted.high:
            out /= p
            np.log(out, out=out)
            out *= fitted.low
        else:
            np.log(out, out=out)
            np.log(p, out=p)
            out *= fitted.low
            p *= fitted.high
            out -= p
        out += fitted.intercept
        _rates(out)

    return fill


def _spline(fitted: SplineMap) -> Fill:
    shift = _linear(fitted.logits, fitted.shifts)

    def fill(p: Array, out: Array) -> None:
        _parts(p, out, fitted.clip)
        out /= p
        np.log(out, out=out)
        shift(out, p)
        out += p
        _rates(out)

    return fill


def _parts(p: Array, out: Array, clip: float) -> None:
    """Put the clipped predictions in `out`, and what they lack of 1 in their own place."""
    np.clip(p, clip, 1.0 - clip, out=out)
    np.subtract(1.0, out, out=p)


def _rates(logits: Array) -> None:
    """Put 1 / (1 + exp(-logit)) in place of the logits."""
    np.negative(logits, out=logits)
    with np.errstate(over="ignore"):
        np.exp(logits, out=logits)
    logits += 1.0
    np.divide(1.0, logits, out=logits)
