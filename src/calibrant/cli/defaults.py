"""Defaults of options from pyproject.toml: [tool.calibrant] for all verbs, [tool.calibrant.VERB] for one."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import click

from calibrant.cli.option_types import NameList
from calibrant.cli.reading_options import with_reading_options
from calibrant.cli.showing import with_showing_options
from calibrant.cli.verbs import VERBS, bare_verb
from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence

Table = dict[str, Any]


def with_shared_options(command: click.Command) -> click.Command:
    """Add the options of reading and showing to a verb."""
    return with_showing_options(with_reading_options(command))


def with_defaults(command: click.Command) -> click.Command:
    """Add --config to a verb."""
    if not any("--config" in p.opts for p in command.params):
        command.params.append(
            click.Option(
                ["--config"],
                type=click.Path(dir_okay=False),
                is_eager=True,
                expose_value=False,
                callback=_defaults,
                help="File whose [tool.calibrant] gives defaults.  [default: ./pyproject.toml]",
            )
        )
    return command


def _defaults(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Take what the command line leaves open from a pyproject.toml."""
    if path == os.devnull:  # the usual name of "no file at all"
        return path
    file = Path("pyproject.toml" if path is None else path)
    if not file.is_file():
        if path is not None:
            got = "got a folder, device or pipe" if path and file.exists() else "got no such file"
            hint = f"{os.devnull} stands for no defaults"
            raise UnreadableFileError(sentence(f"file {path!r} of --config", "must be a file", got, hint))
        return path
    house = _table(_table(_parsed(file), "tool", file), "calibrant", file)
    verb = str(context.command.name)
    options = _options(context.command)
    for name in set(house) & set(VERBS):
        _table(house, name, file)
    own = _table(house, verb, file)
    for key in own:
        if key not in options:
            raise reject_name(f"key of [tool.calibrant.{verb}] in {file}", key, sorted(options))
    shared = {key: item for key, item in house.items() if key not in VERBS}
    _refuse_unknown(shared, options, file)
    given = {key: item for key, item in shared.items() if key in options} | own
    context.default_map = {
        str(options[key].name): _read(options[key], key, item, file) for key, item in given.items()
    }
    return path


def _parsed(file: Path) -> Table:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableFileError(sentence(f"file {str(file)!r}", "must be TOML", str(error))) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFileError(sentence(f"file {str(file)!r}", "must be readable", reason)) from None


def _table(around: Table, key: str, file: Path) -> Table:
    """Return a table of a TOML file, empty if it is absent."""
    inner = around.get(key, {})
    if not isinstance(inner, dict):
        raise InvalidInputError(sentence(f"{key} in {file}", "must be a table", f"got {inner!r}"))
    return inner


def _options(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options of a verb by their long names."""
    return {
        name.removeprefix("--"): p
        for p in command.params
        for name in p.opts
        if name.startswith("--") and name not in ("--config", "--help")
    }


def _refuse_unknown(shared: Table, options: dict[str, click.Parameter], file: Path) -> None:
    """Refuse a key that no verb knows; one that only others know is theirs."""
    if set(shared) <= set(options):
        return
    every = sorted({name for verb in VERBS for name in _options(with_shared_options(bare_verb(verb)))})
    for key in shared:
        if key not in every:
            raise reject_name(f"key of [tool.calibrant] in {file}", key, [*every, *VERBS])


def _read(option: click.Parameter, key: str, item: Any, file: Path) -> Any:
    """Return a value as the option takes it: NAME=VALUE for each entry of a table, names for a list."""
    if isinstance(option, click.Option) and option.multiple:
        if isinstance(item, dict):
            return [f"{name}={value}" for name, value in item.items()]
        if isinstance(item, list) and all(isinstance(part, str) for part in item):
            return item
        raise InvalidInputError(
            sentence(f"{key} in {file}", "must be a table or a list of texts", f"got {item!r}")
        )
    rule = _broken_rule(option, item)
    if rule:
        raise InvalidInputError(sentence(f"{key} in {file}", f"must be {rule}", f"got {item!r}"))
    return item


def _broken_rule(option: click.Parameter, item: Any) -> str:
    """Return what a value must be and is not, empty if it is: click would make 1 of true and of 1.5."""
    if isinstance(option, click.Option) and option.is_flag:
        return "" if isinstance(item, bool) else "true or false"
    if isinstance(option.type, NameList):
        words = isinstance(item, list) and all(isinstance(part, str) for part in item)
        return "" if words or _plain(item) else "text, a number or a list of names"
    if isinstance(option.type, click.types.IntParamType):
        return "" if type(item) in (int, str) else "a whole number"
    return "" if _plain(item) else "text or a number"


def _plain(item: Any) -> bool:
    return isinstance(item, str | int | float) and not isinstance(item, bool)
