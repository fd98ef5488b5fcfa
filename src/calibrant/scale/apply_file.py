"""Apply a recalibration to files of any size: every column and row is kept as it was.

One Parquet file gets a column behind those it has; all others are streamed by DuckDB and written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.disk import check_target, scratch_folder, whole_file
from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.recalibration.result import Recalibration
from calibrant.recalibration.sql import Sql, is_probability, sql_number
from calibrant.scale.applied import Applied, refuse_none_usable
from calibrant.scale.dialect import read_dialect
from calibrant.scale.files import FileNames, in_pieces_or_whole
from calibrant.scale.large_files import run_with_progress
from calibrant.scale.located import kind_of, located
from calibrant.scale.map_query import made_beforehand, map_query
from calibrant.scale.parquet_append import append_map
from calibrant.scale.parquet_writer import PARQUET, null_count, parquet_options
from calibrant.scale.session import connect, identifier, literal, plain_names
from calibrant.scale.sources import SourceColumn, csv_scan, place_of, unreadable
from calibrant.scale.text_numbers import written_as

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "512MB"  # what DuckDB may hold before it spills to disk
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": ","}
PREDICTION = "calibrant prediction"  # the number that the map is applied to, inside the query


@dataclass(frozen=True, slots=True)
class _Scan:
    """How the files are read: an SQL table function, and their columns by the names they have in it."""

    scan: str
    columns: Sequence[SourceColumn]


def apply_file(
    fitted: Recalibration,
    source: FileNames,
    target: str | Path,
    *,
    prediction: str,
    into: str,
    progress: Callable[[float], object] | None = None,
) -> Applied:
    """Write all columns of `source` and the recalibrated prediction to `target`, whole or not at all.

    Text files are copied as text: nothing is re-typed. Rows without a prediction in [0, 1] get no value. A
    map that reads covariates takes them from the columns of the same names, which are held in memory.
    """
    files = located(source)
    _refuse_ending(Path(target))
    check_target(target, files)
    if Path(target).suffix.lower() in PARQUET:
        applied = append_map(fitted, files, Path(target), prediction=prediction, into=into, progress=progress)
        if applied is not None:
            return applied

    def written(parallel: bool) -> Applied:
        return _written(fitted, files, Path(target), prediction, into, progress, parallel)

    return in_pieces_or_whole(written)


def _written(
    fitted: Recalibration, files: list[Path], target: Path, prediction: str, into: str,
    progress: Callable[[float], object] | None, parallel: bool,
) -> Applied:  # fmt: skip
    import duckdb

    settings = {"memory_limit": MEMORY, "enable_progress_bar": "true", "enable_progress_bar_print": "false"}
    settings["progress_bar_time"] = "0"
    settings["disabled_optimizers"] = "join_order,build_side_probe_side"  # rows stay left of a map's lists
    if made_beforehand(fitted):
        settings["threads"] = "1"  # a positional join with a scan by several threads mixes rows up
    with scratch_folder() as spill, plain_names(files) as names, whole_file(target, files) as part:
        settings["temp_directory"] = str(spill)
        with connect([*names, part], **settings) as connection:
            try:
                read = _scan(connection, files, names, parallel)
                rows = _rows(read, prediction, into, files[0])
                mapped, value = map_query(connection, fitted, rows, identifier(PREDICTION), files, prediction)
                kept = ", ".join(f"{_cell(column)} AS {identifier(column.name)}" for column in read.columns)
                query = f"SELECT {kept}, {value} AS {identifier(into)} FROM ({mapped})"
                options = _writer(connection, target, query, names)
                copy = f"COPY ({query}) TO {literal(str(part))} ({options})"
                run_with_progress(connection, lambda: connection.execute(copy), progress)
                [(written,)] = connection.fetchall()
                nulls = None if made_beforehand(fitted) else null_count(connection, target, part)
                applied = _counted(connection, rows, fitted, int(written), nulls)
            except duckdb.Error as error:
                raise unreadable(files, error) from None
        refuse_none_usable(applied, prediction)
        return applied


def _scan(
    connection: DuckDBPyConnection, files: Sequence[Path], names: Sequence[str], parallel: bool
) -> _Scan:
    """Return how to read all columns; several files must have the same columns in the same order."""
    kinds = {kind_of(file) for file in files}
    if kinds == {"csv"}:
        dialects = [read_dialect(file) for file in files]
        _refuse_other_columns(files, [dialect.names for dialect in dialects])
        if len(set(dialects)) > 1:
            raise UnreadableFileError(sentence("files", "must be written alike", "got several separators"))
        columns = [SourceColumn(name, f"c{k}", "TEXT") for k, name in enumerate(dialects[0].names)]
        return _Scan(csv_scan(dialects[0], names, parallel), columns)
    if kinds != {"parquet"}:
        known = ", ".join((*SEPARATORS, *PARQUET))
        got = " and ".join(sorted(kinds))
        raise UnreadableFileError(sentence("files", f"must all end in one of {known}", f"got {got}"))
    described = []
    for name in names:
        query = f"DESCRIBE SELECT * FROM read_parquet({literal(name)}, hive_partitioning = false)"
        described.append([(str(row[0]), str(row[1])) for row in connection.execute(query).fetchall()])
    _refuse_other_columns(files, described)
    listed = ", ".join(map(literal, names))
    columns = [SourceColumn(name, identifier(name), kind) for name, kind in described[0]]
    return _Scan(f"read_parquet([{listed}], hive_partitioning = false)", columns)


def _refuse_other_columns(files: Sequence[Path], columns: Sequence[object]) -> None:
    for file, one in zip(files, columns, strict=True):
        if one != columns[0]:
            rule = f"must have the columns of {str(files[0])!r}, in the same order"
            raise UnreadableFileError(sentence(f"file {str(file)!r}", rule, "got others"))


def _rows(read: _Scan, prediction: str, into: str, file: Path) -> str:
    """Return the SQL of all columns and the prediction as a number; a name that is taken is refused."""
    names = [column.name for column in read.columns]
    for name in names:
        place_of(file, names, name)
    if prediction not in names:
        raise reject_name(f"column of {file}", prediction, names)
    if into.lower() in (name.lower() for name in names):
        hint = "name another with --as"
        raise InvalidInputError(sentence(f"column {into!r}", "must not be in the file already", hint=hint))
    number = read.columns[names.index(prediction)].number_or_nan(written_as.get())
    return f"SELECT *, {number} AS {identifier(PREDICTION)} FROM {read.scan}"


def _cell(column: SourceColumn) -> str:
    """Return a cell as it is written; the CSV writer puts quotes around empty text, so it is left out."""
    return f"nullif({column.sql}, '')" if column.kind == "TEXT" else column.sql


def _refuse_ending(target: Path) -> None:
    """Refuse a file whose ending does not say how it is written."""
    if target.suffix.lower() not in (*SEPARATORS, *PARQUET):
        known = ", ".join((*SEPARATORS, *PARQUET))
        got = f"got {target.suffix or 'no ending'!r}"
        raise UnreadableFileError(sentence(f"file {str(target)!r}", f"must end in one of {known}", got))


def _writer(connection: DuckDBPyConnection, target: Path, query: str, names: Sequence[str]) -> str:
    """Return the options with which the rows of a query are written."""
    ending = target.suffix.lower()
    if ending in PARQUET:
        return f"FORMAT parquet, {parquet_options(connection, query, names)}, USE_TMP_FILE false"
    return f"FORMAT csv, HEADER, DELIMITER {literal(SEPARATORS[ending])}, USE_TMP_FILE false"


def _counted(
    connection: DuckDBPyConnection, rows: str, fitted: Recalibration, written: int, nulls: int | None
) -> Applied:
    """Count rows without a usable prediction, and those outside the range that was seen.

    `nulls` is how many rows got no value, where the written file says so: then DuckDB need not read the row
    groups whose smallest and largest values lie within the range.
    """
    p = identifier(PREDICTION)
    usable = is_probability(Sql(p), "duckdb")
    outside = f"({p} < {sql_number(fitted.fit.low)} OR {p} > {sql_number(fitted.fit.high)})"
    if nulls is not None:
        query = f"SELECT count(*) FROM ({rows}) WHERE {outside} AND {usable}"
        [(beyond,)] = connection.execute(query).fetchall()
        return Applied(written, nulls, int(beyond))
    query = f"SELECT count(*) FILTER ({usable}), count(*) FILTER ({usable} AND {outside}) FROM ({rows})"
    [(used, beyond)] = connection.execute(query).fetchall()
    return Applied(written, written - int(used), int(beyond))
