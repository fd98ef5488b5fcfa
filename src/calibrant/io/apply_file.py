"""Apply a recalibration to files of any size: every other column and row stays as it was."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.files import atomic_path, scratch_folder
from calibrant.formatting import pluralize
from calibrant.io import apply_parquet, session, sources
from calibrant.io.csv_dialect import CsvDialect, line_break_of, opened, read_dialect
from calibrant.io.read import UNREAD, FileNames, bad_rows, in_pieces_or_whole, read_table
from calibrant.io.session import identifier, literal
from calibrant.io.sources import SourceColumn, csv_scan, default_notation
from calibrant.recalibration.result import Recalibration
from calibrant.results import Array

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_MEMORY = "512MB"  # what DuckDB may hold before it spills to disk
BATCH_ROWS = 100_000
BLOCK_BYTES = 2**22  # of CSV text that are read at a time
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": ","}
PARQUET_ENDINGS = (".parquet", ".pq")
NEW_TABLE, NEW_COLUMN = "calibrant_repaired", '"calibrant made"'
# What DuckDB reads and writes as the same type: physical types, and what they may be said to hold
KEPT_PHYSICAL_TYPES = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
KEPT_CONVERTED_TYPES = (
    None, "UTF8", "DATE", "TIMESTAMP_MICROS", "DECIMAL", "LIST", "MAP",
    *(f"{sign}INT_{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
)  # fmt: skip
TYPES_KEPT_AS_TEXT = ("TIMESTAMP_MILLIS", "TIME_MICROS", "TIME_MILLIS")  # but not as types
WITH_PYARROW = "pip install pyarrow, or leave this column out"

Progress = Callable[[float], object] | None


@dataclass(slots=True)
class ApplySummary:
    """How many rows were written, and how many of them had no usable prediction or one outside the range."""

    rows: int = 0
    unusable: int = 0
    outside: int = 0


@dataclass(slots=True)
class _Copy:
    """Files on their way to a new one with one more column, and what is known of the rows so far."""

    fitted: Recalibration
    files: list[Path]
    names: list[str]  # of the files, as DuckDB and pyarrow can open them
    part: Path
    ending: str
    prediction: str
    into: str
    progress: Progress
    parallel: bool
    ready: Array | None = None  # the new column, where covariates had to be read for it
    done: ApplySummary = field(default_factory=ApplySummary)

    def mapped(self, p: Array) -> Array:
        usable = (p >= 0) & (p <= 1)
        known = (p if usable.all() else p[usable]) + 0.0
        fit, done = self.fitted.fit, self.done
        if self.ready is not None:
            q = self.ready[done.rows : done.rows + len(p)]
        else:
            q = np.full(len(p), np.nan)
            if len(known):
                q[usable] = self.fitted.map.predict(known)
        done.rows += len(p)
        done.unusable += len(p) - len(known)
        done.outside += int(np.count_nonzero(known < fit.low) + np.count_nonzero(known > fit.high))
        return q


def apply_file(
    fitted: Recalibration,
    source: FileNames,
    target: str | Path,
    *,
    prediction: str,
    into: str,
    progress: Progress = None,
) -> ApplySummary:
    """Write all columns of `source` and the recalibrated prediction to `target`, whole or not at all."""
    files, ending = session.resolve_paths(source), Path(target).suffix.lower()
    known = ", ".join((*SEPARATORS, *PARQUET_ENDINGS))
    if ending not in (*SEPARATORS, *PARQUET_ENDINGS):
        got = f"got {Path(target).suffix or 'no ending'!r}"
        raise UnreadableFileError(f"file {str(target)!r}", f"must end in one of {known}", got)
    kinds = {session.file_format(file) for file in files}
    if kinds not in ({"csv"}, {"parquet"}):
        raise UnreadableFileError(
            "files", f"must all end in one of {known}", f"got {' and '.join(sorted(kinds))}"
        )
    if fitted.columns is not None:
        hint = "use predict in Python, or the SQL that `calibrant recalibrate MAP --sql -p a,b,c` writes"
        raise InvalidInputError("apply", "takes maps of two classes", hint=hint)

    def written(parallel: bool) -> ApplySummary:
        with session.plain_names(files) as names, atomic_path(target, files) as part:
            return _written(_Copy(fitted, files, names, part, ending, prediction, into, progress, parallel))

    return in_pieces_or_whole(written)


def _written(copy: _Copy) -> ApplySummary:
    parquet = session.file_format(copy.files[0]) == "parquet"
    if copy.fitted.map.needs_covariates:
        copy.ready = _with_covariates(copy)
    if parquet and copy.ending in PARQUET_ENDINGS and find_spec("pyarrow") is not None:
        apply_parquet.append_column(
            copy.files, copy.names, copy.part, prediction=copy.prediction, into=copy.into,
            mapped=copy.mapped, progress=copy.progress,
        )  # fmt: skip
    elif not parquet and _keeps_bytes(dialect := _dialect(copy), copy):
        _append_to_text(copy, dialect)
    else:
        _copy_by_duckdb(copy)
    done = copy.done
    if done.unusable:  # missing or outside [0, 1] get no value; text is refused, as everywhere
        for text, place in bad_rows(copy.files, copy.prediction, UNREAD, default_notation.get()):
            raise sources.not_a_number(copy.prediction, text, place)
    if done.rows and done.unusable == done.rows:
        got = f"got none in {pluralize(done.rows, 'row')}"
        raise InvalidInputError(f"column {copy.prediction!r}", "must hold probabilities", got)
    return done


def _with_covariates(copy: _Copy) -> Array:
    numbers, columns = read_table(copy.files, [copy.prediction], copy.fitted.map.column_names)
    p = numbers[copy.prediction]
    usable = (p >= 0) & (p <= 1)
    q = np.full(len(p), np.nan)
    if usable.any():
        kept = {name: column[usable] for name, column in columns.items()}
        q[usable] = copy.fitted.predict(p[usable], kept)
    return q


def _dialect(copy: _Copy) -> CsvDialect:
    dialects = [read_dialect(file, [copy.prediction]) for file in copy.files]
    apply_parquet.refuse_other_columns(copy.files, [dialect.names for dialect in dialects])
    if len(set(dialects)) > 1:
        raise UnreadableFileError("files", "must be written alike", "got several separators")
    sources.place_of(copy.files[0], dialects[0].names, copy.prediction)
    apply_parquet.refuse_taken_name(dialects[0].names, copy.into)
    return dialects[0]


def _keeps_bytes(dialect: CsvDialect, copy: _Copy) -> bool:
    """Return whether cells can be copied byte for byte: the target has the separators of the source."""
    packed = any(file.suffix.lower() == ".zst" for file in copy.files)  # which Python 3.11 cannot unpack
    return not packed and copy.ending in (".tsv" if dialect.separator == "\t" else ".csv", ".txt")


def _append_to_text(copy: _Copy, dialect: CsvDialect) -> None:
    notation, total = default_notation.get(), sum(file.stat().st_size for file in copy.files)
    place = sources.place_of(copy.files[0], dialect.names, copy.prediction)
    number = SourceColumn(copy.prediction, f"c{place}", "TEXT").number_or_nan(notation)
    with copy.part.open("wb") as out:
        before = 0
        for file, name in zip(copy.files, copy.names, strict=True):
            with opened(file) as text, _reading([name]) as connection:
                writer = RecordWriter(text, dialect.separator, line_break_of(file))
                writer.copy_header(out if file is copy.files[0] else None, copy.into)
                query = f"SELECT {number} AS x FROM {csv_scan(dialect, [name], copy.parallel)}"
                for p in _batches(connection, query, copy.files):
                    writer.copy_rows(out, number_cells(copy.mapped(p), notation.decimal, dialect.separator))
                    if copy.progress is not None:
                        copy.progress(min(1.0, (before + os.lseek(text.fileno(), 0, os.SEEK_CUR)) / total))
                writer.check_end()
            before += file.stat().st_size


def _batches(connection: DuckDBPyConnection, query: str, files: list[Path]) -> Iterator[Array]:
    """Yield the column `x` of a query in the order of the rows; without pyarrow all at once."""
    import duckdb

    try:
        if find_spec("pyarrow") is None:
            yield sources.filled(connection.execute(query).fetchnumpy()["x"])
            return
        for batch in session.arrow_batches(connection.sql(query), BATCH_ROWS):
            yield np.asarray(batch.column(0).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (duckdb.Error, OSError, ValueError) as error:  # the last two are Arrow's
        raise sources.unreadable(files, error) from None


@contextmanager
def _reading(allowed: Sequence[str | Path], **more: str) -> Iterator[DuckDBPyConnection]:
    with scratch_folder() as spill:
        more |= {"memory_limit": MAX_MEMORY, "temp_directory": str(spill)}
        with session.connect(allowed, **session.PROGRESS_SETTINGS, **more) as connection:
            yield connection


def _copy_by_duckdb(copy: _Copy) -> None:
    import duckdb

    allowed: list[str | Path] = [*copy.names, copy.part]
    # one thread: a positional join with a scan by several mixes rows up
    with scratch_folder() as folder, _reading(allowed, threads="1") as connection:
        try:
            scan, columns, keys = _scan(connection, copy)
        except duckdb.Error as error:
            raise sources.unreadable(copy.files, error) from None
        # the CSV writer puts quotes around empty text, so it is left out
        written = [f"nullif({one.sql}, '')" if one.kind == "TEXT" else one.sql for one in columns]
        names = [column.name for column in columns]
        cells = ", ".join(f"{cell} AS {identifier(name)}" for cell, name in zip(written, names, strict=True))
        number = columns[names.index(copy.prediction)].number_or_nan(default_notation.get())
        path = folder / "new_values"
        with path.open("wb") as file:  # new predictions go to disk, and are read like an array
            for p in _batches(connection, f"SELECT {number} AS x FROM {scan}", copy.files):
                file.write(copy.mapped(p).tobytes())
        new_values = np.memmap(path, dtype=np.float64, mode="r") if path.stat().st_size else np.empty(0)
        connection.register(NEW_TABLE, {NEW_COLUMN.strip('"'): new_values})
        value = f"CASE WHEN isnan({NEW_COLUMN}) THEN NULL ELSE {NEW_COLUMN} END AS {identifier(copy.into)}"
        query = f"SELECT {cells}, {value} FROM {scan} POSITIONAL JOIN {NEW_TABLE}"
        options = "FORMAT parquet"
        if copy.ending not in PARQUET_ENDINGS:
            options = f"FORMAT csv, HEADER, DELIMITER {literal(SEPARATORS[copy.ending])}"
        elif keys:
            pairs = ", ".join(f"{literal(key)}: {literal(value)}" for key, value in keys.items())
            options = f"FORMAT parquet, KV_METADATA {{{pairs}}}"
        command = f"COPY ({query}) TO {literal(str(copy.part))} ({options}, USE_TMP_FILE false)"
        try:
            session.run_with_progress(connection, lambda: connection.execute(command), copy.progress)
            if copy.ending in PARQUET_ENDINGS:
                made_names = sources.top_level_names(connection, str(copy.part))
                _refuse_renamed(copy.files[0], [*names, copy.into], made_names)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0].replace(str(copy.part), "the new file")
            if "No space left" in str(error):
                raise OSError(errno.ENOSPC, "No space left on device") from None
            if str(copy.part) in str(error):
                raise OSError(errno.ENOSPC, reason) from None  # atomic_path names the file
            raise sources.unreadable(copy.files, error) from None


def _scan(connection: DuckDBPyConnection, copy: _Copy) -> tuple[str, list[SourceColumn], dict[str, str]]:
    """Return the scan of all columns in the order of the rows, the columns, and the keys of the footer."""
    files, names = copy.files, copy.names
    if session.file_format(files[0]) == "csv":
        dialect = _dialect(copy)
        columns = [SourceColumn(name, f"c{k}", "TEXT") for k, name in enumerate(dialect.names)]
        return csv_scan(dialect, names, copy.parallel), columns, {}
    described = []
    for file, name in zip(files, names, strict=True):
        query = f"DESCRIBE SELECT * FROM read_parquet({literal(name)}, hive_partitioning = false)"
        described.append([(str(row[0]), str(row[1])) for row in connection.execute(query).fetchall()])
        _refuse_changed_by_duckdb(connection, file, name, [column for column, _ in described[-1]], copy)
    apply_parquet.refuse_other_columns(files, described)
    columns = [SourceColumn(name, identifier(name), kind) for name, kind in described[0]]
    shown = [column.name for column in columns]
    sources.place_of(files[0], shown, copy.prediction)
    apply_parquet.refuse_taken_name(shown, copy.into)
    keys = _footer_keys(connection, files[0], names[0], copy)
    return f"read_parquet([{', '.join(map(literal, names))}], hive_partitioning = false)", columns, keys


def _refuse_changed_by_duckdb(
    connection: DuckDBPyConnection, file: Path, name: str, shown: list[str], copy: _Copy
) -> None:
    _refuse_renamed(file, sources.top_level_names(connection, name), shown)
    if find_spec("pyarrow") is not None:
        apply_parquet.refuse_durations(file, name)  # to DuckDB they are numbers
    query = f"SELECT name, type, converted_type, logical_type, precision FROM parquet_schema({literal(name)})"
    for column, physical, converted, logical, precision in connection.execute(query).fetchall()[1:]:
        typed = physical in KEPT_PHYSICAL_TYPES and converted in KEPT_CONVERTED_TYPES
        known = physical is None or (typed and (precision or 0) <= 38)
        text = copy.ending not in PARQUET_ENDINGS and converted in TYPES_KEPT_AS_TEXT
        if not (known or text) or "Float16" in str(logical):
            got = f"got {logical or converted or physical}"
            raise apply_parquet.changed(file, column, got, WITH_PYARROW)


def _footer_keys(connection: DuckDBPyConnection, file: Path, name: str, copy: _Copy) -> dict[str, str]:
    """Return the keys of a footer that DuckDB can write again; types that only Arrow knows are refused."""
    if copy.ending not in PARQUET_ENDINGS:
        return {}
    query = f"SELECT decode(key), decode(value) FROM parquet_kv_metadata({literal(name)})"
    keys = {str(key): str(value) for key, value in connection.execute(query).fetchall()}
    if "ARROW:schema" in keys:
        rule, got = "needs pyarrow to be written unchanged", "got types of Arrow"
        raise UnreadableFileError(f"file {str(file)!r}", rule, got, "pip install pyarrow")
    spark = apply_parquet.SPARK_SCHEMA.decode()
    if spark in keys:
        keys[spark] = apply_parquet.extended_spark_schema(keys[spark], copy.into)
    return keys


def _refuse_renamed(file: Path, names: list[str], after: list[str]) -> None:
    for name, renamed in zip(names, after, strict=False):
        if name != renamed:
            raise apply_parquet.changed(file, name, f"got a name that would become {renamed!r}", WITH_PYARROW)


class RecordWriter:
    """Copies the records of CSV text one by one, each with one more cell at its end."""

    def __init__(self, source: IO[bytes], separator: str, line_break: bytes) -> None:
        self._separator, self._break = separator.encode(), line_break
        # a complete record: cells in quotes, or cells that do not begin with a quote
        mark = re.escape(self._separator)
        cell = rb'(?: *+"(?:[^"]|"")*+" *+|(?! *+")[^%s]*+)' % mark
        self._record = re.compile(cell + rb"(?:" + mark + cell + rb")*+", re.DOTALL)
        self._records = self._split(source)

    def copy_header(self, out: IO[bytes] | None, name: str) -> None:
        """Copy everything up to the header, and the header with one more name; drop both without `out`."""
        for record in self._records:
            header = record.removeprefix(b"\xef\xbb\xbf")
            if out is not None:
                text = io.StringIO()
                csv.writer(text, delimiter=self._separator.decode(), lineterminator="").writerow([name])
                added = self._separator + text.getvalue().encode(errors="surrogateescape")
                out.write(record + (added if header else b"") + self._break)
            if header:
                return

    def copy_rows(self, out: IO[bytes], cells: list[bytes]) -> None:
        """Copy as many rows as there are cells, adding one of them to each; empty lines stay empty."""
        while cells:
            records = list(islice(self._records, len(cells)))
            if not records:
                raise _disagreement()
            rows = [record for record in records if record]
            lines: Iterable[bytes] = map(self._separator.join, zip(rows, cells, strict=False))
            if len(rows) < len(records):
                longer = iter(list(lines))
                lines = [next(longer) if record else b"" for record in records]
            out.write(self._break.join(lines) + self._break)
            cells = cells[len(rows) :]

    def check_end(self) -> None:
        """Refuse rows that were not copied: the file changed while it was read."""
        if any(self._records):
            raise _disagreement()

    def _split(self, source: IO[bytes]) -> Iterator[bytes]:
        """Yield the records without their line breaks; quotes may hold line breaks of their own."""

        def lines() -> Iterator[bytes]:
            rest = b""
            while block := source.read(BLOCK_BYTES):
                *whole, rest = (rest + block).split(self._break)
                yield from whole
            if rest:
                yield rest

        lines_so_far: list[bytes] = []
        for line in lines():
            if not lines_so_far and b'"' not in line:
                yield line
                continue
            lines_so_far.append(line)
            if b'"' in line and self._record.fullmatch(whole := self._break.join(lines_so_far)):
                yield whole
                lines_so_far = []
        if lines_so_far:
            yield self._break.join(lines_so_far)


def number_cells(values: Array, decimal: str, separator: str) -> list[bytes]:
    """Return numbers as cells that read back to the last bit, empty for NaN."""
    texts = ["" if value != value else repr(value) for value in values.tolist()]
    if decimal == ",":
        marked = [text.replace(".", ",") for text in texts]
        texts = [f'"{text}"' if "," in text else text for text in marked] if separator == "," else marked
    return [text.encode() for text in texts]


def _disagreement() -> UnreadableFileError:
    return UnreadableFileError("rows", "must stay as they are while they are read", "got others")
