"""How every verb reads its FILE: numbers with commas or percent signs, and standard input as `-`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from calibrant.disk import scratch_folder
from calibrant.errors import UnreadableFileError, sentence
from calibrant.scale.text_numbers import Notation, written_as

STARTS = {b"PAR1": ".parquet", b"PK\x03\x04": ".sketch", b"{": ".json", b"[": ".json"}


def with_reading_options(command: click.Command) -> click.Command:
    """Add --decimal and --percent to a verb that reads a file, and let its FILE be standard input."""
    files = [p for p in command.params if isinstance(p, click.Argument) and p.name in ("file", "files")]
    known = {name for p in command.params for name in p.opts}
    if not files or "--decimal" in known:
        return command
    for argument in files:
        argument.callback = _from_standard_input
    decimal = click.Option(
        ["--decimal"], type=click.Choice([".", ","]), default=".", expose_value=False, callback=_decimal,
        help="Decimal mark of numbers in text files.",
    )  # fmt: skip
    percent = click.Option(
        ["--percent"], is_flag=True, expose_value=False, callback=_percent, help="Read 12 % as 0.12."
    )
    command.params += [decimal, percent]
    return command


def _decimal(context: click.Context, option: click.Parameter, mark: str) -> None:
    written_as.set(Notation(mark, written_as.get().percent))


def _percent(context: click.Context, option: click.Parameter, percent: bool) -> None:
    written_as.set(Notation(written_as.get().decimal, percent))


def _from_standard_input(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Put the name of a file that holds standard input in place of `-`."""
    if value == "-":
        return _spooled(context)
    if isinstance(value, tuple) and "-" in value:
        return tuple(_spooled(context) if name == "-" else name for name in value)
    return value


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
