"""Check what users pass: arrays become vectors of numbers, options must be of the right kind and range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import Hint, InvalidInputError, Place, reject_name, reject_rows
from calibrant.formatting import pluralize
from calibrant.results import Array

POSITIVE_COLUMN = "pass the column of the positive class, [:, 1] for outcome 1"
SEVERAL_CLASSES = (
    "these look like several classes: class_table and calibrant classes take a column of probabilities "
    "for each; or map the labels to 0 and 1"
)
# How far the probabilities of a row may miss 1: single precision and rounded files pass, also 1.001, which
# is a little more in some orders of adding up
ROW_SUM = 1e-3 + 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class NamedColumn:
    values: Any
    subject: str

    @classmethod
    def of(cls, table: Mapping[str, Any], name: str) -> NamedColumn:
        return cls(table[name], f"column {name!r}")


@dataclass(frozen=True, slots=True)
class InputNames:
    """How errors call the three inputs: argument names, or the columns of the user's frame."""

    outcome: str = "y_true"
    prediction: str = "y_prob"
    weight: str = "sample_weight"

    @classmethod
    def of_columns(cls, outcome: str, prediction: str, weight: str | None = None) -> InputNames:
        """Return the names of columns; the outcome must be another column than the prediction."""
        if outcome == prediction:
            raise InvalidInputError(
                "outcome and prediction", "must be different columns", f"got {outcome!r} for both"
            )
        return cls(f"column {outcome!r}", f"column {prediction!r}", f"column {weight!r}")

    def with_names_of(self, outcome: Any, prediction: Any, weight: Any) -> InputNames:
        """Return these names, with those of the columns for inputs that are columns of a frame."""
        given = {"outcome": outcome, "prediction": prediction, "weight": weight}
        known = {role: column.subject for role, column in given.items() if isinstance(column, NamedColumn)}
        return replace(self, **known) if known else self


def unwrap(data: Any) -> Any:
    return data.values if isinstance(data, NamedColumn) else data


def subject_of(data: Any, name: str) -> str:
    """Return how errors call an input: by its column, or by the name of its argument."""
    return data.subject if isinstance(data, NamedColumn) else name


def to_array(data: Any, name: str) -> npt.NDArray[Any]:
    """Return `data` as an array of any shape; what is masked is missing: NaN, or None among objects."""
    data = unwrap(data)
    if hasattr(data, "detach"):  # a torch tensor; numpy has no bfloat16
        data = data.detach()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
    if isinstance(data, np.ma.MaskedArray):
        return _unmasked(data)
    try:
        return np.asarray(data)
    except (ValueError, TypeError, OverflowError) as error:
        ragged = "inhomogeneous" in str(error)
        reason = f"got {type(data).__name__}: {error}".rstrip(".")
        got = "got rows of different lengths" if ragged else reason
        raise InvalidInputError(name, "must be an array", got, "pass a list or an array") from None


def _unmasked(data: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[Any]:
    mask, values = np.ma.getmaskarray(data), np.ma.getdata(data)
    if not mask.any():
        return values
    if values.dtype.kind in "biuf":
        return np.where(mask, np.nan, values)
    if values.dtype.kind in "mM":
        return np.where(mask, values.dtype.type("NaT", np.datetime_data(values.dtype)[0]), values)
    values = values.astype(object)
    values[mask] = None
    return values


def numeric_vector(data: Any, name: str, *, labels: bool = False) -> npt.NDArray[Any]:
    """Return `data` as a vector of numbers, missing ones NaN; with `labels`, errors propose `pos_label`."""
    array = _one_dimensional(to_array(data, name), name)
    if array.dtype.kind == "O":
        return _numbers(array, name, labels)
    if array.dtype.kind not in "biuf":
        hint = label_hint(np.unique(array)[:3].tolist()) if labels and array.dtype.kind in "US" else ""
        got = f"got dtype {array.dtype}, {array.tolist()[0]!r}"
        raise InvalidInputError(name, "must be numeric", got, hint, Place(0))
    return array


def _one_dimensional(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return a vector, or the only column of a table; anything else is refused."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = "flatten it with .ravel()" if array.ndim > 1 else "pass a list or an array"
        if array.ndim == 2 and array.shape[1] >= 2:
            several = "reduce several classes to one first, see top_label and one_vs_rest"
            hint = POSITIVE_COLUMN if array.shape[1] == 2 else several
        raise InvalidInputError(name, "must be one-dimensional", f"got shape {array.shape}", hint)
    if array.size == 0:
        raise InvalidInputError(name, "must not be empty", "got no rows")
    return array


def label_hint(labels: list[Any]) -> str:
    """Name both labels and the option that says which of them counts as 1."""
    if len(labels) == 2:
        one, two = labels
        return Hint(f"pass {{}} if {two!r} counts as 1 and {one!r} as 0", pos_label=two)
    return SEVERAL_CLASSES if len(labels) > 2 else ""


def _numbers(array: npt.NDArray[Any], name: str, labels: bool) -> Array:
    """Convert an object array, taking None and pandas.NA for missing; text and bytes are not numbers."""
    out = np.empty(array.size)
    for row, item in enumerate(array):
        rule, got, hint = "must be numeric", "", ""
        if isinstance(item, str | bytes):
            got = f"got the {'text' if isinstance(item, str) else 'bytes'} {item!r}"
        elif isinstance(item, list | tuple | np.ndarray):
            rule, got, hint = "must have one number per row", f"got {item!r}", "make a column of each part"
        else:
            try:
                out[row] = np.nan if is_missing(item) else float(item)
                continue
            except OverflowError:
                rule, got = "must fit into a float64", _got(item)
            except (TypeError, ValueError):
                got = f"got {item!r}"
        if labels and isinstance(item, str | bytes):
            texts = {other for other in array.tolist() if isinstance(other, type(item))}
            hint = label_hint(sorted(texts)[:3])
        raise InvalidInputError(name, rule, got, hint, Place(row))
    return out


def is_missing(item: object) -> bool:
    """Return whether an object is a missing value: None, pandas.NA, NaT or NaN."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(item != item)
    except ArithmeticError:  # a signaling NaN of the decimal module
        return True


def outcomes_of(data: Any, name: str, pos_label: Any = None) -> npt.NDArray[Any]:
    """Return outcomes as numbers: as they are, or 1 where the label is `pos_label` and 0 for the other."""
    if pos_label is None:
        return numeric_vector(data, name, labels=True)
    array = _one_dimensional(to_array(data, name), name)
    gaps, labels = _distinct(array)
    others = [label for label in labels if label != pos_label]
    if len(others) > 1:
        shown = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        if len(others) == 2 and len(labels) == 2:
            rule = f"must be one of the labels of {name}"
            raise InvalidInputError("pos_label", rule, f"got {pos_label!r} for {shown}")
        hint = "reduce several classes with one_vs_rest; leave pos_label out for numbers from 0 to 1"
        rule = "must hold two labels where pos_label is given"
        raise InvalidInputError(name, rule, f"got {len(labels):,}: {shown}", hint)
    positive = np.zeros(len(array), dtype=bool)
    positive[~gaps] = array[~gaps] == pos_label
    return np.where(gaps, np.nan, positive) if gaps.any() else positive


def missing_among(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which items of a vector of any type are missing."""
    if array.dtype.kind != "O":
        return np.asarray(array != array)
    return np.fromiter((is_missing(item) for item in array), dtype=bool, count=len(array))


def _distinct(array: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], list[Any]]:
    gaps = missing_among(array)
    known = array[~gaps]
    return gaps, list(dict.fromkeys(known.tolist())) if array.dtype.kind == "O" else np.unique(known).tolist()


def positive_column(data: Any, name: str, labels: Any = None, pos_label: Any = None) -> npt.NDArray[Any]:
    """Return predictions as one column; of a pair of columns that sum to 1, that of the positive class."""
    if isinstance(data, Mapping):
        hint = "compare(y_true, predictions) takes several models"
        raise InvalidInputError(name, "must be one column of predictions", f"got {len(data)} columns", hint)
    array = to_array(data, name)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        return numeric_vector(array, name)
    first, second = (numeric_vector(array[:, k], name) for k in (0, 1))
    sums = first.astype(np.float64) + second
    reject_rows(name, "must sum to 1 in each row", sums, np.abs(sums - 1) > ROW_SUM, POSITIVE_COLUMN)
    if pos_label is None:
        return second
    try:  # columns follow the sorted order of the labels, as in scikit-learn
        known = sorted(_distinct(to_array(labels, "y_true").ravel())[1])
    except TypeError:  # labels that have no order
        known = []
    if len(known) != 2 or pos_label not in known:
        got = f"got two columns and the labels {known}"
        raise InvalidInputError(name, "must be the column of pos_label", got, POSITIVE_COLUMN)
    return (first, second)[known.index(pos_label)]


def missing_rows(*arrays: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_] | None:
    floats = (array for array in arrays if array is not None and array.dtype.kind == "f")
    gaps = [np.isnan(array) for array in floats if np.isnan(np.min(array))]
    return np.logical_or.reduce(gaps) if gaps else None


def check_missing(**choices: str) -> None:
    for name, choice in choices.items():
        if choice not in ("error", "drop"):
            raise reject_name(name, choice, ["error", "drop"])


def check_same_length(first: Any, second: Any, names: tuple[str, str]) -> None:
    if len(first) != len(second):
        got = f"got {len(first):,} and {pluralize(len(second), 'row')}"
        raise InvalidInputError(f"{names[0]} and {names[1]}", "must have the same length", got)


def check_aligned(data: Any, labels: Any, names: tuple[str, str]) -> None:
    """Refuse data with the row labels of other data in another order: pairing by position would be wrong."""
    mine = row_labels(data)
    if mine is None or labels is None or len(mine) != len(labels) or mine.equals(labels):
        return
    if set(mine) == set(labels):  # others pair by position, as arrays do
        row = next(k for k, (a, b) in enumerate(zip(mine, labels, strict=True)) if a != b)
        got = f"got the labels {mine[row]!r} and {labels[row]!r} in row {row}"
        hint = "align them with .reindex, or pass arrays to pair the rows by position"
        rule = "must have their index labels in the same order"
        raise InvalidInputError(f"{names[0]} and {names[1]}", rule, got, hint)


def row_labels(data: Any) -> Any:
    return data.index if hasattr(data, "iloc") and hasattr(data, "index") else None


def check_unit_interval(array: npt.NDArray[Any], name: str) -> None:
    """Refuse values outside [0, 1]; NaN must be gone by now."""
    if array.dtype.kind == "b":
        return
    low, high = float(np.min(array)), float(np.max(array))
    if low < 0 or high > 1:
        with np.errstate(invalid="ignore"):
            bad = ~((array >= 0) & (array <= 1))
        hint = range_hint(low, high)
        if low in (0, 1) and 2 <= high <= 20:  # 0, 1, 2, ... without a gap are classes, not percentages
            labels = np.unique(array)
            hint = SEVERAL_CLASSES if len(labels) >= 3 and np.all(np.diff(labels) == 1) else hint
        reject_rows(name, "must lie in [0, 1]", array, bad, hint)


def any_fraction(array: npt.NDArray[Any]) -> bool:
    """Return whether any number lies strictly between 0 and 1; the first prediction usually does."""
    return bool(0 < array[0] < 1) or bool(np.any((array > 0) & (array < 1)))


def range_hint(low: float, high: float) -> str:
    if np.isinf(low) or np.isinf(high):
        return "infinite values cannot be used"
    if (low >= 0 and high <= 1 + 1e-6) or (low >= -1e-6 and high <= 1):
        return "these look like rounding errors; clip them with numpy.clip(x, 0, 1)"
    if low == -1 and high == 1:
        return Hint("of labels -1 and 1, name the one that counts as 1: {}", pos_label=1)
    if low >= 0 and high <= 100:
        return "percentages must be divided by 100; other labels must be mapped to 0 and 1"
    return "these look like logits; pass scipy.special.expit of them"


def check_weights(array: npt.NDArray[Any], name: str) -> Array:
    weight = np.asarray(array, dtype=np.float64)
    reject_rows(name, "must not be missing", weight, np.isnan(weight))
    reject_rows(name, "must be finite", weight, ~np.isfinite(weight))
    reject_rows(name, "must not be negative", weight, weight < 0)
    if not weight.any():
        raise InvalidInputError(name, "must have a positive total", "got only zeros")
    widest = 1e290  # beyond it a share of the total, or its reciprocal, overflows
    negligible = (weight > 0) & (weight < float(np.max(weight)) / widest)
    rule = f"must be 0 or within a factor of {widest:.0e} of the largest"
    reject_rows(name, rule, weight, negligible, "give such rows weight 0 to leave them out")
    return weight


def probabilities(values: npt.ArrayLike, name: str) -> Array:
    array = to_array(values, name)
    if array.size == 0:
        return np.zeros(array.shape)
    return checked_predictions(array.ravel(), name, hint="").reshape(array.shape)


def checked_predictions(
    predictions: Any, name: str = "predictions", hint: str = "leave such rows out"
) -> Array:
    given = numeric_vector(predictions, name).astype(np.float64)
    reject_rows(name, "must not be missing", given, np.isnan(given), hint)
    check_unit_interval(given, name)
    return given


def whole_number(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InvalidInputError(name, f"must be a whole number {bounds}", _got(value))
    return int(value)


def whole_numbers(least: int, **options: Any) -> None:
    for name, value in options.items():
        whole_number(name, value, least)


def _checked(rule: str, holds: Callable[[float], bool], name: str, value: Any) -> float:
    """Return a number for which the rule holds; a whole number too large for a float breaks every rule."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    with suppress(OverflowError):
        if real and holds(float(value)):
            return float(value)
    raise InvalidInputError(name, f"must {rule}", _got(value))


def finite_number(name: str, value: Any, least: float = -math.inf) -> float:
    bound = "" if least == -math.inf else f" of at least {least:g}"
    return _checked(f"be a finite number{bound}", lambda x: math.isfinite(x) and x >= least, name, value)


# Each takes the name of an argument and its value, and returns the value as a float
number = partial(_checked, "be a number", lambda x: not math.isnan(x))
positive_number = partial(_checked, "be a positive number", lambda x: math.isfinite(x) and x > 0)
open_share = partial(_checked, "lie strictly between 0 and 1", lambda x: 0 < x < 1)
positive_share = partial(_checked, "lie in (0, 1]", lambda x: 0 < x <= 1)
closed_share = partial(_checked, "lie in [0, 1]", lambda x: 0 <= x <= 1)
confidence_or_none = partial(_checked, "lie in [0, 1), 0 for no intervals", lambda x: 0 <= x < 1)
clipping = partial(_checked, "lie in (0, 0.5)", lambda x: 0 < x < 0.5)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(name, "must be True or False", f"got {value!r}")
    return bool(value)


def _got(value: Any) -> str:
    """Show a value; of a huge whole number only its size, for writing it would take long."""
    if isinstance(value, int) and abs(value) > 10**30:
        return f"got a whole number of {int(abs(value).bit_length() * 0.30103) + 1:,} digits"
    shown = repr(value)
    return f"got {shown[:60]}..." if len(shown) > 200 else f"got {shown}"
