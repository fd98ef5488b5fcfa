"""Every path that a command reads or writes, resolved in one place: no input is ever overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from calibrant.errors import InvalidInputError, sentence

BEHIND = "calibrant.behind"  # where the context keeps the files behind FILE
SPOOLED = "calibrant.spooled"  # where it keeps the copies of standard input
CONFIG = "calibrant.config"  # where it keeps the file of defaults
CHARTS = "charts"  # the option whose values are NAME=FILE


class InputPath(click.Path):
    """An option that names a file to read; all other options of paths name files to write."""


class _Use(NamedTuple):
    """A path, and the option or argument that names it."""

    path: Path
    named_by: str
    typed: str = ""


def writes_files(option: click.Parameter) -> bool:
    """Return whether an option names files that the command writes."""
    if not isinstance(option, click.Option) or option.name == "config":
        return False
    path = isinstance(option.type, click.Path) and not isinstance(option.type, InputPath)
    return path or option.name == CHARTS


def check_paths(context: click.Context) -> None:
    """Refuse to write a file that the command also reads, or to write one file twice.

    Links and hard links count as the file they lead to. A state is read and written by the same option.
    """
    read = list(_read(context))
    written: list[_Use] = []
    for use in _written(context):
        for other in (*read, *written):
            if _is_same(use.path, other.path):
                rule = f"must not be the file of {other.named_by}"
                raise InvalidInputError(sentence(use.named_by, rule, f"got {use.typed!r}"))
        written.append(use)


def _read(context: click.Context) -> Iterator[_Use]:
    for name in context.meta.get(BEHIND, ()):
        yield _Use(Path(name), "FILE")
    if CONFIG in context.meta:
        yield _Use(context.meta[CONFIG], "--config")
    for option in context.command.params:
        value = context.params.get(option.name or "")
        argument = isinstance(option, click.Argument) and option.name not in ("file", "files")
        if isinstance(option.type, click.Path) and (argument or isinstance(option.type, InputPath)):
            for name in (value,) if isinstance(value, str) else value or ():
                yield _Use(Path(name), option.opts[0] if not argument else option.human_readable_name)


def _written(context: click.Context) -> Iterator[_Use]:
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if writes_files(option) and value:
            names = [text.partition("=")[2] for text in value] if option.name == CHARTS else [value]
            yield from (_Use(Path(name), option.opts[0], name) for name in names if name)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError, RuntimeError):  # reported when the file is opened
        return False
