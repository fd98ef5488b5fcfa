"""Sketches on disk and on the wire: a compact form, Parquet and Arrow, versioned, written whole or not."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import MissingDependencyError, UnreadableFileError, sentence
from calibrant.scale.aggregate import Aggregated
from calibrant.scale.cells import SUMS, CellTable, check_cells, codes_in_a_group

if TYPE_CHECKING:
    from calibrant.scale.sketch import Sketch

VERSION = 1
HEADER = "calibrant_sketch"
REPEATED = {"w": "count", "ww": "count", "wwv(1-v)": "wv(1-v)"}  # left out where no record has a weight

Columns = dict[str, npt.NDArray[Any]]


def save(sketch: Sketch, path: Path) -> None:
    """Write to a temporary file beside `path`, then rename: a reader sees the whole sketch or none."""
    if not path.parent.is_dir():
        raise UnreadableFileError(sentence(f"folder {str(path.parent)!r}", "must exist"))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        if path.suffix == ".parquet":
            _write_parquet(sketch, part)
        else:
            part.write_bytes(to_bytes(sketch))
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path) -> Sketch:
    """Read either format, told apart by their first bytes."""
    try:
        data = path.read_bytes()
        return _read_parquet(path) if data.startswith(b"PAR1") else from_bytes(data)
    except OSError as error:
        reason = error.strerror or str(error)
    except UnreadableFileError as error:
        reason = str(error).rstrip(".")
    raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be a sketch", reason))


def to_bytes(sketch: Sketch) -> bytes:
    """Return a zip of numpy arrays and a JSON header."""
    buffer = io.BytesIO()
    header = np.frombuffer(_header(sketch).encode(), dtype=np.uint8)
    columns: dict[str, Any] = {HEADER: header, **_columns(sketch)}
    np.savez_compressed(buffer, **columns)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Sketch:
    """Read what `to_bytes` wrote; anything else is refused."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            columns = {name: stored[name] for name in stored.files}
        header = columns.pop(HEADER).tobytes().decode()
    except (ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile):
        raise _foreign("got another format, or a damaged file") from None
    return _rebuilt(header, columns)


def to_arrow(sketch: Sketch) -> Any:
    """Return a pyarrow table with the header in its metadata."""
    return _pyarrow().table(_columns(sketch)).replace_schema_metadata({HEADER: _header(sketch)})


def from_arrow(table: Any) -> Sketch:
    """Read what `to_arrow` made."""
    header = (table.schema.metadata or {}).get(HEADER.encode())
    if header is None:
        raise _foreign("got a table without its header")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return _rebuilt(header.decode(), columns)


def _write_parquet(sketch: Sketch, path: Path) -> None:
    from calibrant.scale.session import connect

    with connect([path]) as connection:
        connection.register("cells", _columns(sketch))
        header = _header(sketch).replace("'", "''")
        options = (
            f"FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {{{HEADER}: '{header}'}}"
        )
        connection.execute(f"COPY (SELECT * FROM cells) TO '{_escaped(path)}' ({options})")


def _read_parquet(path: Path) -> Sketch:
    import duckdb

    from calibrant.scale.session import connect

    try:
        with connect([path]) as connection:
            query = (
                f"SELECT decode(value) FROM parquet_kv_metadata('{_escaped(path)}') WHERE key = '{HEADER}'"
            )
            header = connection.execute(query).fetchall()
            columns = connection.read_parquet(str(path)).fetchnumpy()
    except duckdb.Error as error:
        raise _foreign(str(error).splitlines()[0]) from None
    if not header:
        raise _foreign("got Parquet without its header")
    return _rebuilt(str(header[0][0]), columns)


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")


def _header(sketch: Sketch) -> str:
    """Return all that is not a column: the version, the grid, the groups."""
    groups = {"by": sketch.by, "labels": sketch.found.labels}
    return json.dumps({"version": VERSION, "cells": sketch.cells, **groups})


def _columns(sketch: Sketch) -> Columns:
    """Return one column a field; sums that are 0 throughout or follow from others are left out."""
    table = sketch.found.table
    group, cell = np.divmod(table.keys, codes_in_a_group(sketch.cells))
    sums = dict(zip(SUMS, table.sums, strict=True))
    columns: Columns = {"group": group, "cell": cell, "count": table.counts, **sums}
    good = cell < sketch.cells + 2
    if all(np.array_equal(columns[name][good], columns[known][good]) for name, known in REPEATED.items()):
        sums = {name: column for name, column in sums.items() if name not in REPEATED}
    sums = {name: column for name, column in sums.items() if name != "mixed" or column.any()}
    fixed: Columns = {"group": group.astype(np.int32), "cell": cell.astype(np.int32), "count": table.counts}
    return {**fixed, **sums, "low": table.low, "high": table.high}


def _rebuilt(header: str, columns: Mapping[str, npt.NDArray[Any]]) -> Sketch:
    from calibrant.scale.sketch import Sketch

    try:
        about = json.loads(header)
        if about["version"] != VERSION:
            raise _foreign(f"got version {about['version']}, this calibrant reads {VERSION}")
        cells, labels = check_cells(about["cells"]), tuple(map(tuple, about["labels"]))
        group, cell, count = (np.array(columns[name], dtype=np.int64) for name in ("group", "cell", "count"))
        low, high = (np.array(columns[name], dtype=np.float64) for name in ("low", "high"))
        sums = np.array([_restored(name, columns, cell < cells + 2) for name in SUMS])
    except (KeyError, TypeError, json.JSONDecodeError):
        raise _foreign("got a damaged header or columns") from None
    table = CellTable(group * codes_in_a_group(cells) + cell, count, sums, low, high)
    return Sketch.from_table(cells, tuple(about["by"]), Aggregated(labels, table))


def _restored(
    name: str, columns: Mapping[str, npt.NDArray[Any]], good: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return a column of sums, whether it was stored or follows from another."""
    if name in columns:
        return np.asarray(columns[name], dtype=np.float64)
    if name in REPEATED:
        return np.where(good, columns[REPEATED[name]], 0.0)
    return np.zeros(len(good))


def _foreign(found: str) -> UnreadableFileError:
    return UnreadableFileError(sentence("sketch", "must be as calibrant writes it", found))


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError(
            sentence("Arrow tables", "need pyarrow", hint="pip install pyarrow")
        ) from None
    return pyarrow
