"""Columns of files (CSV, TSV, Parquet, JSON lines, globs, DuckDB tables) as arrays, read through DuckDB."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.columns import MAX_EXACT_FLOAT
from calibrant.errors import CalibrantError, InvalidInputError, Place, UnreadableFileError, reject_name
from calibrant.formatting import pluralize
from calibrant.inputs import label_hint
from calibrant.io import session, sources
from calibrant.io.session import identifier, literal
from calibrant.io.sources import Notation, Source, SourceColumn

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# What a cell must look like for its column to be of a type; the first type that fits every cell is taken.
# Leading zeros make a name of digits: a postal code is not a number. Whole numbers too long for 64 bits are
# names too: floats would round them, and make one of two identifiers.
TEXT_PATTERNS = {
    "BIGINT": r"[+-]?(0|[1-9][0-9]{0,18})",
    "VARCHAR": r"[+-]?(0|[1-9][0-9]*)",
    "DOUBLE": r"[+-]?(0?\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][+-]?[0-9]+)?|[+-]?(?i)inf(inity)?",
    "BOOLEAN": "(?i)true|false",
    "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?",
}
READ_AS_TYPE = {
    **dict.fromkeys(("ENUM", "UUID"), "VARCHAR"),
    **dict.fromkeys(("DECIMAL", "HUGEINT", "UHUGEINT"), "DOUBLE"),
}
WHOLE_NUMBER_TYPES = re.compile(r"U?HUGEINT|DECIMAL\(\d+,0\)")  # types of whole numbers that floats may round


def category_column(
    connection: DuckDBPyConnection, parts: Sequence[Source], name: str, notation: Notation
) -> npt.NDArray[Any]:
    columns = [part.columns[name] for part in parts]
    for column in columns:
        refuse_nested(column)
    if any(column.text is None for column in columns):
        return _together([_typed_cells(connection, part, name) for part in parts])
    texts = [f"SELECT {_cell(part.columns[name], notation)} AS t FROM {part.scan}" for part in parts]
    kind = _kind(connection, " UNION ALL ".join(texts))
    if kind == "VARCHAR":  # among names, "NA" and "None" are names: only an empty cell is missing
        pairs = [(part.columns[name].text, part.scan) for part in parts]
        texts = [
            f"SELECT CASE WHEN trim({t}) = '' THEN NULL ELSE {t} END AS t FROM {scan}" for t, scan in pairs
        ]
    cells = [f"SELECT TRY_CAST(t AS {kind}) AS x FROM ({text})" for text in texts]
    return _together([_filled(connection.execute(query).fetchnumpy()["x"]) for query in cells])


def refuse_nested(column: SourceColumn) -> None:
    if column.kind.endswith("]") or column.kind.startswith(("STRUCT", "MAP", "UNION", "VARIANT")):
        rule, got = "must hold one value per row", f"got values of type {column.kind}"
        hint = "choose one element, or join them to text"
        raise InvalidInputError(f"column {column.name!r}", rule, got, hint)


def _typed_cells(connection: DuckDBPyConnection, part: Source, name: str) -> npt.NDArray[Any]:
    column = part.columns[name]
    kind = READ_AS_TYPE.get(column.kind.split("(")[0], "")
    long = False
    if WHOLE_NUMBER_TYPES.fullmatch(column.kind):
        exact = f"BETWEEN -{MAX_EXACT_FLOAT} AND {MAX_EXACT_FLOAT}"
        query = f"SELECT bool_or({column.sql} NOT {exact}) FROM {part.scan}"
        long = bool(connection.execute(query).fetchall()[0][0])  # some number is too long for a float
    kind = "VARCHAR" if long else kind
    cell = f"CAST({column.sql} AS {kind})" if kind else column.sql
    cells = _filled(connection.execute(f"SELECT {cell} AS x FROM {part.scan}").fetchnumpy()["x"])
    if not long:
        return cells
    return np.array([None if text is None else int(text) for text in cells.tolist()], dtype=object)


def _cell(column: SourceColumn, notation: Notation) -> str:
    """Return the SQL of the text of a cell, NULL where it means a missing value."""
    known = sources.unless_missing(column.cell, "NULL", column.cell)
    return known if notation.decimal == "." else f"replace({known}, ',', '.')"


def _kind(connection: DuckDBPyConnection, texts: str) -> str:
    tests = [
        f"bool_and(regexp_full_match(trim(t), '{shape}') AND TRY_CAST(t AS {kind}) IS NOT NULL)"
        for kind, shape in TEXT_PATTERNS.items()
    ]
    distinct = f"SELECT DISTINCT t FROM ({texts}) WHERE t IS NOT NULL"
    [fits] = connection.execute(f"SELECT {', '.join(tests)} FROM ({distinct})").fetchall()
    return next((kind for kind, fit in zip(TEXT_PATTERNS, fits, strict=True) if fit), "VARCHAR")


def _filled(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put the missing value of its type where DuckDB left a gap."""
    absent = np.ma.getmaskarray(column)
    values = np.asarray(np.ma.getdata(column))
    if not absent.any():
        return values
    if values.dtype.kind in "iuf" and not _too_long_for_floats(values[~absent]):
        return np.where(absent, np.nan, values.astype(np.float64))
    if values.dtype.kind == "M":
        return np.where(absent, np.array("NaT", dtype=values.dtype), values)
    out = values.astype(object)
    out[absent] = None
    return out


def _too_long_for_floats(values: npt.NDArray[Any]) -> bool:
    if values.dtype.kind == "f" or not len(values):
        return False
    return max(abs(int(values.min())), abs(int(values.max()))) > MAX_EXACT_FLOAT


def _together(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Append columns; numbers stay numbers unless that rounds them, and types that do not mix are objects."""
    kinds = {"n" if part.dtype.kind in "iuf" else part.dtype.kind for part in parts}
    alike = len(kinds) == 1
    if kinds == {"n"} and len({part.dtype.kind for part in parts}) > 1:
        alike = not any(_too_long_for_floats(part) for part in parts)
    return np.concatenate(parts if alike else [part.astype(object) for part in parts])


FileNames = str | Path | Sequence[str | Path]
Table = tuple[dict[str, npt.NDArray[np.float64]], dict[str, npt.NDArray[Any]]]  # numbers and categories
Read = TypeVar("Read")


def read_table(
    path: FileNames,
    numbers: list[str],
    categories: list[str],
    notation: Notation | None = None,
    outcome: str = "",
) -> Table:
    """Return columns of files in the order of the rows: numbers as float64, categories as they are.

    Missing is NaN in a column of numbers, NaT in one of dates, and None in any other. A category column of
    text cells is one of numbers, dates or truth values if every cell is; "007" is a name, not the number 7.
    """
    used, others = notation or sources.default_notation.get(), list(dict.fromkeys(categories))
    sources.refuse_repeats(numbers)

    def work(connection: DuckDBPyConnection, parts: list[Source]) -> Table:
        read: list[list[npt.NDArray[np.float64]]] = []
        for part in parts if numbers else ():
            before = sum(len(columns[0]) for columns in read)
            read.append(_numbers(connection, part, numbers, used, before, outcome))
        columns = [
            found[0] if len(found) == 1 else np.concatenate(found) for found in zip(*read, strict=True)
        ]
        categories = {name: category_column(connection, parts, name, used) for name in others}
        return dict(zip(numbers, columns, strict=True)), categories

    return with_files(path, list(dict.fromkeys(numbers + others)), work)


def read_cells(path: FileNames, names: list[str]) -> dict[str, list[str | None]]:
    """Return columns as text, in the order of the rows: unchanged cells of text files, None if missing."""

    def work(connection: DuckDBPyConnection, parts: list[Source]) -> dict[str, list[str | None]]:
        cells: dict[str, list[str | None]] = {name: [] for name in names}
        for name, part in product(cells, parts):
            refuse_nested(part.columns[name])
            query = f"SELECT {part.columns[name].cell} FROM {part.scan}"
            cells[name] += [cell for (cell,) in connection.execute(query).fetchall()]
        return cells

    return with_files(path, names, work)


def outcome_labels(path: FileNames, column: str, positive: str) -> tuple[str, str, str]:
    """Return a column of two labels, the one that counts as 1 as the files write it, and the other one."""

    def work(connection: DuckDBPyConnection, parts: list[Source]) -> list[str]:
        found = [_labels(connection, part, column, MAX_LABELS_NAMED) for part in parts]
        return sorted(set().union(*found))[:MAX_LABELS_NAMED]

    labels = with_files(path, [column], work)
    one = next((label for label in labels if label == positive or _is_same_value(label, positive)), None)
    shown = ", ".join(map(repr, labels)) or "none"
    if one is None:
        rule = f"must be one of the labels of column {column!r}"
        raise InvalidInputError("--pos-label", rule, f"got {positive!r} for {shown}")
    if len(labels) > 2:
        rule, hint = "must hold two labels where --pos-label is given", "calibrant classes takes several"
        more = "..." if len(labels) == MAX_LABELS_NAMED else ""
        raise InvalidInputError(f"column {column!r}", rule, f"got {shown}{more}", hint)
    return column, one, next((label for label in labels if label != one), "")


def _is_same_value(one: str, other: str) -> bool:
    with suppress(ValueError):
        return float(one) == float(other)
    return one.lower() == other.lower() and one.lower() in ("true", "false")


def _labels(connection: DuckDBPyConnection, part: Source, name: str, most: int) -> set[str]:
    cell = part.columns[name].cell
    known = sources.unless_missing(cell, "NULL", f"trim({cell})")
    query = f"SELECT DISTINCT {known} AS t FROM {part.scan} ORDER BY t NULLS LAST LIMIT {most}"
    return {text for (text,) in connection.execute(query).fetchall() if text is not None}


def in_pieces_or_whole(read: Callable[[bool], Read]) -> Read:
    """Read in parallel, and once more by one thread if the file cannot be read in pieces."""
    try:
        return read(True)
    except sources.NotInPiecesError:
        return read(False)


def with_files(
    path: FileNames, wanted: list[str], work: Callable[[DuckDBPyConnection, list[Source]], Read]
) -> Read:
    def read(parallel: bool) -> Read:
        with open_files(path, wanted, parallel) as opened:
            return work(*opened)

    return in_pieces_or_whole(read)


@contextmanager
def open_files(
    path: FileNames, wanted: list[str], parallel: bool = True, **settings: str
) -> Iterator[tuple[DuckDBPyConnection, list[Source]]]:
    import duckdb

    files = session.resolve_paths(path)
    with session.plain_names(files) as names, session.connect(names, **settings) as connection:
        try:
            yield connection, sources.sources(connection, files, names, wanted, parallel)
        except duckdb.Error as error:
            raise sources.unreadable(files, error) from None


def _numbers(
    connection: DuckDBPyConnection, part: Source, names: list[str], notation: Notation, before: int,
    outcome: str,
) -> list[npt.NDArray[np.float64]]:  # fmt: skip
    """Read columns in one pass; `before` is how many rows came before this part."""
    numbers = [part.columns[name].number(notation) for name in names]
    shown = ", ".join(f"{number} AS x{place}" for place, number in enumerate(numbers))
    cells = connection.execute(f"SELECT {shown} FROM {part.scan}").fetchnumpy()
    read = []
    for place, name in enumerate(names):
        column = cells.pop(f"x{place}")
        if part.columns[name].text is not None and np.ma.is_masked(column):
            _refuse_text(connection, part, name, notation, before, name == outcome)
        read.append(sources.filled(column))
    return read


def _refuse_text(
    connection: DuckDBPyConnection, part: Source, name: str, notation: Notation, before: int,
    is_outcome: bool,
) -> None:  # fmt: skip
    """Name the first cell that holds neither a number nor one of the texts for missing values."""
    place, text, count = _first_bad(connection, part, name, UNREAD, notation)
    if place is not None:
        hint = _hint_of_labels(_labels(connection, part, name, 3)) if is_outcome else ""
        raise sources.not_a_number(name, text, Place(before + place, count), hint)


def hint_of_labels(path: FileNames, name: str) -> str:
    """Return the hint that names both labels of a column of two words; empty for any other column."""
    labels = (with_files(file, [name], lambda connection, parts: _labels(connection, parts[0], name, 3))
              for file in session.resolve_paths(path))  # fmt: skip
    return _hint_of_labels(set().union(*labels))


def _hint_of_labels(labels: set[str]) -> str:
    words = len(labels) == 2 and not any(mark.isdigit() for label in labels for mark in label)
    return label_hint(sorted(labels)) if words else ""


MAX_LABELS_NAMED = 5  # named in an error
MAX_EXACT_ROWS = 10_000_000  # more are measured from a sketch, on every machine: exact, they take over 2 GB
MIN_BYTES_PER_ROW = 8  # a row of a text file takes at least about that
MAX_COMPRESSION = 10  # how much larger text may be than its packed form
BLOCK_BYTES = 2**24  # of a text file that are searched for line breaks at a time


def fits(path: FileNames, shares: int = 1) -> bool:
    """Return whether files are measured exactly, by their number of rows (times `shares`)."""
    if shares * rows_at_most(path) <= MAX_EXACT_ROWS:
        return True
    files = session.resolve_paths(path)
    if session.file_format(files[0]) == "parquet" or any(map(session.is_compressed, files)):
        return False
    lines = 0
    for file in files:
        with file.open("rb", buffering=0) as opened:
            while block := opened.read(BLOCK_BYTES):
                lines += block.count(b"\n")
    return shares * lines <= MAX_EXACT_ROWS


def rows_at_most(path: FileNames) -> int:
    """Return the row count from Parquet footers, or an upper bound from file size for other formats."""
    import duckdb

    files = session.resolve_paths(path)
    if session.file_format(files[0]) != "parquet":
        sizes = (
            file.stat().st_size * (MAX_COMPRESSION if session.is_compressed(file) else 1) for file in files
        )
        return sum(sizes) // MIN_BYTES_PER_ROW
    with session.plain_names(files) as names, session.connect(names) as connection:
        shown = ", ".join(map(literal, names))
        try:
            query = f"SELECT sum(num_rows) FROM parquet_file_metadata([{shown}])"
            return int(connection.execute(query).fetchall()[0][0] or 0)
        except duckdb.Error:
            return 0  # reported when the file is read


COMPARED_BYTES = 2**16  # that tell most files of one size apart


def refuse_same_contents(files: Sequence[Path], column: str) -> None:
    """Refuse two files with the same bytes, unless they have no rows; `column` is one that they have."""

    def beginning(file: Path) -> bytes:
        with file.open("rb") as opened:
            return opened.read(COMPARED_BYTES)

    def digest(file: Path) -> bytes:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()

    groups = [list(files)]
    for key in (lambda file: file.stat().st_size, beginning, digest):
        parts: dict[Hashable, list[Path]] = defaultdict(list)
        for file in (file for group in groups if len(group) > 1 for file in group):
            parts[key(file)].append(file)
        groups = list(parts.values())
    repeated = [group for group in groups if len(group) > 1 and _has_rows(group[0], column)]
    if repeated:
        first, second, *_ = repeated[0]
        others = sum(len(group) - 1 for group in repeated) - 1
        more = f" (and {pluralize(others, 'further copy', 'further copies')})" if others else ""
        got = f"got the same contents in {str(first)!r} and {str(second)!r}{more}"
        hint = "leave one out; --same counts both anyway"
        raise InvalidInputError("files", "must hold different rows", got, hint)


def _has_rows(file: Path, column: str) -> bool:
    """Return whether a file has a row; a file that cannot be read is reported later."""

    def work(connection: DuckDBPyConnection, parts: list[Source]) -> bool:
        return bool(connection.execute(f"SELECT 1 FROM {parts[0].scan} LIMIT 1").fetchall())

    try:
        return with_files(file, [column], work)
    except CalibrantError:
        return False


UNREAD = "unread"  # text cells that are not numbers
CONDITIONS = {
    "missing": "x IS NULL OR isnan(x)",
    "outside": "NOT isnan(x) AND NOT (x >= 0 AND x <= 1)",
    "negative": "NOT isnan(x) AND NOT (x >= 0 AND isfinite(x))",
    UNREAD: UNREAD,
}


FirstBad = tuple[int | None, str, int]  # its place, its text, and how many are bad


def _first_bad(
    connection: DuckDBPyConnection, part: Source, name: str, kind: str, notation: Notation
) -> FirstBad:
    column = part.columns[name]
    number = column.number(notation)
    unread = "false"
    if (text := column.text) is not None:
        a_word = sources.unless_missing(text, "false", "true")
        unread = f"({number}) IS NULL AND {text} IS NOT NULL AND {a_word}"
    cells = f"{number} AS x, coalesce({column.cell}, '') AS t, {unread} AS {UNREAD}"
    numbered = f"SELECT {cells}, row_number() OVER () - 1 AS place FROM {part.scan}"
    query = f"SELECT min(place), arg_min(t, place), count(*) FROM ({numbered}) WHERE {CONDITIONS[kind]}"
    return connection.execute(query).fetchall()[0]


def bad_rows(path: FileNames, name: str, kind: str, notation: Notation) -> Iterator[tuple[str, Place]]:
    """Yield the text and place of the first cell of a column that is bad in this way, file by file."""

    def first(connection: DuckDBPyConnection, parts: list[Source]) -> FirstBad:
        return _first_bad(connection, parts[0], name, kind, notation)

    for file in session.resolve_paths(path):
        place, text, count = with_files(file, [name], first)
        if place is not None:
            yield text, Place(place, count, str(file))


DATABASE_ENDINGS = (".duckdb", ".ddb")


def is_database(name: str) -> bool:
    return Path(name).suffix.lower() in DATABASE_ENDINGS


def copied_table(name: str, folder: Path, table: str | None, query: str | None) -> Path:
    import duckdb

    file, *others = session.resolve_paths(name)
    if others:
        raise InvalidInputError(f"file {name!r}", "must be one database", f"got {len(others) + 1}")
    if table is not None and query is not None:
        raise InvalidInputError("--table and --query", "must not be given together")
    target = folder / f"{file.stem}.parquet"
    settings = {"memory_limit": session.MAX_MEMORY, "temp_directory": str(folder)}
    try:
        with duckdb.connect(":memory:", config=session.LOCKED_SETTINGS) as connection:
            connection.execute(f"ATTACH {literal(str(file))} AS calibrant_rows (READ_ONLY)")
            connection.execute("USE calibrant_rows")
            session.lock(connection, [target], settings)
            try:
                rows = _table(connection, file, table) if query is None else query
                if [one.type for one in connection.extract_statements(rows)] != [duckdb.StatementType.SELECT]:
                    raise InvalidInputError("--query", "must be one SELECT", f"got {query!r}")
                # a view, because the query may end in ; and comments
                connection.execute(f"CREATE TEMP VIEW calibrant_chosen_rows AS {rows}")
                copy = f"COPY temp.calibrant_chosen_rows TO {literal(str(target))} (FORMAT parquet)"
                connection.execute(copy)
            except duckdb.Error as error:
                if query is None:
                    raise
                rule = "must be a SELECT that the database can run"  # which is not the fault of the file
                raise InvalidInputError("--query", rule, _reason(error)) from None
    except duckdb.Error as error:
        rule = "must be a DuckDB database that can be read"
        raise UnreadableFileError(f"file {str(file)!r}", rule, _reason(error)) from None
    return target


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".!")


def _table(connection: DuckDBPyConnection, file: Path, table: str | None) -> str:
    """Return the SELECT of a table or view; its schema may precede it, with a point."""
    listed = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'calibrant_rows' ORDER BY 1, 2"
    ).fetchall()
    known = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in listed}
    if table is None:
        got = f"it has {', '.join(known) or 'no tables'}"
        hint = "--table NAME or --query 'SELECT ...'"
        raise InvalidInputError(f"file {str(file)!r}", "needs a table or a query", got, hint)
    if table not in known:
        raise reject_name(f"table of {file}", table, list(known))
    return f"SELECT * FROM {'.'.join(map(identifier, known[table]))}"
