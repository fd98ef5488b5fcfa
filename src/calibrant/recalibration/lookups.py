"""Maps of many pieces for DuckDB: the piece is looked up in lists, which is faster than a tree of choices.

A first list says how many cuts lie below each cell of [0, 1]; a few steps of a binary search among the cuts
of a cell find the piece, and its numbers are taken from lists of their own. Every step is a column that the
next query reads, since one expression would have to repeat it. The lists are the one row of a table beside
the rows: DuckDB would build lists written in the query anew for every 2,048 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.sql import Sql, SqlAlgebra, sql_number
from calibrant.results import Array

MOST = 1_000_000  # entries of all lists: DuckDB copies them for every 2,048 rows
CELLS = tuple(2**k for k in range(4, 18))  # powers of two, so that p times the number of them is exact
STEP = 40_000  # entries of lists that take as long to copy as one more step of the search
MOST_NARROW = 2**14  # the last piece of a list of 16-bit integers, which leaves room for the search
ROUNDING = 1e-9  # by which cells overlap
LISTS = "calibrant_lists"  # the table that holds them


class TooManyPiecesError(ValueError):
    """The map has more pieces than lists can serve."""


class LookedUp(NamedTuple):
    """Rows with the columns that a map needs, the map as SQL of them, and the lists it reads, by name."""

    rows: str
    value: str
    lists: dict[str, list[Any]]


@dataclass(slots=True)
class LookupAlgebra(SqlAlgebra):
    """The functions of maps, with pieces by lists; `columns` are needed before the expression, in order."""

    columns: list[tuple[str, str]] = field(default_factory=list)  # name and SQL
    lists: dict[str, list[Any]] = field(default_factory=dict)
    most: int = field(default_factory=lambda: MOST)

    def clip(self, x: Sql, low: float, high: float) -> Sql:
        """Return x held within [low, high]; choices take a third of the time of LEAST and GREATEST."""
        held = Sql(self.column(x.text))
        inner = self.when(Sql(f"{held.text} > {sql_number(high)}"), self.number(high), held)
        return Sql(self.column(self.when(held < low, self.number(low), inner).text))

    def pieces(self, p: Sql, cuts: Array, tables: Sequence[Array], formula: Callable[..., Sql]) -> Sql:
        """Return the formula with the numbers of the piece taken from lists."""
        if not len(cuts):
            return formula(*(self.number(float(table[0])) for table in tables))
        cells, below, steps = grid_of(cuts)
        if cells + (1 + len(tables)) * len(cuts) > self.most:
            raise TooManyPiecesError
        cell = f"({p.text} * {sql_number(cells)} + 1e0)::INTEGER"
        piece = self.column(f"{self.listed(below + 1)}[{cell}]")  # the first place of lists is 1
        filled = self.listed(np.append(cuts, [2.0] * sum(steps)))  # no prediction reaches 2
        for step in steps:  # sums: DuckDB takes longer for choices that differ from row to row
            place = piece if step == 1 else f"{piece} + {step - 1}"
            piece = self.column(f"{piece} + ({filled}[{place}] <= {p.text})::SMALLINT * {step}")
        return formula(*(Sql(f"{self.listed(table)}[{piece}]") for table in tables))

    def column(self, text: str) -> str:
        """Add a column; return its name."""
        name = f'"calibrant step {len(self.columns)}"'
        self.columns.append((name, text))
        return name

    def listed(self, numbers: npt.NDArray[Any]) -> str:
        """Add a list; return its name."""
        name = f'"calibrant list {len(self.lists)}"'
        self.lists[name] = numbers.tolist()
        return name


def grid_of(cuts: Array) -> tuple[int, npt.NDArray[np.int64], list[int]]:
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
        return one[0] + len(one[2]) * STEP

    return min(map(grid, CELLS), key=cost)


def list_type(numbers: Sequence[Any]) -> str:
    """Return the SQL type of a list: integers are narrow, since all of it is copied for every 2,048 rows."""
    if not isinstance(numbers[0], int):
        return "DOUBLE[]"
    return "SMALLINT[]" if max(numbers) < MOST_NARROW else "INTEGER[]"


def looked_up(fitted: Map, rows: str, column: str) -> LookedUp:
    """Return rows with the columns that a map needs, and the map of a column as an expression of them.

    `column` must hold NULL where there is no prediction in [0, 1], and so does the result. Inside a choice
    DuckDB would compute again what an expression repeats, so the value is a column before it is one.
    """
    algebra = LookupAlgebra()
    value = algebra.column(fitted.expression(Sql(column), algebra).text)
    if algebra.lists:
        rows = f"SELECT * FROM ({rows}) CROSS JOIN {LISTS}"
    for name, text in algebra.columns:
        rows = f"SELECT *, {text} AS {name} FROM ({rows})"
    return LookedUp(rows, f"CASE WHEN {column} IS NOT NULL THEN {value} END", algebra.lists)
