"""A column as codes: labels or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence

Codes = npt.NDArray[Any]


FEW = 64  # values that are looked for one by one, which is quicker than counting all


def narrowest(count: int) -> np.dtype[Any]:
    """Return the smallest type that numbers so many things: codes are gathered again and again."""
    return np.min_scalar_type(max(0, count - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One covariate: `codes` of its sorted distinct `labels`; where values are missing they are code 0.

    A nominal column has categories without an order. The label of missing is None.
    """

    name: str
    codes: Codes
    labels: Sequence[Any] | npt.NDArray[Any]
    nominal: bool
    missing: bool = field(default=False)

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """Return the column for some rows."""
        return replace(self, codes=self.codes[rows])

    def known_from(self, rows: npt.NDArray[Any]) -> Column:
        """Return the column with the labels that some rows have: rows that are left out do not count."""
        present = np.zeros(len(self.labels), dtype=bool)
        present[self.codes[rows]] = True
        if present.all():
            return self
        codes = (np.cumsum(present) - present).astype(self.codes.dtype)[self.codes]
        labels = [label for label, kept in zip(self.labels, present, strict=True) if kept]
        return replace(self, codes=codes, labels=labels, missing=self.missing and bool(present[0]))


def _is_missing(item: Any) -> bool:
    return (
        item is None
        or type(item).__name__ in ("NAType", "NaTType")
        or (isinstance(item, float) and item != item)
    )


def code_labels_of(name: str, values: Any, nominal: bool, order: Sequence[Any] | None = None) -> Column:
    """Code categories; their order is the one given, or that of their names."""
    return code_labels(name, *first_codes(name, values), nominal, order)


def code_labels(
    name: str,
    first: npt.NDArray[Any],
    labels: list[Any],
    nominal: bool,
    order: Sequence[Any] | None = None,
) -> Column:
    """Renumber codes by the order of their labels, missing first."""
    gap = labels.index(None) if None in labels else -1
    known = [label for label in labels if label is not None]
    rank = {label: place for place, label in enumerate(order)} if order is not None else None
    known.sort(key=(lambda label: rank[label]) if rank is not None else (lambda label: _by_name(label)))
    place = {label: i + (gap >= 0) for i, label in enumerate(known)}
    remap = np.array([0 if k == gap else place[label] for k, label in enumerate(labels)], dtype=np.int32)
    table: list[Any] = ([None] if gap >= 0 else []) + known
    return Column(name, remap[first], table, nominal, gap >= 0)


def _by_name(label: Any) -> tuple[str, str]:
    return type(label).__name__, str(label)


def first_codes(name: str, values: Any) -> tuple[npt.NDArray[Any], list[Any]]:
    """Number the distinct values in some order; Arrow does it fastest, a dictionary does it everywhere."""
    if hasattr(values, "to_arrow"):
        try:
            coded = values.to_arrow()
        except (ImportError, TypeError, ValueError):  # no PyArrow, or values of several types
            values = values.to_list()
        else:
            coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
            if not hasattr(coded, "indices"):
                coded = coded.dictionary_encode()
            labels = coded.dictionary.to_pylist()
            indices = coded.indices
            if indices.null_count:
                labels, indices = [*labels, None], indices.fill_null(len(labels))
            used = np.asarray(indices)
            return used, labels
    codes, found = _numbered(name, values)
    labels = [None if _is_missing(item) else item for item in found]
    if labels.count(None) < 2:
        return codes, labels
    renumbered, merged = _numbered(name, labels)  # several kinds of missing are one
    return renumbered[codes], merged


def _numbered(name: str, values: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """Number the distinct values as they come."""
    table: dict[Any, int] = {}
    try:
        codes = [table.setdefault(item, len(table)) for item in values]
    except TypeError:  # lists, dictionaries
        got = "got " + ", ".join(sorted({type(item).__name__ for item in values}))
        hint = "make a column of each part, or leave the column out"
        raise InvalidInputError(
            sentence(f"column {name!r}", "must have one value per row", got, hint)
        ) from None
    return np.array(codes, dtype=np.int32), list(table)


def code_numbers(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    """Code numbers, truth values or dates by their rank."""
    kind = array.dtype.kind
    if kind not in "biufmM":
        raise InvalidInputError(
            sentence(f"column {name!r}", "must be numbers, dates or categories", f"got dtype {array.dtype}")
        )
    gaps = np.isnan(array) if kind == "f" else np.isnat(array) if kind in "mM" else None
    if gaps is not None and gaps.any():
        inner = code_numbers(name, array[~gaps], nominal)
        codes = np.zeros(len(array), dtype=np.int32)
        codes[~gaps] = inner.codes + 1
        return Column(name, codes, [None, *inner.labels], nominal, True)
    if len(array) == 0:
        return Column(name, np.empty(0, dtype=np.int32), [], nominal)
    close = kind in "biu" and int(array.max()) - int(array.min()) <= 4 * len(array) + 1024
    if close and int(array.max()) < 2**63:
        return _code_range(name, array, nominal)
    order = np.argsort(array)
    ordered = array[order]
    fresh = np.concatenate(([False], ordered[1:] != ordered[:-1]))
    codes = np.empty(len(array), dtype=np.int32)
    codes[order] = np.cumsum(fresh, dtype=np.int32)
    fresh[0] = True
    return Column(name, codes, ordered[fresh], nominal)


def _code_range(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    """Code whole numbers that lie close together, by a table."""
    low, high = int(array.min()), int(array.max())
    shifted = np.empty(len(array), dtype=narrowest(high - low + 1))
    np.subtract(array, low, out=shifted, casting="unsafe", dtype=np.int64)
    if high - low < FEW:
        present = np.array([bool((shifted == place).any()) for place in range(high - low + 1)])
    else:
        present = np.bincount(shifted) > 0
    labels = np.flatnonzero(present) + low
    codes = shifted if present.all() else (np.cumsum(present) - 1).astype(shifted.dtype)[shifted]
    return Column(name, codes, (labels > 0 if array.dtype.kind == "b" else labels).tolist(), nominal)
