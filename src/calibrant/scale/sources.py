"""Files as SQL: what to scan and under which name a column is found there.

Columns are found by name in each file. Files whose columns stand in another order, or have another type,
are scanned apart and appended, so that one file never decides how another one is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.scale.dialect import CsvDialect, read_dialect
from calibrant.scale.file_head import LATIN, line_of, not_utf8, stray_byte
from calibrant.scale.located import kind_of
from calibrant.scale.session import identifier, literal
from calibrant.scale.text_numbers import Notation, number_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUMERIC = re.compile(r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)")


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column of a scan: its SQL name, and its type in words of SQL ("TEXT" and "JSON" are cells)."""

    name: str
    sql: str
    kind: str

    @property
    def text(self) -> str | None:
        """Return the SQL of the cell's text, or None where the file gives the cell a type."""
        if self.kind == "JSON":
            return f"({self.sql} ->> '$')"
        return self.sql if self.kind in ("TEXT", "VARCHAR") else None

    def number(self, notation: Notation) -> str:
        """Return the SQL of the cell as a number, NULL for NaN."""
        number = self.number_or_nan(notation)
        return without_nan(number) if self.kind in ("FLOAT", "DOUBLE") else number

    def number_or_nan(self, notation: Notation) -> str:
        """Return the SQL of the cell as a number; whoever compares it must ask isfinite first."""
        if self.text is not None:
            return number_sql(self.text, notation)
        if not NUMERIC.fullmatch(self.kind):
            raise InvalidInputError(
                sentence(f"column {self.name!r}", "must be numeric", f"got values of type {self.kind}")
            )
        return f"CAST({self.sql} AS DOUBLE)"


def without_nan(number: str) -> str:
    """Return the SQL of a number, NULL for NaN.

    Parquet's smallest and largest values leave NaN out. DuckDB believes them and takes isnan(x) for false
    and x <= 1 for true wherever they say so; it does not do that to isfinite and isinf.
    """
    return f"CASE WHEN isfinite({number}) THEN {number} WHEN isinf({number}) THEN {number} END"


@dataclass(frozen=True, slots=True)
class Source:
    """Files that are scanned together, because their columns are named and typed alike."""

    files: tuple[Path, ...]
    scan: str  # an SQL table function
    columns: Mapping[str, SourceColumn]


def sources(
    connection: DuckDBPyConnection,
    files: Sequence[Path],
    names: Sequence[str],
    wanted: Sequence[str],
    parallel: bool = True,
) -> list[Source]:
    """Return how to scan `files` (whose plain names are `names`) for the wanted columns, in order."""
    kinds = {kind_of(file) for file in files}
    if len(kinds) > 1:
        rule, got = "must be of one kind", f"got {' and '.join(sorted(kinds))}"
        raise UnreadableFileError(sentence("files", rule, got))
    columns = list(dict.fromkeys(wanted))
    if kinds == {"csv"}:
        return _csv(files, names, columns, parallel)
    return (_parquet if kinds == {"parquet"} else _json)(connection, files, names, columns)


def _csv(files: Sequence[Path], names: Sequence[str], wanted: Sequence[str], parallel: bool) -> list[Source]:
    collected = []
    pairs = [(read_dialect(file, wanted), file, name) for file, name in zip(files, names, strict=True)]
    for dialect, alike in groupby(pairs, key=lambda pair: pair[0]):
        part = list(alike)
        columns = {
            name: SourceColumn(name, f"c{place_of(part[0][1], dialect.names, name)}", "TEXT")
            for name in wanted
        }
        collected.append(
            Source(tuple(f for _, f, _ in part), csv_scan(dialect, [n for *_, n in part], parallel), columns)
        )
    return collected


def csv_scan(dialect: CsvDialect, names: Sequence[str], parallel: bool = True, extra: str = "") -> str:
    """Return the scan of CSV files: every cell as text, nothing detected, nothing skipped, nothing padded."""
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(dialect.names)))
    options = (
        f"columns = {{{columns}}}, delim = {literal(dialect.separator)}, skip = {dialect.empty_lines}, "
        "header = true, auto_detect = false, quote = '\"', escape = '\"', comment = '', nullstr = '\x1a', "
        "hive_partitioning = false, null_padding = false, ignore_errors = false, strict_mode = true, "
        f"parallel = {parallel}"
    )
    return f"read_csv({_list(names)}, {options}{extra})"


def place_of(file: Path, names: Sequence[str], name: str) -> int:
    """Return where a column stands in the header; exactly one column must have the name."""
    places = [place for place, known in enumerate(names) if known == name]
    if len(places) > 1:
        got = f"got {len(places)} columns called {name!r}"
        raise UnreadableFileError(sentence(f"file {str(file)!r}", "must name each column once", got))
    if places:
        return places[0]
    if all(_is_number(cell) for cell in names):
        rule, got = "must have a header", f"got {', '.join(names)} as its first line"
        hint = f"put the names of the columns, such as {name}, into the first line"
        raise UnreadableFileError(sentence(f"file {str(file)!r}", rule, got, hint))
    raise reject_name(f"column of {file}", name, list(names))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _parquet(
    connection: DuckDBPyConnection, files: Sequence[Path], names: Sequence[str], wanted: Sequence[str]
) -> list[Source]:
    collected = []
    known = [(_parquet_columns(connection, n, f, wanted), f, n) for f, n in zip(files, names, strict=True)]
    for columns, alike in groupby(known, key=lambda item: item[0]):
        part = list(alike)
        scan = f"read_parquet({_list([name for *_, name in part])}, hive_partitioning = false)"
        collected.append(Source(tuple(f for _, f, _ in part), scan, {c.name: c for c in columns}))
    return collected


def _parquet_columns(
    connection: DuckDBPyConnection, name: str, file: Path, wanted: Sequence[str]
) -> tuple[SourceColumn, ...]:
    """Return the wanted columns of one file by their true names; DuckDB renames those it finds twice."""
    query = f"DESCRIBE SELECT * FROM read_parquet({literal(name)}, hive_partitioning = false)"
    described = [(row[0], row[1]) for row in connection.execute(query).fetchall()]
    written = _top_level_names(connection, name)
    if len(written) != len(described):
        written = [shown for shown, _ in described]
    places = [place_of(file, written, column) for column in wanted]
    return tuple(
        SourceColumn(column, identifier(described[place][0]), described[place][1])
        for column, place in zip(wanted, places, strict=True)
    )


def _top_level_names(connection: DuckDBPyConnection, name: str) -> list[str]:
    rows = connection.execute(f"SELECT name, num_children FROM parquet_schema({literal(name)})").fetchall()
    names, place = [], 1  # row 0 is the root
    while place < len(rows):
        names.append(rows[place][0])
        waiting = 1
        while waiting and place < len(rows):  # step over the children of a nested column
            waiting += (rows[place][1] or 0) - 1
            place += 1
    return names


def _json(
    connection: DuckDBPyConnection, files: Sequence[Path], names: Sequence[str], wanted: Sequence[str]
) -> list[Source]:
    for file, name in zip(files, names, strict=True):
        known = _json_names(connection, name)
        if not set(wanted) <= set(known):  # a key may first appear far down
            known = _json_names(connection, name, sample=-1)
        for column in wanted:
            place_of(file, known, column)
    columns = ", ".join(f"{literal(column)}: 'JSON'" for column in wanted)
    scan = f"read_json({_list(names)}, columns = {{{columns}}}, hive_partitioning = false)"
    return [
        Source(tuple(files), scan, {name: SourceColumn(name, identifier(name), "JSON") for name in wanted})
    ]


def _json_names(connection: DuckDBPyConnection, name: str, sample: int = 20_480) -> list[str]:
    scan = f"read_json({literal(name)}, sample_size = {sample}, hive_partitioning = false)"
    return [str(row[0]) for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(map(literal, names)) + "]"


class NotInPiecesError(UnreadableFileError):
    """DuckDB cannot read a file with such line breaks inside of quotes in pieces; it is asked again."""


def unreadable(files: Sequence[Path], error: Exception) -> UnreadableFileError:
    """Put what DuckDB says of a file into the house's words: the encoding, the line, the rule."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    shown = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    name = f"file {shown!r}"
    if any("single threaded" in line for line in lines):
        return NotInPiecesError(sentence(name, "must be readable in pieces"))
    if kind_of(files[0]) != "csv":
        return UnreadableFileError(
            sentence(name, f"must be readable as {kind_of(files[0])}", lines[0].rstrip("."))
        )
    if any("unicode" in line.lower() or "utf-8" in line.lower() for line in lines):
        for file in files:
            if (stray := stray_byte(file)) is not None:
                got = f"byte 0x{stray[1]:02x} in line {stray[0]:,}"
                return UnreadableFileError(not_utf8(f"file {str(file)!r}", LATIN, got))
        return UnreadableFileError(not_utf8(name, LATIN, line_of(lines[0])))
    counts = [line for line in lines if line.startswith("Expected Number of Columns")]
    line = next((line.rsplit(" ", 1)[-1] for line in lines if "CSV Error on Line" in line), "")
    if counts:
        expected, got = (part.split()[-1] for part in counts[0].split(" Found: "))
        rule = "must have the same number of cells in every row"
        return UnreadableFileError(
            sentence(
                name,
                rule,
                f"got {got} {'cell' if got == '1' else 'cells'} in line {line} and {expected} in the header",
            )
        )
    if any("state machine" in text for text in lines):
        rule, got = "must be CSV", "got line endings or quotes that do not fit together"
        return UnreadableFileError(sentence(name, rule, got, "write it anew, with one kind of line ending"))
    reason = next((text for text in lines if "quote" in text.lower()), lines[0]).rstrip(".")
    return UnreadableFileError(
        sentence(name, "must be readable as csv", f"{reason} (line {line})" if line else reason)
    )
