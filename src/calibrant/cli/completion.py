"""What the shell completes: columns of the files typed so far, methods and measures; never an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

FILES_LOOKED_AT = 3


def columns_typed(context: click.Context) -> list[str]:
    """Return the columns of the files on the command line so far, each once, in their order."""
    names: dict[str, None] = {}
    for file in list(_files(context))[:FILES_LOOKED_AT]:
        with suppress(Exception):  # a half-typed name or a broken file: nothing to suggest
            names.update(dict.fromkeys(_columns(file)))
    return list(names)


def starting_with(start: str, words: Iterable[str]) -> list[CompletionItem]:
    """Return the words that begin so."""
    return [CompletionItem(word) for word in words if word.startswith(start)]


def next_of_list(incomplete: str, words: Iterable[str]) -> list[CompletionItem]:
    """Return completions of the last name in a list with commas, without the names it already has."""
    before, comma, start = incomplete.rpartition(",")
    taken = set(before.split(",")) if comma else set()
    return [CompletionItem(f"{before}{comma}{w}") for w in words if w.startswith(start) and w not in taken]


def _files(context: click.Context) -> Iterator[Path]:
    """Yield the files among the arguments; click has not told them from options while a value is missing."""
    known = [context.params.get(key) for key in ("file", "files")]
    given = [name for names in known if names for name in ([names] if isinstance(names, str) else names)]
    for name in (*given, *context.args):
        if Path(name).is_file():
            yield Path(name)


def _columns(file: Path) -> Iterable[str]:
    """Return the names in a file's header or schema; a sketch has no columns any more."""
    if file.suffix == ".parquet":
        import duckdb

        with duckdb.connect(":memory:") as connection:
            relation = connection.read_parquet(str(file), hive_partitioning=False)
            return list(relation.columns)
    if file.suffix in (".sketch", ".json", ".duckdb", ".db"):
        return []
    from calibrant.scale.dialect import read_dialect

    return read_dialect(file).names
