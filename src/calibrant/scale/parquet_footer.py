"""The footer of a Parquet file: which one can be given a further column, and the one that has it.

A Parquet file is its column chunks, one after the other, and a footer that says where each of them begins. A
column can therefore be added behind all that is there: nothing that was written before changes its place.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from calibrant.scale.thrift_compact import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    NotThriftError,
    Struct,
    read_struct,
    write_struct,
)

MAGIC = b"PAR1"
LONGEST = 2**24  # bytes of a footer; it is read in Python
MOST_ROWS = 2**21  # of a row group, which is held in memory
ARROW, PANDAS = b"ARROW:schema", b"pandas"  # the key-value metadata that are kept

# Fields of the structs that parquet.thrift defines
SCHEMA, ROWS, ROW_GROUPS, KEY_VALUES, COLUMN_ORDERS, ENCRYPTION, SIGNING_KEY = 2, 3, 4, 5, 7, 8, 9
ELEMENT_TYPE, REPETITION, ELEMENT_NAME, CHILDREN, CONVERTED, LOGICAL = 1, 3, 4, 5, 6, 10
COLUMNS, GROUP_BYTES, GROUP_ROWS, GROUP_PACKED = 1, 2, 3, 6
FILE_PATH, FILE_OFFSET, CHUNK_META, CRYPTO, ENCRYPTED = 1, 2, 3, 8, 9
PLAIN_BYTES, PACKED_BYTES, DATA_PAGE, DICTIONARY_PAGE = 6, 7, 9, 11
KEY, VALUE = 1, 2
FLOATS = (4, 5)  # FLOAT and DOUBLE
REPEATED = 2
TYPE_ORDER: Struct = {1: (STRUCT, {})}


class NotAppendableError(Exception):
    """A file that cannot be given a column behind what it holds: it must be read and written anew."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What the footer says, and where it begins."""

    struct: Struct
    start: int

    @property
    def groups(self) -> list[Struct]:
        """The row groups."""
        return _structs(self.struct, ROW_GROUPS)

    @property
    def rows(self) -> list[int]:
        """How many rows each row group has."""
        return [_integer(group, GROUP_ROWS) for group in self.groups]

    @property
    def elements(self) -> list[Struct]:
        """The schema: its root, columns, and after nested ones their children."""
        return _structs(self.struct, SCHEMA)

    @property
    def columns(self) -> list[tuple[str, Struct]]:
        """The columns by name; children of nested ones are left out."""
        elements = self.elements
        named, place = [], 1
        while place < len(elements):
            named.append((_bytes(elements[place], ELEMENT_NAME).decode(), elements[place]))
            waiting = 1
            while waiting > 0:
                if place >= len(elements):
                    raise NotAppendableError("a nested column has no end")
                waiting += _integer(elements[place], CHILDREN, 0) - 1
                place += 1
        return named


def read_footer(file: BinaryIO) -> Footer:
    """Read the footer of a Parquet file that is not encrypted."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    start = size - 8 - length
    if tail[4:] != MAGIC or start < len(MAGIC) or length > LONGEST:
        raise NotAppendableError("no footer, or a long one")
    file.seek(start)
    try:
        return Footer(read_struct(file.read(length)), start)
    except NotThriftError as error:
        raise NotAppendableError(str(error)) from None


def check_appendable(footer: Footer, prediction: str, into: str) -> None:
    """Refuse a file to which the column cannot be added without a doubt."""
    if ENCRYPTION in footer.struct or SIGNING_KEY in footer.struct:
        raise NotAppendableError("it is encrypted or signed")
    try:
        columns = footer.columns
        into.encode()
    except UnicodeError:
        raise NotAppendableError("a name is not UTF-8") from None
    folded = [name.lower() for name, _ in columns]
    if len(set(folded)) < len(folded) or not into or into.lower() in folded:
        raise NotAppendableError("a name is taken")
    if "." in prediction or any(name.startswith(f"{prediction}.") for name, _ in columns):
        raise NotAppendableError("a name with a point looks like a path")
    _check_number(dict(columns).get(prediction, {}))
    leaves = sum(CHILDREN not in element for element in footer.elements[1:])
    for group in footer.groups:
        chunks = _structs(group, COLUMNS)
        if len(chunks) != leaves or not 0 <= _integer(group, GROUP_ROWS) <= MOST_ROWS:
            raise NotAppendableError("columns are missing, or too many rows stand together")
        for chunk in chunks:
            _check_chunk(chunk, footer.start)
    if sum(footer.rows) != _integer(footer.struct, ROWS):
        raise NotAppendableError("the row groups do not make up the file")


def _check_number(element: Struct) -> None:
    """Refuse a column that is none of floating numbers."""
    plain = CONVERTED not in element and LOGICAL not in element and CHILDREN not in element
    if not plain or _integer(element, ELEMENT_TYPE) not in FLOATS:
        raise NotAppendableError("the predictions are no floating numbers")
    if _integer(element, REPETITION) == REPEATED:
        raise NotAppendableError("the predictions are lists")


def _check_chunk(chunk: Struct, end: int) -> None:
    """Refuse a column chunk that is encrypted or does not lie before the footer."""
    if FILE_PATH in chunk or CRYPTO in chunk or ENCRYPTED in chunk:
        raise NotAppendableError("a column is encrypted or lies in another file")
    meta = _struct(chunk, CHUNK_META)
    size = _integer(meta, PACKED_BYTES)
    starts = [place for place in (_integer(meta, DATA_PAGE), _integer(meta, DICTIONARY_PAGE, 0)) if place]
    first = min(starts, default=0)  # 0 stands for a page that is not there
    if size and (first < len(MAGIC) or not 0 < size <= end - first):
        raise NotAppendableError("a column does not lie in the file")


def moved(chunk: Struct, by: int) -> Struct:
    """Return a column chunk that stands further back in the file."""
    meta = dict(_struct(chunk, CHUNK_META))
    for place in (DATA_PAGE, DICTIONARY_PAGE):
        if _integer(meta, place, 0):
            meta[place] = (I64, _integer(meta, place) + by)
    return {**chunk, FILE_OFFSET: (I64, 0), CHUNK_META: (STRUCT, meta)}


def with_column(footer: Footer, element: Struct, chunks: Sequence[Struct]) -> bytes:
    """Return a footer with one more column: its element of the schema, and its chunk in each row group."""
    root, *elements = footer.elements
    root = _changed(root, CHILDREN, I32, _integer(root, CHILDREN, 0) + 1)
    groups = [_longer(group, chunk) for group, chunk in zip(footer.groups, chunks, strict=True)]
    struct = dict(footer.struct)
    struct[SCHEMA] = (LIST, (STRUCT, [root, *elements, element]))
    struct[ROW_GROUPS] = (LIST, (STRUCT, groups))
    if COLUMN_ORDERS in struct:
        struct[COLUMN_ORDERS] = (LIST, (STRUCT, [*_structs(struct, COLUMN_ORDERS), TYPE_ORDER]))
    if KEY_VALUES in struct:
        kept = _metadata(_structs(struct, KEY_VALUES), _bytes(element, ELEMENT_NAME).decode())
        struct[KEY_VALUES] = (LIST, (STRUCT, kept))
        if not kept:
            del struct[KEY_VALUES]
    written = write_struct(struct)
    return written + len(written).to_bytes(4, "little") + MAGIC


def _longer(group: Struct, chunk: Struct) -> Struct:
    """Return a row group with one more column."""
    longer = dict(group)
    longer[COLUMNS] = (LIST, (STRUCT, [*_structs(group, COLUMNS), chunk]))
    meta = _struct(chunk, CHUNK_META)
    for total, part in ((GROUP_BYTES, PLAIN_BYTES), (GROUP_PACKED, PACKED_BYTES)):
        if total in group:
            longer[total] = (I64, _integer(group, total) + _integer(meta, part))
    return longer


def _metadata(pairs: Sequence[Struct], into: str) -> list[Struct]:
    """Return the key-value metadata that still hold.

    Spark, Avro, Iceberg and others keep a schema of their own there, and believe it rather than the file:
    they would not see the new column. Those are dropped, as DuckDB drops them when it writes a file anew.
    Arrow's schema gets the new column; the metadata of pandas tell the index, and may leave columns out.
    """
    kept = []
    for pair in pairs:
        key = _bytes(pair, KEY)
        if key == ARROW:
            longer = _arrow_schema(_bytes(pair, VALUE), into)
            kept.append(_changed(pair, VALUE, BINARY, longer))
        elif key == PANDAS:
            kept.append(pair)
    return kept


def _arrow_schema(encoded: bytes, into: str) -> bytes:
    """Return Arrow's schema with one more column."""
    import pyarrow as pa

    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded, validate=True)))
        longer = schema.append(pa.field(into, pa.float64()))
        return base64.b64encode(longer.serialize())
    except (OSError, ValueError, pa.ArrowException):
        raise NotAppendableError("the schema of Arrow cannot be read") from None


def _changed(struct: Struct, field: int, kind: int, value: Any) -> Struct:
    return {**struct, field: (kind, value)}


def _integer(struct: Struct, field: int, absent: int | None = None) -> int:
    if absent is not None and field not in struct:
        return absent
    return int(_value(struct, field, (I16, I32, I64)))


def _bytes(struct: Struct, field: int) -> bytes:
    return bytes(_value(struct, field, (BINARY,)))


def _struct(struct: Struct, field: int) -> Struct:
    return dict(_value(struct, field, (STRUCT,)))


def _structs(struct: Struct, field: int) -> list[Struct]:
    kind, values = _value(struct, field, (LIST,))
    if values and kind != STRUCT:
        raise NotAppendableError(f"field {field} is no list of structs")
    return list(values)


def _value(struct: Struct, field: int, kinds: tuple[int, ...]) -> Any:
    kind, value = struct.get(field, (0, None))
    if kind not in kinds:
        raise NotAppendableError(f"field {field} is missing or of another type")
    return value
