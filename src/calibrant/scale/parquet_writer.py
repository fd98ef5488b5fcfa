"""How DuckDB writes Parquet files: without dictionaries and compression that would be tried in vain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.scale.located import kind_of
from calibrant.scale.session import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARQUET = (".parquet", ".pq")
ROW_GROUP = 122_880  # rows that DuckDB writes together
LONG, SHORT = 10_000, 1_000  # entries that a dictionary of a row group may have
ROOM = 4  # by how much later row groups may exceed the first one before their dictionary is too long
SAVED = 0.05  # the share of bytes that compression must have saved in the files that were read


def parquet_options(connection: DuckDBPyConnection, query: str, names: Sequence[str]) -> str:
    """Return options for the rows of a query over files, chosen by its first rows and by these files.

    A dictionary is hashed row by row until it is too long: for numbers that hardly repeat this takes as long
    as writing them. It may be long where some column needs it.
    """
    first = f"SELECT approx_count_distinct(COLUMNS(*)) FROM ({query} LIMIT {ROW_GROUP})"
    [distinct] = connection.execute(first).fetchall()
    long = any(SHORT // ROOM < count <= LONG for count in distinct)
    options = f"DICTIONARY_SIZE_LIMIT {LONG if long else SHORT}"
    return f"{options}, COMPRESSION uncompressed" if _incompressible(connection, names) else options


def _incompressible(connection: DuckDBPyConnection, names: Sequence[str]) -> bool:
    """Return whether all that was read is compressed, and hardly smaller for it."""
    if any(kind_of(Path(name)) != "parquet" for name in names):
        return False
    query = (
        "SELECT bool_and(compression <> 'UNCOMPRESSED'), sum(total_compressed_size), "
        f"sum(total_uncompressed_size) FROM parquet_metadata([{', '.join(map(literal, names))}])"
    )
    [(compressed, packed, plain)] = connection.execute(query).fetchall()
    return bool(compressed) and packed >= (1 - SAVED) * plain


def null_count(connection: DuckDBPyConnection, target: Path, written: Path) -> int | None:
    """Return how many NULLs the last column of a written file has, None where the file does not say."""
    if target.suffix.lower() not in PARQUET:
        return None
    query = (
        "SELECT count(*) = count(stats_null_count), sum(stats_null_count) "
        f"FROM (FROM parquet_metadata({literal(str(written))}) QUALIFY column_id = max(column_id) OVER ())"
    )
    [(told, nulls)] = connection.execute(query).fetchall()
    return int(nulls) if told and nulls is not None else None
