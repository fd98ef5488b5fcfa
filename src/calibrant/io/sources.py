"""Files as SQL: what to scan, where a column is found there, and how its text is read as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import InvalidInputError, Place, UnreadableFileError, reject_name
from calibrant.formatting import pluralize
from calibrant.io.csv_dialect import LATIN_ENCODINGS, CsvDialect, line_of, not_utf8, read_dialect, stray_byte
from calibrant.io.session import file_format, identifier, literal
from calibrant.results import Array

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


TEXT_FOR_MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")


@dataclass(frozen=True, slots=True)
class Notation:
    """How numbers are written; `labels`: column, label of 1, label of 0; `scale`: ends of `scaled` ones."""

    decimal: str = "."
    percent: bool = False
    labels: tuple[str, str, str] | None = None
    scale: tuple[float, float] = (0.0, 1.0)
    scaled: tuple[str, ...] = ()


# How the numbers of this run are written, where the caller does not say
default_notation: ContextVar[Notation] = ContextVar("written_as", default=Notation())  # noqa: B039 - it is frozen


def number_sql(text: str, notation: Notation) -> str:
    """Return the SQL that reads text as a number: NULL where it is missing or not a number."""
    # trim() keeps DuckDB from handing the cast to its CSV reader, which would fail where TRY_CAST must not
    # DuckDB reads 0_1 as 1; no file means that
    digits = f"CASE WHEN contains({text}, '_') THEN NULL ELSE trim({text}) END"
    if notation.decimal == ",":
        # a point would be a thousands separator or a mistake: neither is read
        thousands = f"contains({text}, '.') OR contains({text}, '_')"
        digits = f"CASE WHEN {thousands} THEN NULL ELSE replace(trim({text}), ',', '.') END"
    hundredths = ""
    if notation.percent:
        bare = f"trim(rtrim({digits}, '%'))"
        hundredths = f", CASE WHEN {digits} LIKE '%\\%' ESCAPE '\\' THEN TRY_CAST({bare} AS DOUBLE) / 100 END"
    truth = f"CASE lower(trim({text})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"coalesce(TRY_CAST({digits} AS DOUBLE){hundredths}, {truth})"


def unless_missing(text: str, missing: str, otherwise: str) -> str:
    """Return the SQL of one value where a cell means a missing value, and of another elsewhere."""
    # not IN: DuckDB makes a join of a long list, and joins by several threads change the order of rows
    cases = " ".join(f"WHEN {literal(word)} THEN {missing}" for word in TEXT_FOR_MISSING)
    return f"CASE trim({text}) {cases} ELSE {otherwise} END"


def not_a_number(column: str, text: str, place: Place, better: str = "") -> InvalidInputError:
    got = f"got the text {text!r}"
    return InvalidInputError(f"column {column!r}", "must be numeric", got, better or hint(text), place)


def hint(text: str) -> str:
    """Suggest what to do about a cell that is not a number.

    >>> hint("0,75"), hint("75 %")
    ('this is a decimal comma; pass --decimal ,', 'this is a percentage; pass --percent')
    """
    shown = text.strip()
    if re.fullmatch(r"[+-]?\d+([.,]\d+)?\s*%", shown):
        return "this is a percentage; pass --percent" + (" and --decimal ," if "," in shown else "")
    if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", shown):
        return "this is a decimal comma; pass --decimal ,"
    if re.fullmatch(r"[+-]?\d+\.\d+", shown):
        return "this is a decimal point; leave --decimal , out"
    if re.fullmatch(r"[+-]?[\d.,' ]+\d", shown):
        return "write it without separators of thousands"
    return "correct the cells, and leave them empty where the value is missing; or map the labels to 0 and 1"


def refuse_repeats(names: Sequence[str]) -> None:
    """Refuse one column in two roles, as outcome and prediction or as weight: a slip that gives a number."""
    for name in names:
        if names.count(name) > 1:
            got = f"got {name!r} {names.count(name)} times"
            raise InvalidInputError("columns of numbers", "must be different", got)


NUMERIC = re.compile(r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)")


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column of a scan: its SQL name, and its type in words of SQL ("TEXT" and "JSON" are cells)."""

    name: str
    sql: str
    kind: str

    @property
    def text(self) -> str | None:
        if self.kind == "JSON":
            return f"({self.sql} ->> '$')"
        return self.sql if self.kind in ("TEXT", "VARCHAR") else None

    def number(self, notation: Notation) -> str:
        """Return the SQL of the cell as a number, NULL for NaN."""
        x = self.number_or_nan(notation)
        # Parquet's extremes leave NaN out: where they say so, DuckDB takes isnan(x) for false and x <= 1
        # for true; isfinite and isinf are spared
        if self.kind in ("FLOAT", "DOUBLE"):
            return f"CASE WHEN isfinite({x}) THEN {x} WHEN isinf({x}) THEN {x} END"
        return x

    def number_or_nan(self, notation: Notation) -> str:
        """Return the SQL of the cell as a number; check isfinite before comparing it."""
        if notation.labels is not None and notation.labels[0] == self.name:
            one, zero = map(literal, notation.labels[1:])
            return f"CASE trim({self.cell}) WHEN {one} THEN 1.0 WHEN {zero} THEN 0.0 END"
        if self.text is not None:
            number = number_sql(self.text, notation)
        elif NUMERIC.fullmatch(self.kind):
            number = f"CAST({self.sql} AS DOUBLE)"
        else:
            got = f"got values of type {self.kind}"
            raise InvalidInputError(f"column {self.name!r}", "must be numeric", got)
        low, high = notation.scale
        if self.name not in notation.scaled or (low, high) == (0.0, 1.0):
            return number
        return f"(({number}) - CAST({low!r} AS DOUBLE)) / CAST({high - low!r} AS DOUBLE)"

    @property
    def cell(self) -> str:
        return self.text or f"CAST({self.sql} AS VARCHAR)"


def filled(numbers: Any) -> Array:
    """Return numbers that DuckDB read, NaN where one is missing."""
    return np.asarray(np.ma.filled(np.ma.asarray(numbers, dtype=np.float64), np.nan))


@dataclass(frozen=True, slots=True)
class Source:
    """Files that are scanned together, because their columns are named and typed alike."""

    scan: str  # an SQL table function
    columns: Mapping[str, SourceColumn]


def sources(
    connection: DuckDBPyConnection,
    files: Sequence[Path],
    names: Sequence[str],
    wanted: Sequence[str],
    parallel: bool = True,
) -> list[Source]:
    """Return how to scan `files` (plain `names`) in order, apart where their columns or types differ."""
    kinds = {file_format(file) for file in files}
    if len(kinds) > 1:
        rule, got = "must be of one kind", f"got {' and '.join(sorted(kinds))}"
        raise UnreadableFileError("files", rule, got)
    columns, pairs = list(dict.fromkeys(wanted)), list(zip(files, names, strict=True))
    if kinds == {"json"}:
        return [_json(connection, pairs, columns)]
    parts = []
    if kinds == {"csv"}:
        headers = [(read_dialect(file, columns), file, name) for file, name in pairs]
        for dialect, alike in groupby(headers, key=itemgetter(0)):
            part = list(alike)
            places = {name: place_of(part[0][1], dialect.names, name) for name in columns}
            found = {name: SourceColumn(name, f"c{place}", "TEXT") for name, place in places.items()}
            parts.append(Source(csv_scan(dialect, [name for *_, name in part], parallel), found))
        return parts
    typed = [(_parquet_columns(connection, name, file, columns), name) for file, name in pairs]
    for described, same in groupby(typed, key=itemgetter(0)):
        scan = f"read_parquet({_list([name for _, name in same])}, hive_partitioning = false)"
        parts.append(Source(scan, {column.name: column for column in described}))
    return parts


def csv_scan(dialect: CsvDialect, names: Sequence[str], parallel: bool = True) -> str:
    """Return the scan of CSV files: every cell as text, nothing detected, nothing skipped, nothing padded."""
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(dialect.names)))
    options = (
        f"columns = {{{columns}}}, delim = {literal(dialect.separator)}, skip = {dialect.empty_lines}, "
        "header = true, auto_detect = false, quote = '\"', escape = '\"', comment = '', nullstr = '\x1a', "
        "hive_partitioning = false, null_padding = false, ignore_errors = false, strict_mode = true, "
        f"parallel = {parallel}"
    )
    return f"read_csv({_list(names)}, {options})"


def place_of(file: Path, names: Sequence[str], name: str) -> int:
    places = [place for place, known in enumerate(names) if known == name]
    if len(places) > 1:
        got = f"got {len(places)} columns called {name!r}"
        hint = "rename one of them; in a text file that is its first line"
        raise UnreadableFileError(f"file {str(file)!r}", "must name each column once", got, hint)
    if places:
        return places[0]
    if all(_is_number(cell) for cell in names):
        rule, got = "must have a header", f"got {', '.join(names)} as its first line"
        hint = f"put the names of the columns, such as {name}, into the first line"
        raise UnreadableFileError(f"file {str(file)!r}", rule, got, hint)
    raise reject_name(f"column of {file}", name, list(names))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _parquet_columns(
    connection: DuckDBPyConnection, name: str, file: Path, wanted: Sequence[str]
) -> tuple[SourceColumn, ...]:
    """Return the wanted columns of one file by their true names; DuckDB renames those it finds twice."""
    query = f"DESCRIBE SELECT * FROM read_parquet({literal(name)}, hive_partitioning = false)"
    described = [(row[0], row[1]) for row in connection.execute(query).fetchall()]
    written = top_level_names(connection, name)
    if len(written) != len(described):
        written = [shown for shown, _ in described]
    places = [place_of(file, written, column) for column in wanted]
    return tuple(
        SourceColumn(column, identifier(described[place][0]), described[place][1])
        for column, place in zip(wanted, places, strict=True)
    )


def top_level_names(connection: DuckDBPyConnection, name: str) -> list[str]:
    rows = connection.execute(f"SELECT name, num_children FROM parquet_schema({literal(name)})").fetchall()
    names, place = [], 1  # row 0 is the root
    while place < len(rows):
        names.append(rows[place][0])
        waiting = 1
        while waiting and place < len(rows):  # step over the children of a nested column
            waiting += (rows[place][1] or 0) - 1
            place += 1
    return names


def _json(connection: DuckDBPyConnection, files: Sequence[tuple[Path, str]], wanted: Sequence[str]) -> Source:
    for file, name in files:
        known = _json_names(connection, name)
        if not set(wanted) <= set(known):  # a key may first appear far down
            known = _json_names(connection, name, sample=-1)
        for column in wanted:
            place_of(file, known, column)
    columns = ", ".join(f"{literal(column)}: 'JSON'" for column in wanted)
    names = _list([name for _, name in files])
    scan = f"read_json({names}, columns = {{{columns}}}, hive_partitioning = false)"
    return Source(scan, {name: SourceColumn(name, identifier(name), "JSON") for name in wanted})


def _json_names(connection: DuckDBPyConnection, name: str, sample: int = 20_480) -> list[str]:
    scan = f"read_json({literal(name)}, sample_size = {sample}, hive_partitioning = false)"
    return [str(row[0]) for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(map(literal, names)) + "]"


class NotInPiecesError(UnreadableFileError):
    """DuckDB cannot read a file with such line breaks inside of quotes in pieces; it is asked again."""


def unreadable(files: Sequence[Path], error: Exception) -> UnreadableFileError:
    """Translate an error of DuckDB to our format: the encoding, the line, the rule."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    shown = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    name = f"file {shown!r}"
    if any("single threaded" in line for line in lines):
        return NotInPiecesError(name, "must be readable in pieces")
    if file_format(files[0]) != "csv":
        return UnreadableFileError(name, f"must be readable as {file_format(files[0])}", lines[0].rstrip("."))
    if any("unicode" in line.lower() or "utf-8" in line.lower() for line in lines):
        for file in files:
            if (stray := stray_byte(file)) is not None:
                got = f"byte 0x{stray[1]:02x} in line {stray[0]:,}"
                return not_utf8(f"file {str(file)!r}", LATIN_ENCODINGS, got)
        return not_utf8(name, LATIN_ENCODINGS, line_of(lines[0]))
    counts = [line for line in lines if line.startswith("Expected Number of Columns")]
    line = next((line.rsplit(" ", 1)[-1] for line in lines if "CSV Error on Line" in line), "")
    if counts:
        expected, got = (part.split()[-1] for part in counts[0].split(" Found: "))
        found = f"got {pluralize(int(got), 'cell')} in line {line} and {expected} in the header"
        return UnreadableFileError(name, "must have the same number of cells in every row", found)
    if any("state machine" in text for text in lines):
        rule, got = "must be CSV", "got line endings or quotes that do not fit together"
        return UnreadableFileError(name, rule, got, "write it again, with one kind of line ending")
    reason = next((text for text in lines if "quote" in text.lower()), lines[0]).rstrip(".")
    return UnreadableFileError(name, "must be readable as csv", f"{reason} (line {line})" if line else reason)
