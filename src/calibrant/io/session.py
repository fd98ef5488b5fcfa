"""The files that a user named, and the DuckDB that may read them and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.files import scratch_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TEXT_FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv"}
FORMATS = {
    **TEXT_FORMATS,
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
COMPRESSED_ENDINGS = (".gz", ".zst")
HINTS_FOR_OTHER_FORMATS = {
    **dict.fromkeys((".xls", ".xlsx", ".xlsm", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys(
        (".duckdb", ".ddb"), "on the command line, pass --table; in Python, duckdb.connect(FILE)"
    ),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), 'sqlite3 -header -csv FILE "SELECT * FROM t" > rows.csv'),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "polars.read_ipc(FILE).write_parquet('rows.parquet')"),
    **dict.fromkeys((".pkl", ".pickle"), "pandas.read_pickle(FILE).to_parquet('rows.parquet')"),
    ".orc": "pandas.read_orc(FILE).to_parquet('rows.parquet')",
    ".dta": "pandas.read_stata(FILE).to_parquet('rows.parquet')",
    ".sas7bdat": "pandas.read_sas(FILE).to_parquet('rows.parquet')",
    ".eval": "--log inspect reads logs of Inspect; in Python, calibrant.logs.read(FILE)",
    ".avro": "export it as Parquet or CSV",
}


def resolve_paths(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files that names and globs match, each once; an existing `a[1].csv` is that file."""
    if not isinstance(path, (str, Path)):
        return each_once([file for one in path for file in resolve_paths(one)])
    text = str(path)
    if "\0" in text:
        raise UnreadableFileError(f"file {text!r}", "must not contain a null byte", "got one")
    files = list(map(Path, _matches(text) if _is_glob(text) else [text]))
    if not files:
        raise UnreadableFileError(f"file {text!r}", "must match a file", "got none")
    for file in files:
        _check_file(file)
    return files


def files_behind(name: str) -> list[str]:
    with suppress(OSError, ValueError):
        return (_matches(name) if _is_glob(name) else []) or [name]
    return [name]


def _is_glob(text: str) -> bool:
    return not Path(text).exists() and any(mark in text for mark in "*?[")


def _matches(pattern: str) -> list[str]:
    return [name for name in sorted(glob(pattern, recursive=True)) if Path(name).is_file()]


def each_once(files: list[Path], subject: str = "files", rule: str = "must be named once each") -> list[Path]:
    """Return the files; one that is named twice is refused: its rows would count twice."""
    places: set[Path] = set()
    for file in files:
        if file.resolve() in places:
            hint = "copy it under another name if you want its rows counted twice"
            raise InvalidInputError(subject, rule, f"got {str(file)!r} twice", hint)
        places.add(file.resolve())
    return files


def file_format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_ENDINGS:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if ending in FORMATS:
        return FORMATS[ending]
    hint = HINTS_FOR_OTHER_FORMATS.get(ending, "").replace("FILE", path.name)
    rule = f"must end in one of {', '.join(FORMATS)}"
    raise UnreadableFileError(f"file {str(path)!r}", rule, f"got {ending or 'no ending'!r}", hint)


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in COMPRESSED_ENDINGS


def _check_file(path: Path) -> None:
    name = f"file {str(path)!r}"
    try:
        if not path.exists():
            raise UnreadableFileError(name, "must exist", "got no such file")
        if path.is_dir():
            hint = f"name its files with a glob, {path / '*.parquet'}"
            raise UnreadableFileError(name, "must be a file", "got a folder", hint)
        if not path.is_file():
            hint = "save it to a file first, or pipe it in and name it -"
            raise UnreadableFileError(name, "must be a file", "got a device or a pipe", hint)
        if path.stat().st_size == 0:
            raise UnreadableFileError(name, "must not be empty", "got 0 bytes")
        with path.open("rb"):
            pass
    except OSError as error:
        raise UnreadableFileError(name, "must be readable", error.strerror or str(error)) from None


POLL_SECONDS = 0.1  # seconds between updates of the progress
MAX_MEMORY = "768MB"  # what DuckDB may hold of rows that it groups or copies, before it spills to disk
PROGRESS_SETTINGS = {
    "enable_progress_bar": "true",
    "enable_progress_bar_print": "false",
    "progress_bar_time": "0",
}
LOCKED_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",  # a table name never means a variable of the caller
}


def connect(files: Iterable[str | Path] = (), **settings: str) -> DuckDBPyConnection:
    """Open an in-memory DuckDB that may touch these files only, and neither the network nor extensions."""
    import duckdb

    connection = duckdb.connect(":memory:", config=LOCKED_SETTINGS)
    lock(connection, files, settings)
    return connection


def lock(connection: DuckDBPyConnection, files: Iterable[str | Path], settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        connection.execute(f"SET {name} = {literal(value)}")
    allowed = ", ".join(literal(str(file)) for file in files)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def plain_names(files: Iterable[Path]) -> Iterator[list[str]]:
    """Give each file an absolute name in UTF-8 without glob marks: to DuckDB `a[1].csv` is a pattern."""
    with ExitStack() as stack:
        links: Path | None = None
        names = []
        for number, file in enumerate(files):
            whole = file.absolute()
            if re.search("[*?[\ud800-\udfff]", str(whole)):  # the last are bytes that are not UTF-8
                links = links or stack.enter_context(scratch_folder())
                link = links / f"{number}{''.join(file.suffixes[-2:])}"
                link.symlink_to(whole)
                whole = link
            names.append(str(whole))
        yield names


def arrow_batches(relation: Any, rows: int) -> Iterator[Any]:
    """Stream a relation as Arrow batches of at most that many rows; the method was renamed in DuckDB 1.4."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    yield from read(rows)


def run_with_progress(
    connection: DuckDBPyConnection, work: Callable[[], Any], progress: Callable[[float], object] | None
) -> Any:
    """Run a query in a thread of its own, reporting how far it is; an interrupt stops it at once."""
    with ThreadPoolExecutor(1) as pool:
        running, ended = pool.submit(work), False
        try:
            while not ended:
                ended = bool(wait([running], POLL_SECONDS).done)
                share = connection.query_progress() / 100
                if progress is not None and share >= 0:  # negative: DuckDB does not know
                    progress(min(1.0, share))
        except BaseException:
            connection.interrupt()
            raise
        return running.result()
