"""Whether the rows of a file fit into memory for exact measures, or want a sketch."""

from __future__ import annotations

import os
from pathlib import Path

from calibrant.scale.files import FileNames
from calibrant.scale.located import PACKED, kind_of, located
from calibrant.scale.session import connect, literal, plain_names

BYTES_PER_ROW = 120  # peak of reading, sorting and measuring a row exactly, columns and copies together
BYTES_OF_TEXT = 8  # a row of a text file takes at least about that
PACKING = 10  # how much larger text may be than its packed form
UNKNOWN_MEMORY = 4 * 2**30


def fits(path: FileNames) -> bool:
    """Return whether exact measures of the files would take at most half of the machine's memory."""
    return rows_at_most(path) * BYTES_PER_ROW <= memory() / 2


def memory() -> int:
    """Return the machine's memory in bytes; a guess where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


def rows_at_most(path: FileNames) -> int:
    """Return how many rows files have: from the footers of Parquet, at most so many by the size of others."""
    files = located(path)
    if kind_of(files[0]) == "parquet":
        return _footers(files)
    return sum(_unpacked(file) for file in files) // BYTES_OF_TEXT


def _unpacked(file: Path) -> int:
    return file.stat().st_size * (PACKING if file.suffix.lower() in PACKED else 1)


def _footers(files: list[Path]) -> int:
    import duckdb

    with plain_names(files) as names, connect(names) as connection:
        shown = ", ".join(map(literal, names))
        try:
            query = f"SELECT sum(num_rows) FROM parquet_file_metadata([{shown}])"
            return int(connection.execute(query).fetchall()[0][0] or 0)
        except duckdb.Error:
            return 0  # whoever reads the file says what is wrong with it
