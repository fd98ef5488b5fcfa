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

        packed = np.zeros(rows, dtype=np.int64)
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            places = encoded.indices.to_numpy(zero_copy_only=False)
            # numbered anew each time: the product of many columns' sizes would exceed 64 bits
            pairs = pa.array(packed * len(encoded.dictionary) + places).dictionary_encode()
            packed = pairs.indices.to_numpy().astype(np.int64)
        first = np.zeros(int(packed.max(initial=-1)) + 1, dtype=np.int64)
        first[packed[::-1]] = np.arange(rows)[::-1]  # the last to be written is the first row
        seen = zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True)
        numbers = [self._number(values) for values in seen]
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
