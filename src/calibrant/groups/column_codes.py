"""A column as codes: labels or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[Any]


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
