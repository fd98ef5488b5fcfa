"""Maps of many pieces in Ibis: pieces are looked up in lists that stand beside every row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.recalibration.lookups import grid_of
from calibrant.recalibration.maps.form import Map
from calibrant.results import Array

USABLE = "calibrant usable"


class IbisAlgebra:
    """The functions of maps, as deferred expressions; `columns` are needed before them, in order."""

    def __init__(self) -> None:
        self.columns: list[tuple[str, Any]] = []
        self.lists: dict[str, list[float]] = {}

    def log(self, x: Any) -> Any:
        """Return the natural logarithm."""
        return x.ln()

    def exp(self, x: Any) -> Any:
        """Return e to the power x."""
        return x.exp()

    def clip(self, x: Any, low: float, high: float) -> Any:
        """Return x held within [low, high]."""
        return x.clip(lower=low, upper=high)

    def greatest(self, columns: Sequence[Any]) -> Any:
        """Return the largest of several columns."""
        import ibis

        return ibis.greatest(*columns)

    def when(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return one of two expressions."""
        import ibis

        return ibis.ifelse(condition, then, otherwise)

    def number(self, value: float) -> Any:
        """Return a constant."""
        import ibis

        return ibis.literal(value, type="float64")

    def pieces(self, p: Any, cuts: Array, tables: Sequence[Array], formula: Callable[..., Any]) -> Any:
        """Return the formula with the numbers of the piece taken from lists."""
        if not len(cuts):
            return formula(*(self.number(float(table[0])) for table in tables))
        cells, below, steps = grid_of(cuts)
        piece = self.column(self.listed(below)[(p * cells).round().cast("int64")].cast("int64"))
        filled = self.listed(np.append(cuts, [2.0] * sum(steps)))  # no prediction reaches 2
        for step in steps:
            reached = filled[piece + (step - 1)] <= p
            piece = self.column(self.when(reached, piece + step, piece))
        return formula(*(self.listed(table)[piece] for table in tables))

    def column(self, expression: Any) -> Any:
        """Add a column; return it."""
        import ibis

        name = f"calibrant step {len(self.columns)}"
        self.columns.append((name, expression))
        return ibis._[name]

    def listed(self, numbers: Any) -> Any:
        """Add a list; return it."""
        import ibis

        name = f"calibrant list {len(self.lists)}"
        self.lists[name] = np.asarray(numbers, dtype=np.float64).tolist()
        return ibis._[name]


def by_ibis(table: Any, fitted: Map, prediction: str, into: str) -> Any:
    """Return the table with the new column, null where there is no prediction in [0, 1]."""
    import ibis

    algebra = IbisAlgebra()
    value = fitted.expression(ibis._[USABLE], algebra)
    p = table[prediction].cast("float64")
    # p - p, because DuckDB may take p <= 1 for true and isnan for false for NaN (see sql.is_probability)
    rows = table.mutate(**{USABLE: ibis.ifelse((p >= 0) & (p <= 1) & (p - p == 0), p, None)})
    rows = rows.cross_join(ibis.memtable([algebra.lists]))
    for name, expression in algebra.columns:
        rows = rows.mutate(**{name: expression})
    rows = rows.mutate(**{into: ibis.ifelse(ibis._[USABLE].notnull(), value, None)})
    return rows.drop(USABLE, *algebra.lists, *(name for name, _ in algebra.columns))
