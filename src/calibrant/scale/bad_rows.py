"""Where the first bad row of files stands, now that an engine has counted bad rows and not said where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.scale.files import FileNames, in_pieces_or_whole, open_files
from calibrant.scale.located import located
from calibrant.scale.sources import SourceColumn
from calibrant.scale.text_numbers import Notation, unread_sql

UNREAD = "unread"  # cells of text that are no number
CONDITIONS = {
    "missing": "x IS NULL OR isnan(x)",
    "outside": "NOT isnan(x) AND NOT (x >= 0 AND x <= 1)",
    "negative": "NOT isnan(x) AND NOT (x >= 0 AND isfinite(x))",
    UNREAD: UNREAD,
}


@dataclass(frozen=True, slots=True)
class BadRow:
    """The first bad cell of a column: its text, its row in its file, and how many there are in that file."""

    file: Path
    row: int
    text: str
    count: int

    @property
    def place(self) -> str:
        """Return the row, counted from 0, and its file."""
        return f"row {self.row} of {str(self.file)!r}"


def bad_rows(path: FileNames, name: str, kind: str, notation: Notation) -> Iterator[BadRow]:
    """Look through the files in order for cells of a column that are bad in this way: the first of each."""
    for file in located(path):

        def read(parallel: bool, file: Path = file) -> BadRow | None:
            return _first_in(file, name, kind, notation, parallel)

        result = in_pieces_or_whole(read)
        if result is not None:
            yield result


def _first_in(file: Path, name: str, kind: str, notation: Notation, parallel: bool) -> BadRow | None:
    with open_files(file, [name], parallel) as (connection, [part]):
        cells = _cells(part.columns[name], notation)
        numbered = f"SELECT {', '.join(cells)}, row_number() OVER () - 1 AS place FROM {part.scan}"
        query = f"SELECT min(place), arg_min(t, place), count(*) FROM ({numbered}) WHERE {CONDITIONS[kind]}"
        [(place, text, count)] = connection.execute(query).fetchall()
    return BadRow(file, int(place), str(text), int(count)) if count else None


def _cells(column: SourceColumn, notation: Notation) -> Sequence[str]:
    number = column.number(notation)
    text = f"CAST({column.sql} AS VARCHAR)" if column.text is None else column.text
    unread = "false" if column.text is None else unread_sql(column.text, number)
    return f"{number} AS x", f"coalesce({text}, '') AS t", f"{unread} AS {UNREAD}"
