"""Sketches on disk: a compact form, Parquet and Arrow, versioned, every field checked before it is used."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import MissingDependencyError, UnreadableFileError
from calibrant.files import atomic_path
from calibrant.io.session import connect, identifier, literal, plain_names
from calibrant.sketch.cells import SUMS, CellTable, Contents, cell_codes, check_cells, codes_in_a_group

RELATIVE_ROUNDING = 1e-6  # relative: sums are taken in any order


def not_a_sketch(given: str) -> UnreadableFileError:
    return UnreadableFileError("sketch", "must be as calibrant writes it", given)


def check_labels(by: tuple[Any, ...], labels: tuple[tuple[Any, ...], ...]) -> None:
    if not all(isinstance(name, str) for name in by) or len(set(by)) != len(by):
        raise not_a_sketch("got columns of groups that are not distinct names")
    for label in labels:
        known = all(item is None or (isinstance(item, (str, int, float)) and item == item) for item in label)
        if len(label) != len(by) or not known:
            raise not_a_sketch(f"got the label {label!r}")
    if len(set(labels)) != len(labels) or (not by and labels != ((),)):
        raise not_a_sketch("got labels twice")


def check_table(table: CellTable, cells: int) -> None:
    if np.any(np.diff(table.keys) <= 0):
        raise not_a_sketch("got a cell twice, or out of order")
    if np.any(table.counts <= 0):
        raise not_a_sketch("got a cell without records")
    if not np.all(np.isfinite(table.sums)) or np.any(table.sums < 0):
        raise not_a_sketch("got a sum that is negative or not finite")
    good = table.keys % codes_in_a_group(cells) < cells + 2
    if table.sums[:, ~good].any():
        raise not_a_sketch("got sums of rows that were left out")
    table = table[good]
    inside = (table.low >= 0) & (table.low <= table.high) & (table.high <= 1)
    if not np.all(inside):  # also where one is not a number
        raise not_a_sketch("got predictions outside of [0, 1], or the smallest above the largest")
    codes = table.keys % codes_in_a_group(cells)
    if np.any(cell_codes(table.low, cells) != codes) or np.any(cell_codes(table.high, cells) != codes):
        raise not_a_sketch("got predictions outside of their cell")
    _check_sums(table)


def _check_sums(table: CellTable) -> None:
    w, ww, wv, wy, wyv, spread, null, mixed = table.sums
    more, n = 1 + RELATIVE_ROUNDING, table.counts.astype(np.float64)
    tiny, root = 1e-300, 1e-150
    rules = (
        w > 0,
        wv <= w * table.high * more + tiny,
        wv * more + tiny >= w * table.low,
        wy <= w * more,
        wyv <= np.minimum(wv, wy * table.high) * more + tiny,
        spread <= w * more / 4,
        null <= ww * more / 4 + tiny,
        np.sqrt(ww) <= w * more + root,  # roots, because the squares of large weights overflow
        np.sqrt(ww) * np.sqrt(n) * more + root >= w,
        mixed <= n * more / 4,
    )
    if not all(np.all(rule) for rule in rules):
        raise not_a_sketch("got sums that do not belong together")


VERSION = 2
READABLE_VERSIONS = (1, 2)  # version 1 had no checksum
MAX_UNPACKED_BYTES = 2**31  # of a sketch after unpacking
TOO_LARGE = f"got more than {MAX_UNPACKED_BYTES:,} bytes after unpacking"
READING_ERRORS = (
    ValueError, KeyError, EOFError, AttributeError, TypeError, OverflowError, MemoryError, RecursionError,
    RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, SyntaxError,
)  # fmt: skip
HEADER = "calibrant_sketch"
DERIVED_SUMS = {"w": "count", "ww": "count", "wwv(1-v)": "wv(1-v)"}  # left out where no record has a weight

Columns = dict[str, npt.NDArray[Any]]


def save_sketch(sketch: Contents, path: Path) -> None:
    with atomic_path(path) as part:
        if path.suffix != ".parquet":
            part.write_bytes(to_bytes(sketch))
            return
        columns = _columns(sketch)
        keys = f"KV_METADATA {{{HEADER}: {literal(_header(sketch, columns))}}}"
        options = f"FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, {keys}"
        with connect([part]) as connection:
            connection.register("cells", columns)
            connection.execute(f"COPY (SELECT * FROM cells) TO {literal(str(part))} ({options})")


def load(path: Path) -> Contents:
    try:
        if path.exists() and not path.is_file():  # a device may never end
            raise not_a_sketch("got a folder, device or pipe")
        with path.open("rb") as file:
            start = file.read(4)
        if path.stat().st_size > MAX_UNPACKED_BYTES:
            raise not_a_sketch(f"got more than {MAX_UNPACKED_BYTES:,} bytes")
        return _read_parquet(path) if start == b"PAR1" else from_bytes(path.read_bytes())
    except OSError as error:
        got, hint = error.strerror or str(error), ""
    except UnreadableFileError as error:
        got, hint = error.got or str(error).rstrip("."), "calibrant sketch makes one of rows"
    raise UnreadableFileError(f"file {str(path)!r}", "must be a sketch", got, hint)


def to_bytes(sketch: Contents) -> bytes:
    buffer = io.BytesIO()
    columns = _columns(sketch)
    header = np.frombuffer(_header(sketch, columns).encode(), dtype=np.uint8)
    arrays: dict[str, Any] = {HEADER: header, **columns}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Contents:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            unpacked = sum(entry.file_size for entry in stored.zip.infolist())
            if unpacked > MAX_UNPACKED_BYTES:
                raise not_a_sketch(TOO_LARGE)
            columns = dict(stored)
        header = columns.pop(HEADER).tobytes().decode()
        [(rows,)] = {column.shape for column in columns.values()}  # as many for each
    except UnreadableFileError:
        raise
    except READING_ERRORS:
        raise not_a_sketch("got another format, or a damaged file") from None
    return _checked(header, list(columns), rows, unpacked, columns.__getitem__)


def to_arrow(sketch: Contents) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        hint = "pip install pyarrow"
        raise MissingDependencyError("Arrow tables", "need pyarrow", hint=hint) from None
    columns = _columns(sketch)
    return pa.table(columns).replace_schema_metadata({HEADER: _header(sketch, columns)})


def from_arrow(table: Any) -> Contents:
    header = (table.schema.metadata or {}).get(HEADER.encode())
    if header is None:
        raise not_a_sketch("got a table without its header")
    text, names = header.decode(errors="replace"), table.column_names
    return _checked(text, names, table.num_rows, 0, lambda name: table[name].to_numpy())


def _read_parquet(path: Path) -> Contents:
    """Read Parquet, checked column by column first: a small file may unpack to gigabytes."""
    import duckdb

    try:
        with plain_names([path]) as [name], connect([name]) as connection:
            scan = f"read_parquet({literal(name)}, hive_partitioning = false)"

            def rows_of(query: str) -> list[Any]:
                return connection.execute(query).fetchall()

            def column(field: str) -> npt.NDArray[Any]:
                cells = connection.execute(f"SELECT {identifier(field)} AS x FROM {scan}").fetchnumpy()["x"]
                if np.ma.getmaskarray(cells).any():
                    raise not_a_sketch("got missing values")
                return np.asarray(np.ma.getdata(cells))

            stored = rows_of(f"SELECT decode(value) FROM {_footer(name)}")
            if not stored:
                raise not_a_sketch("got Parquet without its header")
            sizes = f"SELECT sum(total_uncompressed_size) FROM parquet_metadata({literal(name)})"
            [(unpacked,)] = rows_of(sizes)
            [(rows,)] = rows_of(f"SELECT sum(num_rows) FROM parquet_file_metadata({literal(name)})")
            names = [str(row[0]) for row in rows_of(f"DESCRIBE SELECT * FROM {scan}")]
            return _checked(str(stored[0][0]), names, int(rows or 0), int(unpacked or 0), column)
    except duckdb.Error as error:
        raise not_a_sketch(str(error).splitlines()[0]) from None


def _footer(name: str) -> str:
    return f"parquet_kv_metadata({literal(name)}) WHERE key = '{HEADER}'"


def is_stored_sketch(path: Path) -> bool:
    import duckdb

    try:
        with plain_names([path]) as [name], connect([name]) as connection:
            return bool(connection.execute(f"SELECT count(*) FROM {_footer(name)}").fetchall()[0][0])
    except duckdb.Error:
        return False


def _header(sketch: Contents, columns: Columns) -> str:
    about = _about(sketch) | ({"parts": sketch.parts} if sketch.parts else {})
    return json.dumps({**about, "checksum": _checksum(about, sorted(columns.items()))})


def _about(sketch: Contents) -> dict[str, Any]:
    return {"version": VERSION, "cells": sketch.cells, "by": sketch.by, "labels": sketch.labels}


def content_id(sketch: Contents) -> str:
    """Return a digest of the sums: equal for equal ones, whatever the format, the name, or the parts."""
    return _checksum(_about(sketch), sorted(_columns(sketch).items()))


def _checksum(about: Mapping[str, Any], columns: Iterable[tuple[str, npt.NDArray[Any]]]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, column in columns:
        exact = column.astype("<i8" if column.dtype.kind in "iu" else "<f8")
        digest.update(name.encode() + b"\0" + exact.tobytes())
    return digest.hexdigest()


def _columns(sketch: Contents) -> Columns:
    """Return one column per field; sums that are 0 throughout or follow from others are left out."""
    table = sketch.table
    group, cell = np.divmod(table.keys, codes_in_a_group(sketch.cells))
    columns: Columns = {"group": group.astype(np.int32), "cell": cell.astype(np.int32), "count": table.counts}
    columns |= {**dict(zip(SUMS, table.sums, strict=True)), "low": table.low, "high": table.high}
    good, left_out = cell < sketch.cells + 2, set() if columns["mixed"].any() else {"mixed"}
    if all(np.array_equal(columns[name][good], columns[known][good]) for name, known in DERIVED_SUMS.items()):
        left_out |= set(DERIVED_SUMS)
    return {name: column for name, column in columns.items() if name not in left_out}


def _parsed_header(text: str) -> dict[str, Any]:
    try:
        about = dict(json.loads(text))
        version = about["version"]
        if version not in READABLE_VERSIONS or isinstance(version, bool):
            raise not_a_sketch(f"got version {version!r}, this calibrant reads {VERSION}")
        check_cells(about["cells"])
        check_labels(tuple(about["by"]), tuple(tuple(label) for label in about["labels"]))
        if not all(
            isinstance(part, str) and re.fullmatch("[0-9a-f]+", part) for part in about.get("parts", ())
        ):
            raise not_a_sketch("got parts that are not content ids")
    except UnreadableFileError:
        raise
    except READING_ERRORS:  # includes calibrant's own errors
        raise not_a_sketch("got a damaged header") from None
    return about


def _checked(
    header: str, names: Sequence[str], rows: int, unpacked: int,
    column: Callable[[str], npt.NDArray[Any]],
) -> Contents:  # fmt: skip
    """Load the columns of a sketch after its header, its size and its checksum (version 1 had none)."""
    about = _parsed_header(header)
    known = {"group", "cell", "count", "low", "high", *SUMS}
    if len(set(names)) < len(names) or not set(names) <= known:
        raise not_a_sketch("got columns that a sketch does not have")
    if rows > len(about["labels"]) * codes_in_a_group(about["cells"]):
        raise not_a_sketch("got more rows than its groups have cells")
    if max(unpacked, rows * len(names) * 8) > MAX_UNPACKED_BYTES:
        raise not_a_sketch(TOO_LARGE)
    summed = {name: value for name, value in about.items() if name != "checksum"}
    try:
        one_by_one = ((name, column(name)) for name in sorted(names))
        if about["version"] == VERSION and about.get("checksum") != _checksum(summed, one_by_one):
            raise not_a_sketch("got a checksum that does not fit: the file is damaged")
        return _rebuilt(about, {name: column(name) for name in names})
    except UnreadableFileError:
        raise
    except READING_ERRORS:
        raise not_a_sketch("got damaged columns") from None


def _rebuilt(about: Mapping[str, Any], columns: Columns) -> Contents:
    cells, labels = int(about["cells"]), tuple(tuple(label) for label in about["labels"])
    group, cell, count = (_whole(columns[name]) for name in ("group", "cell", "count"))
    low, high = (np.array(columns[name], dtype=np.float64) for name in ("low", "high"))
    for name in SUMS:
        known = columns[DERIVED_SUMS[name]] if name in DERIVED_SUMS else 0.0
        columns.setdefault(name, np.where(cell < cells + 2, known, 0.0))
    sums = np.array([columns[name] for name in SUMS], dtype=np.float64)
    if np.any((group < 0) | (group >= len(labels))):
        raise not_a_sketch("got a group that does not exist")
    if np.any((cell < 0) | (cell >= codes_in_a_group(cells))):
        raise not_a_sketch("got a cell that does not exist")
    table = CellTable(group * codes_in_a_group(cells) + cell, count, sums, low, high)
    check_table(table, cells)
    return Contents(cells, tuple(about["by"]), labels, table, tuple(about.get("parts", ())))


def _whole(column: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if column.dtype.kind not in "iu":
        raise TypeError("whole numbers are stored as such")
    return np.array(column, dtype=np.int64)
