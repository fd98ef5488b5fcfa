"""Catalogue: the rows of a registry by name, which people read as a list of names or as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from calibrant.sheets import Sheet, text_cell

Row = TypeVar("Row")


class Catalogue(Mapping[str, Row]):
    """A mapping that cannot be changed, shown as a list of names, in notebooks as a table.

    >>> Catalogue("fruits", {"apple": 1, "pear": 2}, {"name": str})
    <2 fruits: apple, pear>
    """

    def __init__(
        self, noun: str, rows: Mapping[str, Row], columns: Mapping[str, Callable[[Row], str]]
    ) -> None:
        self._noun, self._rows, self._columns = noun, dict(rows), dict(columns)

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._noun}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        lines = (tuple(text_cell(write(row)) for write in self._columns.values()) for row in self.values())
        return Sheet(tuple(self._columns), tuple(lines)).as_html()
