"""Add a column to Parquet files with pyarrow: all other columns keep their names, types and values."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.io.session import connect
from calibrant.io.sources import SourceColumn, default_notation, filled, place_of
from calibrant.results import Array

MAX_PIECE_BYTES = 2**26  # decoded size of the rows that are read and written at once, as one row group
ASSUMED_TEXT_BYTES = 24  # assumed size of a value whose type has no fixed width
ARROW_SCHEMA = b"ARROW:schema"
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
INHERITED_FLAGS = ("is_from_converted_type", "force_set_converted_type")


def append_column(
    files: Sequence[Path],
    names: Sequence[str],
    part: Path,
    *,
    prediction: str,
    into: str,
    mapped: Callable[[Array], Array],
    progress: Callable[[float], object] | None = None,
) -> None:
    """Write Parquet files to `part` with one more column: `mapped(prediction)`, null for NaN."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        readers = [stack.enter_context(_opened(*pair)) for pair in zip(files, names, strict=True)]
        first = readers[0]
        place = place_of(files[0], first.schema_arrow.names, prediction)
        refuse_taken_name(first.schema_arrow.names, into)
        refuse_other_columns(files, [reader.schema_arrow for reader in readers])
        schema, keys = _extended_schema(first, into)
        total, written = max(1, sum(reader.metadata.num_rows for reader in readers)), 0
        options = _writer_options(first, prediction, into)
        sink = stack.enter_context(part.open("wb"))
        with pq.ParquetWriter(sink, schema, **options) as writer:
            for table in _read_ahead(files, names, readers):
                q = mapped(_numbers(table.column(place), prediction))
                column = pa.array(q, mask=np.isnan(q), type=pa.float64())
                extended = pa.table([*table.columns, column], schema=schema)
                writer.write_table(extended, row_group_size=max(1, len(extended)))
                written += len(extended)
                if progress is not None:
                    progress(written / total)
            if keys:
                writer.add_key_value_metadata(keys)
        sink.flush()
        for file, reader in zip(files, readers, strict=True):
            with pq.ParquetFile(part) as result:
                _refuse_changed(file, reader, result)


def _numbers(column: Any, prediction: str) -> Array:
    """Return an Arrow column as floats, NaN for missing; all but floats are read by DuckDB, as files are."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    notation = default_notation.get()
    if pa.types.is_floating(column.type) and prediction not in notation.scaled:
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    with connect() as connection:
        connection.register("cells", pa.table({"x": column}))
        [(_, kind, *_)] = connection.execute("DESCRIBE SELECT x FROM cells").fetchall()
        number = SourceColumn(prediction, "x", str(kind)).number_or_nan(notation)
        return filled(connection.execute(f"SELECT {number} AS x FROM cells").fetchnumpy()["x"])


@contextmanager
def _opened(file: Path, name: str, **options: Any) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with _read_errors(file):
        reader = pq.ParquetFile(name, pre_buffer=False, **options)
    with reader:
        yield reader


@contextmanager
def _read_errors(file: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        subject = f"file {str(file)!r}"
        raise UnreadableFileError(subject, "must be readable as parquet", reason) from None


def refuse_other_columns(files: Sequence[Path], columns: Sequence[object]) -> None:
    for file, one in zip(files, columns, strict=True):
        if one != columns[0]:
            rule = f"must have the columns of {str(files[0])!r}, in the same order"
            raise UnreadableFileError(f"file {str(file)!r}", rule, "got other columns")


def refuse_taken_name(names: Sequence[str], into: str) -> None:
    if into.lower() in (name.lower() for name in names):
        hint = "name another with --as"
        raise InvalidInputError(f"column {into!r}", "must not be in the file already", hint=hint)


def refuse_durations(file: Path, name: str) -> None:
    """Refuse columns of durations, which only Arrow can tell from whole numbers."""
    import pyarrow as pa

    with _opened(file, name) as reader:
        for field in reader.schema_arrow:
            if pa.types.is_duration(field.type):
                raise changed(file, field.name, f"got {field.type}")


def _extended_schema(reader: Any, into: str) -> tuple[Any, dict[bytes, bytes]]:
    import pyarrow as pa

    field = pa.field(into, pa.float64())
    keys = dict(reader.metadata.metadata or {})
    if ARROW_SCHEMA in keys:
        stored = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(keys[ARROW_SCHEMA])))
        keys[ARROW_SCHEMA] = base64.b64encode(stored.append(field).serialize().to_pybytes())
    if SPARK_SCHEMA in keys:  # Spark reads the columns that this key lists and no others
        keys[SPARK_SCHEMA] = extended_spark_schema(keys[SPARK_SCHEMA], into).encode()
    return reader.schema_arrow.append(field).with_metadata(None), keys


def extended_spark_schema(text: str | bytes, into: str) -> str:
    """Return the list of columns that Spark keeps in the footer, with a column of numbers at its end."""
    listed = json.loads(text)
    listed["fields"].append({"name": into, "type": "double", "nullable": True, "metadata": {}})
    return json.dumps(listed, separators=(",", ":"))


def _writer_options(reader: Any, prediction: str, into: str) -> dict[str, Any]:
    import pyarrow.parquet as pq

    leaves = [reader.schema.column(k) for k in range(len(reader.schema))]
    logical = [json.loads(leaf.logical_type.to_json()) for leaf in leaves]
    options: dict[str, Any] = {
        "version": "2.6",
        "store_schema": False,  # the extended schema is among the keys where there was one
        "use_deprecated_int96_timestamps": any(leaf.physical_type == "INT96" for leaf in leaves),
        "use_compliant_nested_type": not any(".list.item" in leaf.path for leaf in leaves),
        "store_decimal_as_integer": any(
            one["Type"] == "Decimal" and leaf.physical_type.startswith("INT")
            for leaf, one in zip(leaves, logical, strict=True)
        ),
        "write_time_adjusted_to_utc": any(
            one["Type"] == "Time" and one.get("isAdjustedToUTC") for one in logical
        ),
    }
    if reader.metadata.num_row_groups:
        group = reader.metadata.row_group(0)
        chunks = [group.column(k) for k in range(group.num_columns)]
        known = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
        codecs = {c.path_in_schema: known.get(c.compression, c.compression.lower()) for c in chunks}
        codecs[into] = codecs.get(prediction, "snappy")
        options |= {
            "compression": codecs,
            "use_dictionary": [chunk.path_in_schema for chunk in chunks if _needs_dictionary(chunk)],
            "write_statistics": [into, *(chunk.path_in_schema for chunk in chunks if chunk.is_stats_set)],
            "write_page_index": any(getattr(chunk, "has_column_index", False) for chunk in chunks),
            "sorting_columns": getattr(group, "sorting_columns", None) or None,
        }
    accepted = inspect.signature(pq.ParquetWriter.__init__).parameters  # older versions have fewer
    return {name: value for name, value in options.items() if name in accepted}


def _needs_dictionary(chunk: Any) -> bool:
    """Return whether a column had a dictionary that saved space: one of numbers takes time and may not."""
    width = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "INT96": 12}.get(chunk.physical_type)
    saves = width is None or chunk.total_uncompressed_size < chunk.num_values * width
    return chunk.has_dictionary_page and saves


def _read_ahead(files: Sequence[Path], names: Sequence[str], readers: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows in pieces; another thread reads the next piece while this one is written."""
    pieces = _pieces(files, names, readers)
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, pieces, None)
        while (table := ahead.result()) is not None:
            ahead = pool.submit(next, pieces, None)
            yield table


def _pieces(files: Sequence[Path], names: Sequence[str], readers: Sequence[Any]) -> Iterator[Any]:
    """Yield tables, each to be written as a row group: every chunk of a column costs time."""
    import pyarrow as pa

    for file, name, reader in zip(files, names, readers, strict=True):
        _refuse_out_of_range(file, name, reader)
        with _read_errors(file):
            # this is a thread already
            for batch in reader.iter_batches(batch_size=_rows_of_a_piece(reader), use_threads=False):
                yield pa.Table.from_batches([batch])


def _rows_of_a_piece(reader: Any) -> int:
    """Return how many rows to hold at once, by the most bytes that one of them takes decoded."""
    groups = (reader.metadata.row_group(number) for number in range(reader.metadata.num_row_groups))
    stored = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
    return max(1, MAX_PIECE_BYTES // (stored + sum(map(_width, reader.schema_arrow.types))))


def _width(kind: Any) -> int:
    try:
        return int(1 + kind.bit_width // 8)
    except ValueError:
        return ASSUMED_TEXT_BYTES


def _refuse_out_of_range(file: Path, name: str, reader: Any) -> None:
    """Refuse INT96 times that 64 bits of nanoseconds cannot hold: pyarrow would wrap them around."""
    import pyarrow as pa

    leaves = [reader.schema.column(k) for k in range(len(reader.schema))]
    columns = list(dict.fromkeys(leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"))
    if not columns:
        return
    with _opened(file, name, coerce_int96_timestamp_unit="us") as coarse, _read_errors(file):
        for number in range(coarse.metadata.num_row_groups):
            table = coarse.read_row_group(number, columns=columns)
            for column in table.column_names:
                try:
                    table[column].cast(reader.schema_arrow.field(column).type)
                except pa.ArrowInvalid:
                    got = "got a time that nanoseconds in 64 bits cannot hold"
                    raise changed(file, column, got) from None


def _refuse_changed(file: Path, source: Any, result: Any) -> None:
    for place in range(len(source.schema)):
        before, after = source.schema.column(place), result.schema.column(place)
        if _description(before) != _description(after):
            raise changed(file, before.path, f"got {_shown(before)}, which would become {_shown(after)}")
    for before, after in zip(source.schema_arrow, result.schema_arrow, strict=False):
        if not before.equals(after, check_metadata=True):
            raise changed(file, before.name, f"got {before.type}, which would become {after.type}")


def _description(leaf: Any) -> tuple[Any, ...]:
    logical = json.loads(leaf.logical_type.to_json())
    kind = {key: value for key, value in logical.items() if key not in INHERITED_FLAGS}
    if kind["Type"] == "Int" and kind["isSigned"] and f"INT{kind['bitWidth']}" == leaf.physical_type:
        kind = {"Type": "None"}  # two ways to write the same type
    physical = "" if kind["Type"] == "Decimal" else leaf.physical_type
    return leaf.path, leaf.max_definition_level, leaf.max_repetition_level, physical, kind


def _shown(leaf: Any) -> str:
    kind = json.loads(leaf.logical_type.to_json())["Type"]
    return f"{leaf.path} ({leaf.physical_type}{'' if kind == 'None' else f', {kind}'})"


def changed(
    file: Path, column: str, got: str, hint: str = "leave this column out, or convert it"
) -> UnreadableFileError:
    subject, rule = f"column {column!r} of {str(file)!r}", "must be of a type that can be written unchanged"
    return UnreadableFileError(subject, rule, got, hint)
