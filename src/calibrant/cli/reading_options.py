"""How every verb reads its FILEs: decimal commas, percent signs, standard input, tables of a database."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from calibrant.cli.options import BEHIND
from calibrant.disk import scratch_folder
from calibrant.errors import InvalidInputError, UnreadableFileError, sentence
from calibrant.scale.database import copied_table, is_database
from calibrant.scale.located import files_behind
from calibrant.scale.text_numbers import Notation, written_as

STARTS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".sketch",
    b"{": ".json",
    b"[": ".json",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}
SELECTED = "calibrant.selected"  # where the context keeps --table and --query


def with_reading_options(command: click.Command) -> click.Command:
    """Add --decimal, --percent, --table and --query to a verb that reads files; `-` is standard input."""
    files = [p for p in command.params if isinstance(p, click.Argument) and p.name in ("file", "files")]
    known = {name for p in command.params for name in p.opts}
    if not files or "--decimal" in known:
        return command
    for argument in files:
        argument.callback = _as_files
    decimal = click.Option(
        ["--decimal"], type=click.Choice([".", ","]), default=".", expose_value=False, callback=_decimal,
        help="Decimal mark of numbers in text files.",
    )  # fmt: skip
    percent = click.Option(
        ["--percent"], is_flag=True, expose_value=False, callback=_percent,
        help="Read 12 % as 0.12; numbers without the sign stay as they are.",
    )  # fmt: skip
    table = click.Option(
        ["--table"], is_eager=True, expose_value=False, callback=_selected, help="Table of a .duckdb file."
    )
    query = click.Option(
        ["--query"], is_eager=True, expose_value=False, callback=_selected,
        help="SELECT to run on a .duckdb file, which is opened for reading alone.",
    )  # fmt: skip
    command.params += [decimal, percent, table, query]
    return command


def _selected(context: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is not None and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
        context.meta.setdefault(SELECTED, {})[option.name] = text


def _decimal(context: click.Context, option: click.Parameter, mark: str) -> None:
    written_as.set(Notation(mark, written_as.get().percent))


def _percent(context: click.Context, option: click.Parameter, percent: bool) -> None:
    written_as.set(Notation(written_as.get().decimal, percent))


def _as_files(context: click.Context, argument: click.Parameter, value: tuple[str, ...]) -> Any:
    """Put files in place of standard input and of tables in a database; one name alone is no list."""
    if context.resilient_parsing:  # the shell completes a word: nothing is read
        return value
    selected = context.meta.get(SELECTED, {})
    if selected and not any(is_database(name) for name in value):
        options = " and ".join(f"--{name}" for name in selected)
        raise InvalidInputError(
            sentence(options, "must be given with a .duckdb file", f"got {', '.join(value) or 'none'}")
        )
    _refuse_repeated(value)
    context.meta[BEHIND] = [file for name in value for file in files_behind(name)]
    names = tuple(_as_file(context, name, selected) for name in value)
    if argument.name == "files":
        return names
    return names[0] if len(names) == 1 else names or None


def _refuse_repeated(names: tuple[str, ...]) -> None:
    """Refuse a file that is named twice: its rows would count twice."""
    places = [Path(name).resolve() for name in names]
    again = next((name for k, name in enumerate(names) if places[k] in places[:k]), None)
    if again is not None:
        hint = "copy it under another name if its rows shall count twice"
        raise InvalidInputError(sentence("FILE", "must name each file once", f"got {again!r} twice", hint))


def _as_file(context: click.Context, name: str, selected: Mapping[str, str]) -> str:
    if name == "-":
        return _spooled(context)
    if is_database(name):
        folder = context.with_resource(scratch_folder())
        if not selected:  # a file of defaults may say which table, whatever other files are read
            selected = context.default_map or {}
        return str(copied_table(name, folder, selected.get("table"), selected.get("query")))
    return name


def _spooled(context: click.Context) -> str:
    if sys.stdin.isatty():
        raise UnreadableFileError(sentence("standard input", "must be a pipe or a file", "got a terminal"))
    folder = context.with_resource(scratch_folder())
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return str(path.rename(path.with_suffix(_ending(path))))


def _ending(path: Path) -> str:
    """Return the ending of a file's kind, by how it begins."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((ending for mark, ending in STARTS.items() if start.startswith(mark)), ".csv")
