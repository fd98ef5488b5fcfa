"""What a sketch proves of the raw rows: bounds that several measures share.

A sketch replaces the predictions v_i of a cell by their weighted mean; its residual stays exact. Write A for
the absolute residual mass of a cell (`over` + `under`), h for the spread of its predictions, and d <= h for
the largest distance from its mean to a prediction. Each rule bounds what moving the residuals
r_i = w_i (y_i - v_i) inside their cells can change, and adds `rounding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.forecasts import Cells, Forecasts
from calibrant.parallel import dot
from calibrant.results import Array, Certified

Certificate = Callable[[Forecasts, Certified, Mapping[str, Any]], Certified]
EPS = float(np.finfo(np.float64).eps)


class NoCertificateError(CalibrantError):
    """The measure cannot be bounded from what a sketch keeps."""


def no_certificate(name: str, reason: str = "") -> NoCertificateError:
    hint = "take the raw rows, or a measure that `calibrant measures` marks as certified on sketches"
    return NoCertificateError(f"measure {name!r}", "has no certificate on a sketch", reason, hint)


def rounding(forecasts: Forecasts) -> float:
    """Bound the rounding of sums over the records: n terms err by at most n units in the last place."""
    # whatever the order of summation, so for every engine and every order of merging
    return 4 * EPS * (dot(forecasts.weights, forecasts.counts) + forecasts.levels + 16)


def widened(measured: Certified, margin: float) -> Certified:
    return replace(measured, lower=measured.lower - margin, upper=measured.upper + margin, exact=False)


def bracketed(measured: Certified, lower: float, upper: float) -> Certified:
    """Return the value moved into proven bounds, when the sums of the cells know better than their means."""
    return replace(
        measured, value=float(np.clip(measured.value, lower, upper)), lower=lower, upper=upper, exact=False
    )


def rounded(forecasts: Forecasts, measured: Certified) -> Certified:
    """Bound what a sketch with one prediction per cell has lost: rounding, relative to each level."""
    scale = max(1.0, abs(measured.value))
    return widened(measured, 16 * EPS * scale * (int(forecasts.counts.max()) + forecasts.levels + 16))


def reach(forecasts: Forecasts) -> Array:
    cells = cells_of(forecasts)
    return np.maximum(cells.high - forecasts.values, forecasts.values - cells.low)


def residual_mass(forecasts: Forecasts) -> Array:
    return cells_of(forecasts).over + cells_of(forecasts).under


def lipschitz_weights(forecasts: Forecasts, measured: Certified, constant: float) -> Certified:
    """Certify a supremum of sum r_i x(v_i) over weight functions |x| <= 1 with this Lipschitz constant."""
    # Each x changes by at most sum |r_i| constant |v_i - mean| <= constant sum A d, so the supremum does too.
    moved = dot(residual_mass(forecasts), reach(forecasts))
    return widened(measured, constant * moved + (1 + constant) * rounding(forecasts))


def mean_move(forecasts: Forecasts) -> float:
    """Bound the mean distance E |v - mean| from the predictions to the means of their cells."""
    # On [low, high] with a given mean it is largest with all weight at the two ends: 2 (mean - low)(high -
    # mean) / (high - low), at most h / 2.
    cells, h = cells_of(forecasts), forecasts.extents
    ends = (forecasts.values - cells.low) * (cells.high - forecasts.values)
    moved = np.divide(2 * ends, h, out=np.zeros_like(h), where=h > 0)
    # a mean that rounding shifted by e is compared with the true one at a cost of at most 2 e
    return dot(forecasts.weights, moved) + 2 * rounding(forecasts)


def band(forecasts: Forecasts) -> tuple[Array, Array]:
    """Return how low and how high the curve can be strictly inside each cell."""
    # On the way through a cell it has taken some part of the positive residuals (`under` in all) and some
    # part of the negative ones (`over` in all). A cell of one prediction has no inside: its ends are C.
    cells, before, after = cells_of(forecasts), forecasts.curve[:-1], forecasts.curve[1:]
    inside = forecasts.extents > 0
    lowest = np.where(inside, before - cells.over, np.minimum(before, after))
    return lowest, np.where(inside, before + cells.under, np.maximum(before, after))


def cells_of(forecasts: Forecasts) -> Cells:
    if forecasts.cells is None:
        raise TypeError("only a sketch needs a certificate")
    return forecasts.cells
