"""DuckDB as calibrant uses it: an engine for the files it is given, and for nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.files import scratch_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


POLL = 0.1  # seconds between updates of the progress
MEMORY = "768MB"  # what DuckDB may hold of rows that it groups or copies, before it spills to disk
LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",  # a table name never means a variable of the caller
}


def connect(files: Iterable[str | Path] = (), **settings: str) -> DuckDBPyConnection:
    """Open an in-memory DuckDB that may touch these files only, and neither the network nor extensions."""
    import duckdb

    connection = duckdb.connect(":memory:", config=LOCKED)
    lock(connection, files, settings)
    return connection


def lock(connection: DuckDBPyConnection, files: Iterable[str | Path], settings: Mapping[str, str]) -> None:
    """Let a connection touch these files only from now on, for good."""
    for name, value in settings.items():
        connection.execute(f"SET {name} = {literal(value)}")
    allowed = ", ".join(literal(str(file)) for file in files)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def literal(text: str) -> str:
    """Return text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _is_utf8(name: str) -> bool:
    """Return whether a name has no bytes that Python could only keep as surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


@contextmanager
def plain_names(files: Iterable[Path]) -> Iterator[list[str]]:
    """Give each file an absolute name in UTF-8 without glob marks: to DuckDB `a[1].csv` is a pattern."""
    with ExitStack() as stack:
        links: Path | None = None
        names = []
        for number, file in enumerate(files):
            whole = file.absolute()
            if any(mark in str(whole) for mark in "*?[") or not _is_utf8(str(whole)):
                links = links or stack.enter_context(scratch_folder())
                link = links / f"{number}{''.join(file.suffixes[-2:])}"
                link.symlink_to(whole)
                whole = link
            names.append(str(whole))
        yield names


def run_with_progress(
    connection: DuckDBPyConnection, work: Callable[[], Any], progress: Callable[[float], object] | None
) -> Any:
    """Run a query in a thread of its own, reporting how far it is; an interrupt stops it at once."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            share = connection.query_progress() / 100
            if progress is not None and share >= 0:  # negative: DuckDB does not know
                progress(min(1.0, share))
    except BaseException:
        connection.interrupt()
        thread.join()
        raise
    if failed:
        raise failed[0]
    return done[0]
