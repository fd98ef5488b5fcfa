"""Maps of many pieces for DuckDB: the piece is looked up in lists, which is faster than a tree of choices.

A first list says how many cuts lie below each cell of [0, 1]; a few steps of a binary search among the cuts
of a cell find the piece, and its numbers are taken from lists of their own. Every step is a column that the
next query reads, since one expression would have to repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.sql import Sql, SqlAlgebra, number
from calibrant.results import Array

MOST = 40_000  # entries of all lists: DuckDB builds them anew for every 2,048 rows
CELLS = tuple(2**k for k in range(4, 12))  # powers of two, so that p times the number of them is exact
STEP = 1_400  # entries of lists that take as long to build as one more step of the search
ROUNDING = 1e-9  # by which cells overlap


class TooManyPiecesError(ValueError):
    """The map has more pieces than lists can serve."""


@dataclass(slots=True)
class LookupAlgebra(SqlAlgebra):
    """The functions of maps, with pieces by lists; `columns` are needed before the expression, in order."""

    columns: list[tuple[str, str]] = field(default_factory=list)  # name and SQL

    def pieces(self, p: Sql, cuts: Array, tables: Sequence[Array], formula: Callable[..., Sql]) -> Sql:
        """Return the formula with the numbers of the piece taken from lists."""
        if not len(cuts):
            return formula(*(self.number(float(table[0])) for table in tables))
        cells, below, steps = _grid(cuts)
        if cells + (len(steps) + len(tables)) * len(cuts) > MOST:
            raise TooManyPiecesError
        piece = self.column(f"{_list(map(str, below))}[({p.text} * {number(cells)})::INTEGER + 1]")
        for step in steps:
            filled = _list(number(cut) for cut in [*cuts.tolist(), *[2.0] * step])  # no prediction reaches 2
            reached = f"{filled}[{piece} + {step}] <= {p.text}"
            piece = self.column(f"CASE WHEN {reached} THEN {piece} + {step} ELSE {piece} END")
        return formula(*(Sql(f"{_list(map(number, table.tolist()))}[{piece} + 1]") for table in tables))

    def column(self, text: str) -> str:
        """Add a column; return its name."""
        name = f'"calibrant step {len(self.columns)}"'
        self.columns.append((name, text))
        return name


def _grid(cuts: Array) -> tuple[int, npt.NDArray[np.int64], list[int]]:
    """Return how many cells, how many cuts surely lie at or below each, and the steps that find the rest."""

    def grid(cells: int) -> tuple[int, npt.NDArray[np.int64], list[int]]:
        middles = np.arange(cells + 1)  # a cell holds what is rounded to it
        first, last = (
            np.searchsorted(cuts, (middles + half) / cells + half * ROUNDING, side="right")
            for half in (-0.5, 0.5)
        )
        most = int((last - first).max())
        return cells, first, [2**k for k in reversed(range(most.bit_length()))]

    def cost(one: tuple[int, npt.NDArray[np.int64], list[int]]) -> int:
        return one[0] + len(one[2]) * (STEP + len(cuts))

    return min(map(grid, CELLS), key=cost)


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def looked_up(fitted: Map, rows: str, column: str) -> tuple[str, str]:
    """Return rows with the columns that a map needs, and the map of a column as an expression of them.

    `column` must hold NULL where there is no prediction in [0, 1], and so does the result. Inside a choice
    DuckDB would compute again what an expression repeats, so the value is a column before it is one.
    """
    algebra = LookupAlgebra()
    value = algebra.column(fitted.expression(Sql(column), algebra).text)
    for name, text in algebra.columns:
        rows = f"SELECT *, {text} AS {name} FROM ({rows})"
    return rows, f"CASE WHEN {column} IS NOT NULL THEN {value} END"  # LEAST and GREATEST pass NULL over
