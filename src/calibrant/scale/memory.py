"""Whether the rows of a file fit into memory for exact measures, or want a sketch."""

from __future__ import annotations

import os
from pathlib import Path

from calibrant.scale.files import READERS, connect

BYTES_A_ROW = 120  # peak of reading, sorting and measuring a row exactly, columns and copies together
BYTES_OF_TEXT = 8  # a row of a text file takes at least about that
UNKNOWN_MEMORY = 4 * 2**30


def fits(path: str | Path) -> bool:
    """Tell whether exact measures of a file would take at most half of the machine's memory."""
    return rows_at_most(path) * BYTES_A_ROW <= memory() / 2


def memory() -> int:
    """Return the machine's memory in bytes; a guess where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


def rows_at_most(path: str | Path) -> int:
    """Return how many rows a file or glob has: from the footers of Parquet, at most so many from a size."""
    import duckdb

    name = str(path).replace("'", "''")
    suffix = Path(path).suffix.lower()
    with connect() as connection:
        try:
            if READERS.get(suffix) == "read_parquet":
                query = f"SELECT sum(num_rows) FROM parquet_file_metadata('{name}')"
            else:
                query = f"SELECT sum(size) // {BYTES_OF_TEXT} FROM read_blob('{name}')"
            found = connection.execute(query).fetchall()
        except duckdb.Error:
            return 0  # whoever reads the file says what is wrong with it
    return int(found[0][0] or 0)
