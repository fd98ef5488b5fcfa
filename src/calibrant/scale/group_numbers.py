"""Groups numbered in the order they are seen, batch by batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


class GroupNumbers:
    """Numbers groups in the order they are seen, batch by batch; `seen` has their values."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def of(self, columns: list[Any], rows: int) -> npt.NDArray[np.int32]:
        """Return the number of the group of every row, from one Arrow array per column of groups."""
        import pyarrow as pa

        packed, parts = np.zeros(rows, dtype=np.int64), []
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            values = encoded.dictionary.to_pylist()
            packed = packed * len(values) + encoded.indices.to_numpy(zero_copy_only=False)
            parts.append(values)
        distinct = packed
        if len(columns) > 1:  # few of all combinations occur
            encoded = pa.array(packed).dictionary_encode()
            packed, distinct = encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
        else:
            distinct = np.arange(len(parts[0]) if parts else 1)
        numbers = [self._number(_unpacked(int(code), parts)) for code in distinct]
        return np.asarray(numbers, dtype=np.int32)[packed]

    def _number(self, values: tuple[Any, ...]) -> int:
        key = tuple(_key(value) for value in values)
        if key not in self._numbers:
            self._numbers[key] = len(self.seen)
            self.seen.append(values)
        return self._numbers[key]


def _key(value: Any) -> Any:
    """Return what tells values apart: True is not 1, and NaN is itself."""
    return type(value), "NaN" if isinstance(value, float) and math.isnan(value) else value


def _unpacked(code: int, parts: list[list[Any]]) -> tuple[Any, ...]:
    values = []
    for known in reversed(parts):
        code, place = divmod(code, len(known))
        values.append(known[place])
    return tuple(reversed(values))
