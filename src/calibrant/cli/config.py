"""The list of commands, and defaults of their options in pyproject.toml."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from calibrant.cli.options import CONFIG, Text, file_option, writes_files
from calibrant.cli.output import with_showing_options
from calibrant.cli.reading import with_reading_options
from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name

# Every command: the file in this package of the same name defines it, except for those in ELSEWHERE
SECTIONS = {
    "Start here": ("evaluate", "check", "audit", "recalibrate", "stream", "verify"),
    "Repair and watch": ("apply", "monitor"),
    "Test, compare and plan": ("test", "compare", "classes", "distinguish", "plan"),
    "Beyond yes or no": ("distributions", "abstain"),
    "Large data": ("sketch", "merge"),
    "Learn": ("demo", "measures", "truthful"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
ELSEWHERE = {"merge": "sketch"}
Table = dict[str, Any]


def load_command(name: str) -> click.Command:
    file = ELSEWHERE.get(name, name).replace("-", "_")
    module = import_module(f"calibrant.cli.{file}")
    defined = (item for item in vars(module).values() if isinstance(item, click.Command))
    return next(command for command in defined if command.name == name)


@cache
def command_named(name: str) -> click.Command:
    """Import a command and give it the options that commands share: reading, showing and --config."""
    command = with_showing_options(with_reading_options(load_command(name)))
    words = "File whose [tool.calibrant] gives defaults.  [default: ./pyproject.toml]"
    file_option("--config", is_eager=True, expose_value=False, callback=_defaults, help=words)(command)
    return command


def _defaults(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    if path == os.devnull:  # the usual name of "no file at all"
        return path
    file = Path("pyproject.toml" if path is None else path)
    if not file.is_file():
        if path is not None:
            got = "got a folder, device or pipe" if path and file.exists() else "got no such file"
            hint = f"{os.devnull} means no defaults"
            raise UnreadableFileError(f"file {path!r} of --config", "must be a file", got, hint)
        return path
    section = _table(_table(_parsed(file), "tool", file), "calibrant", file)
    command = str(context.command.name)
    options = _options(context.command)
    for name in set(section) & set(COMMANDS):
        _table(section, name, file)
    own = _table(section, command, file)
    for key in own:
        if key not in options:
            raise reject_name(f"key of [tool.calibrant.{command}] in {file}", key, sorted(options))
    shared = {key: item for key, item in section.items() if key not in COMMANDS}
    if not set(shared) <= set(options):  # a key that only other commands know is theirs
        every = sorted({key for name in COMMANDS for key in _options(command_named(name))})
        for key in shared:
            if key not in every:
                raise reject_name(f"key of [tool.calibrant] in {file}", key, [*every, *COMMANDS])
    given = {key: item for key, item in shared.items() if key in options} | own
    if given:
        context.meta[CONFIG] = file
    for key in given:
        if path is None and writes_files(options[key]):  # it may be someone else's folder
            rule, got = "must not name a file to write", f"got {given[key]!r}"
            hint = f"type --{key}, or --config {file} if you trust this file"
            raise InvalidInputError(f"{key} in {file}", rule, got, hint)
    context.default_map = {
        str(options[key].name): _as_typed(options[key], key, item, file) for key, item in given.items()
    }
    return path


def _parsed(file: Path) -> Table:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        rule, reason = "must be TOML", str(error)
    except OSError as error:
        rule, reason = "must be readable", error.strerror or str(error)
    raise UnreadableFileError(f"file {str(file)!r}", rule, reason)


def _table(around: Table, key: str, file: Path) -> Table:
    inner = around.get(key, {})
    if not isinstance(inner, dict):
        raise InvalidInputError(f"{key} in {file}", "must be a table", f"got {inner!r}")
    return inner


def _options(command: click.Command) -> dict[str, click.Parameter]:
    long = [(name, p) for p in command.params for name in p.opts if name.startswith("--")]
    return {name.removeprefix("--"): p for name, p in long if name not in ("--config", "--help")}


def _as_typed(option: click.Parameter, key: str, item: Any, file: Path) -> Any:
    """Return a value as text, for click to read as if it were typed; lists and tables are several texts."""
    multiple = isinstance(option, click.Option) and option.multiple
    if multiple and isinstance(item, dict):
        return [f"{name}={value}" for name, value in item.items()]
    if isinstance(item, list) and (multiple or (isinstance(option.type, Text) and option.type.is_list)):
        return [str(part) for part in item]
    is_flag = isinstance(option, click.Option) and option.is_flag
    if isinstance(item, str | int | float) and is_flag == isinstance(item, bool) and not multiple:
        return item if is_flag else str(item)
    rule = "must be a table or a list of texts" if multiple else "must be text or a number"
    rule = "must be true or false" if is_flag else rule
    raise InvalidInputError(f"{key} in {file}", rule, f"got {item!r}")
