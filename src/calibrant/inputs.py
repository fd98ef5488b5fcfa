"""From whatever the user holds to checked float64 vectors: the boundary where input is checked, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.results import Array

WIDEST_RATIO = (
    1e290  # of two weights: beyond it a share of the total, or its reciprocal, is no number any more
)


@dataclass(frozen=True, slots=True)
class Names:
    """How errors call the three inputs: argument names, or the columns of the user's frame."""

    outcome: str = "y_true"
    prediction: str = "y_prob"
    weight: str = "sample_weight"


def vector(data: Any, name: str) -> npt.NDArray[Any]:
    """Return `data` as a one-dimensional bool, integer or float array, missing values as NaN."""
    if hasattr(data, "detach"):  # a torch tensor that requires grad refuses the array protocol
        data = data.detach()
    if isinstance(data, np.ma.MaskedArray):
        data = np.where(np.ma.getmaskarray(data), np.nan, data.data)
    array = np.asarray(data)
    if array.ndim != 1:
        raise InvalidInputError(
            sentence(name, "must be one-dimensional", f"got shape {array.shape}", _shape_hint(array))
        )
    if array.size == 0:
        raise InvalidInputError(sentence(name, "must not be empty", "got no rows"))
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "biuf":
        hint = "map the labels to 0 and 1 first" if array.dtype.kind in "US" else ""
        raise InvalidInputError(
            sentence(name, "must be numeric", f"got dtype {array.dtype}, {array[0]!r} in row 0", hint)
        )
    return array


def _shape_hint(array: npt.NDArray[Any]) -> str:
    if array.ndim == 2 and array.shape[1] == 2:
        return "pass the column of the positive class, [:, 1]"
    if array.ndim == 2 and array.shape[1] > 2:
        return "reduce several classes to one first, see top_label and one_vs_rest"
    return "flatten it with .ravel()" if array.ndim > 1 else "pass a list or an array"


def _numbers(array: npt.NDArray[Any], name: str) -> Array:
    """Convert an object array, taking None and pandas.NA for missing."""
    out = np.empty(array.size)
    for row, item in enumerate(array):
        try:
            out[row] = np.nan if item is None or type(item).__name__ in ("NAType", "NaTType") else float(item)
        except (TypeError, ValueError):
            found = f"got {item!r} in row {row}"
            raise InvalidInputError(
                sentence(name, "must be numeric", found, "map the labels to 0 and 1 first")
            ) from None
        if isinstance(item, str):
            raise InvalidInputError(sentence(name, "must be numeric", f"got the text {item!r} in row {row}"))
    return out


def missing_rows(*arrays: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_] | None:
    """Return the rows where any array is NaN, or None if there is none."""
    bad: npt.NDArray[np.bool_] | None = None
    for array in arrays:
        if array is not None and array.dtype.kind == "f" and np.isnan(np.min(array)):
            bad = np.isnan(array) if bad is None else bad | np.isnan(array)
    return bad


def check_same_length(first: npt.NDArray[Any], second: npt.NDArray[Any], names: tuple[str, str]) -> None:
    """Refuse two columns of different length."""
    if len(first) != len(second):
        found = f"got {len(first):,} and {len(second):,} rows"
        raise InvalidInputError(sentence(f"{names[0]} and {names[1]}", "must have the same length", found))


def check_unit_interval(array: npt.NDArray[Any], name: str) -> None:
    """Refuse values outside [0, 1]; NaN must be gone by now."""
    if array.dtype.kind == "b":
        return
    low, high = float(np.min(array)), float(np.max(array))
    if low < 0 or high > 1:
        with np.errstate(invalid="ignore"):
            bad = ~((array >= 0) & (array <= 1))
        reject_rows(name, "must lie in [0, 1]", array, bad, range_hint(low, high))


def range_hint(low: float, high: float) -> str:
    """Guess what values outside [0, 1] are, from their range."""
    if np.isinf(low) or np.isinf(high):
        return "infinite values cannot be used"
    if (low >= 0 and high <= 1 + 1e-6) or (low >= -1e-6 and high <= 1):
        return "these look like rounding errors; clip them with numpy.clip(x, 0, 1)"
    if low == -1 and high == 1:
        return "labels of -1 and 1 must be mapped to 0 and 1"
    if low >= 0 and high <= 100:
        return "percentages must be divided by 100; other labels must be mapped to 0 and 1"
    return "these look like logits; pass scipy.special.expit of them"


def check_weights(array: npt.NDArray[Any], name: str) -> Array:
    """Return the weights as float64, refusing negative, infinite and all-zero ones."""
    weight = np.asarray(array, dtype=np.float64)
    reject_rows(name, "must be finite", weight, ~np.isfinite(weight))
    reject_rows(name, "must not be negative", weight, weight < 0)
    if not weight.any():
        raise InvalidInputError(sentence(name, "must have a positive total", "got only zeros"))
    negligible = (weight > 0) & (weight < float(np.max(weight)) / WIDEST_RATIO)
    rule = f"must be 0 or within a factor of {WIDEST_RATIO:.0e} of the largest"
    reject_rows(name, rule, weight, negligible, "give such rows weight 0 to leave them out")
    return weight
