"""One table of a .duckdb file, or the answer to one query, as a Parquet file that every verb can read.

The database is opened for reading alone, without network, extensions or other files. The rows are copied
once, so that columns read one after the other belong to the same rows whatever the query does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.scale.located import located
from calibrant.scale.session import LOCKED, MEMORY, identifier, literal, lock

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ENDINGS = (".duckdb", ".ddb")


def is_database(name: str) -> bool:
    """Return whether a file is a DuckDB database, by its ending."""
    return Path(name).suffix.lower() in ENDINGS


def copied_table(name: str, folder: Path, table: str | None, query: str | None) -> Path:
    """Copy a table or the rows of a query into a Parquet file of the folder."""
    import duckdb

    file, *others = located(name)
    if others:
        raise InvalidInputError(sentence(f"file {name!r}", "must be one database", f"got {len(others) + 1}"))
    if table is not None and query is not None:
        raise InvalidInputError(sentence("--table and --query", "must not be given together"))
    target = folder / f"{file.stem}.parquet"
    settings = {"memory_limit": MEMORY, "temp_directory": str(folder)}
    try:
        with duckdb.connect(":memory:", config=LOCKED) as connection:
            connection.execute(f"ATTACH {literal(str(file))} AS calibrant_rows (READ_ONLY)")
            connection.execute("USE calibrant_rows")
            lock(connection, [target], settings)
            if query is not None:
                _copy_query(connection, query, target)
            else:
                _copy(connection, _table(connection, file, table), target)
    except duckdb.Error as error:
        rule = "must be a DuckDB database that can be read"
        raise UnreadableFileError(sentence(f"file {str(file)!r}", rule, _reason(error))) from None
    return target


def _copy(connection: DuckDBPyConnection, rows: str, target: Path) -> None:
    options = "FORMAT parquet, USE_TMP_FILE false"
    connection.execute(
        f"COPY ({rows}\n) TO {literal(str(target))} ({options})"
    )  # a comment ends with its line


def _copy_query(connection: DuckDBPyConnection, query: str, target: Path) -> None:
    """Copy the rows of a query, whose faults are not the file's."""
    import duckdb

    try:
        _copy(connection, _checked(connection, query), target)
    except duckdb.Error as error:
        rule = "must be a SELECT that the database can run"
        raise InvalidInputError(sentence("--query", rule, _reason(error))) from None


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".!")


def _table(connection: DuckDBPyConnection, file: Path, table: str | None) -> str:
    """Return the SELECT of a table or view; its schema may stand before it, with a point."""
    listed = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'calibrant_rows' ORDER BY 1, 2"
    ).fetchall()
    known = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in listed}
    if table is None:
        got = f"it has {', '.join(known) or 'no tables'}"
        hint = "--table NAME or --query 'SELECT ...'"
        raise InvalidInputError(sentence(f"file {str(file)!r}", "needs a table or a query", got, hint))
    if table not in known:
        raise reject_name(f"table of {file}", table, list(known))
    return f"SELECT * FROM {'.'.join(map(identifier, known[table]))}"


def _checked(connection: DuckDBPyConnection, query: str) -> str:
    """Return the query, if it is one SELECT, without the semicolons and comments at its end."""
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InvalidInputError(sentence("--query", "must be one SELECT", f"got {query!r}"))
    text = query.encode()
    end = len(text)
    for start, kind in reversed(duckdb.tokenize(query)):
        if kind != duckdb.token_type.comment and text[start : start + 1] != b";":
            break
        end = start
    return text[:end].decode()
