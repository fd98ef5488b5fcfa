"""Numbers, truth values and dates as codes, by their rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.column_codes import Column, narrowest

FEW = 64  # values that are looked for one by one, which is quicker than counting all


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
