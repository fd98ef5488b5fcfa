"""A column of recalibrated predictions as Parquet has it: pages of numbers, and what is said of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.results import Array
from calibrant.scale.parquet_footer import (
    CHUNK_META,
    COLUMNS,
    DATA_PAGE,
    ELEMENT_NAME,
    ELEMENT_TYPE,
    FILE_OFFSET,
    MAGIC,
    PACKED_BYTES,
    PLAIN_BYTES,
    REPETITION,
    read_footer,
)
from calibrant.scale.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Struct, varint, write_struct

PAGE = 2**17  # rows of a page, which then has about a megabyte
SAMPLE = 2**12  # numbers by which is told whether they repeat
REPEATING = 1 / 64  # a dictionary is worth its time if at most this share of the sample is distinct
DOUBLE, OPTIONAL, PLAIN, RLE, UNCOMPRESSED = 5, 1, 0, 3, 0  # as parquet.thrift numbers them


class Chunk(NamedTuple):
    """The pages of a column in one row group, and what the footer says of them, as if they began the file."""

    pages: list[bytes | memoryview]
    described: Struct


def element_of(name: str) -> Struct:
    """Return what the schema says of the column."""
    return {
        ELEMENT_TYPE: (I32, DOUBLE),
        REPETITION: (I32, OPTIONAL),
        ELEMENT_NAME: (BINARY, name.encode()),
    }


def column_chunk(name: str, numbers: Array, usable: npt.NDArray[np.bool_]) -> Chunk:
    """Return the column in a row group: the numbers of the usable rows, and no value in all others.

    Numbers are written as they are, which takes a tenth of the time of a dictionary. Where they are very few,
    as the rates of some bins, pyarrow makes one.
    """
    sample = numbers[:SAMPLE]
    if len(sample) and len(np.unique(sample)) <= REPEATING * len(sample):
        return _with_dictionary(name, numbers, usable)
    pages: list[bytes | memoryview] = []
    before = 0
    for start in range(0, len(usable), PAGE):
        present = usable[start : start + PAGE]
        count = int(np.count_nonzero(present))
        data = np.ascontiguousarray(numbers[before : before + count]).data.cast("B")
        pages += [_page_head(present, count, len(data)), data]
        before += count
    return Chunk(pages, _described(name, numbers, len(usable), sum(map(len, pages))))


def _page_head(present: npt.NDArray[np.bool_], count: int, size: int) -> bytes:
    """Return what stands before the numbers of a page: its header, and which rows have one."""
    if count == len(present):
        levels = varint(count << 1) + b"\x01"  # one run
    else:
        bits = np.packbits(present, bitorder="little").tobytes()
        levels = varint(len(bits) << 1 | 1) + bits
    whole = 4 + len(levels) + size
    page: Struct = {1: (I32, len(present)), 2: (I32, PLAIN), 3: (I32, RLE), 4: (I32, RLE)}
    header: Struct = {1: (I32, 0), 2: (I32, whole), 3: (I32, whole), 5: (STRUCT, page)}
    return write_struct(header) + len(levels).to_bytes(4, "little") + levels


def _described(name: str, numbers: Array, rows: int, size: int) -> Struct:
    """Return what the footer says of a chunk of plain pages."""
    known: Struct = {3: (I64, rows - len(numbers))}
    if len(numbers):  # a largest 0 has no sign, a smallest one has: comparisons leave it open
        largest, smallest = np.max(numbers) + 0.0, np.min(numbers)
        known[5] = (BINARY, np.float64(largest).tobytes())
        known[6] = (BINARY, np.float64(smallest if smallest else -0.0).tobytes())
    meta: Struct = {
        1: (I32, DOUBLE),
        2: (LIST, (I32, [PLAIN, RLE])),
        3: (LIST, (BINARY, [name.encode()])),
        4: (I32, UNCOMPRESSED),
        5: (I64, rows),
        PLAIN_BYTES: (I64, size),
        PACKED_BYTES: (I64, size),
        DATA_PAGE: (I64, len(MAGIC)),
        12: (STRUCT, known),
    }
    return {FILE_OFFSET: (I64, 0), CHUNK_META: (STRUCT, meta)}


def _with_dictionary(name: str, numbers: Array, usable: npt.NDArray[np.bool_]) -> Chunk:
    """Have pyarrow write the column to memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    spread = np.zeros(len(usable))
    spread[usable] = numbers
    column: Any = pa.table({name: pa.array(spread, pa.float64(), mask=~usable)})
    sink = pa.BufferOutputStream()
    pq.write_table(column, sink, len(usable), compression="snappy", use_dictionary=True, store_schema=False)
    written = sink.getvalue()
    footer = read_footer(pa.BufferReader(written))
    [group] = footer.groups
    [described] = group[COLUMNS][1][1]
    return Chunk([memoryview(written)[len(MAGIC) : footer.start]], described)
