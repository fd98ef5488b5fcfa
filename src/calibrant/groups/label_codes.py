"""Labels as codes: in the order given, or that of their names; missing first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.column_codes import Column


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
