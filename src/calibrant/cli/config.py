"""The list of commands, the options of reading that they share, and their defaults in pyproject.toml."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from calibrant.cli.log_files import log_options, rows_of_log
from calibrant.cli.options import NameList, Scale, typed
from calibrant.cli.output import with_showing_options
from calibrant.cli.paths import BEHIND, CONFIG, SPOOLED, writes_files
from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.files import scratch_folder
from calibrant.io.read import copied_table, is_database, read_labels
from calibrant.io.session import files_behind
from calibrant.io.sources import default_notation

STARTS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".sketch",
    b"{": ".json",
    b"[": ".json",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}
OTHER_OUTCOMES = ("classes", "distributions")  # commands whose outcomes are classes or quantities
MOST_LABELS = 5  # named in an error
SELECTED = "calibrant.selected"  # where the context keeps --table and --query
TYPED = "calibrant.typed"  # where it keeps FILE as it was typed


def with_reading_options(command: click.Command) -> click.Command:
    """Add the options of reading to a verb that reads files; `-` is standard input."""
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
    command.params += [decimal, percent, table, query, *log_options()]
    if "--outcome" in known and command.name not in OTHER_OUTCOMES:
        text = "Label of the outcome that counts as 1; the other one counts as 0."
        command.params.append(click.Option(["--pos-label"], expose_value=False, callback=_keep, help=text))
    if "--prediction" in known and command.name != "classes":
        text = "Ends of the scale of the predictions if it is not 0 to 1, such as 1:10."
        command.params.append(
            click.Option(["--scale"], type=Scale(), metavar="LOW:HIGH", expose_value=False, callback=_keep,
                         help=text)
        )  # fmt: skip
    if command.callback is not None:
        command.callback = _with_notation(command.callback)
    return command


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    context.meta[f"calibrant.{option.name}"] = value


def _with_notation(run: Callable[..., Any]) -> Callable[..., Any]:
    """Read outcomes with --pos-label and predictions with --scale while the command runs."""

    @functools.wraps(run)
    def call(**given: Any) -> Any:
        meta = click.get_current_context().meta
        label, scale = meta.get("calibrant.pos_label"), meta.get("calibrant.scale")
        notation = replace(default_notation.get(), labels=None, scale=(0.0, 1.0), scaled=())
        if label is not None:
            notation = replace(notation, labels=_labels(given, str(label)))
        if scale is not None:
            names = given.get("predictions") or given.get("prediction")
            if not names:
                raise InvalidInputError(sentence("--scale", "needs --prediction", "got none"))
            columns = (names, *names.split(",")) if isinstance(names, str) else tuple(names)
            notation = replace(notation, scale=scale, scaled=columns)
        default_notation.set(notation)
        return run(**given)

    return call


def _labels(given: Mapping[str, Any], label: str) -> tuple[str, str, str] | None:
    """Return the outcome with its label that counts as 1, as FILE writes it, and the other one."""
    column, files = given.get("outcome"), given.get("file") or given.get("files")
    if column is None:
        raise InvalidInputError(sentence("--pos-label", "needs --outcome", "got none"))
    names = (files,) if isinstance(files, str) else files or ()
    if not names or any(Path(name).suffix in (".sketch", ".json") for name in names):
        return None  # the outcomes of a sketch are numbers already
    labels = read_labels(names, column, MOST_LABELS)
    positive = next((one for one in labels if one == label or _is_same_number(one, label)), None)
    shown = ", ".join(map(repr, labels)) or "none"
    if positive is None:
        rule = f"must be one of the labels of column {column!r}"
        raise InvalidInputError(sentence("--pos-label", rule, f"got {label!r} for {shown}"))
    if len(labels) > 2:
        rule, hint = "must hold two labels where --pos-label is given", "calibrant classes takes several"
        more = "..." if len(labels) == MOST_LABELS else ""
        raise InvalidInputError(sentence(f"column {column!r}", rule, f"got {shown}{more}", hint))
    return column, positive, next((one for one in labels if one != positive), "")


def _is_same_number(one: str, other: str) -> bool:
    with suppress(ValueError):
        return float(one) == float(other)
    return one.lower() == other.lower() and one.lower() in ("true", "false")


def _selected(context: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is not None and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
        context.meta.setdefault(SELECTED, {})[option.name] = text


def _decimal(context: click.Context, option: click.Parameter, mark: str) -> None:
    default_notation.set(replace(default_notation.get(), decimal=mark))


def _percent(context: click.Context, option: click.Parameter, percent: bool) -> None:
    default_notation.set(replace(default_notation.get(), percent=percent))


def _as_files(context: click.Context, argument: click.Parameter, value: tuple[str, ...]) -> Any:
    """Put files in place of standard input and of tables in a database; a single name is not a list."""
    if context.resilient_parsing:  # the shell completes a word: nothing is read
        return value
    selected = context.meta.get(SELECTED, {})
    if selected and not any(is_database(name) for name in value):
        options = " and ".join(f"--{name}" for name in selected)
        raise InvalidInputError(
            sentence(options, "must be given with a .duckdb file", f"got {', '.join(value) or 'none'}")
        )
    _refuse_repeated(value)
    context.meta[TYPED] = value
    chosen = rows_of_log(context, value, separate=argument.name == "files")
    context.meta[BEHIND] = [file for name in value for file in files_behind(name)]
    names = tuple(_as_file(context, name, selected) for name in chosen)
    if argument.name == "files":
        return names
    return names[0] if len(names) == 1 else names or None


def rows_typed() -> list[str]:
    """Return FILE and the options that say how to read it, as typed: another command reads the same rows."""
    context = click.get_current_context()
    words = list(context.meta.get(TYPED, ()))
    for name, text in context.meta.get(SELECTED, {}).items():
        words += [f"--{name}", text]
    if typed("decimal"):
        words += ["--decimal", default_notation.get().decimal]
    if typed("pos_label"):
        words += ["--pos-label", str(context.meta["calibrant.pos_label"])]
    if typed("scale"):
        words += ["--scale", "{:g}:{:g}".format(*context.meta["calibrant.scale"])]
    return [*words, "--percent"] if typed("percent") else words


def _refuse_repeated(names: tuple[str, ...]) -> None:
    """Refuse a file that is named twice: its rows would count twice."""
    places = [Path(name).resolve() for name in names]
    again = next((name for k, name in enumerate(names) if places[k] in places[:k]), None)
    if again is not None:
        hint = "copy it under another name if you want its rows counted twice"
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
    name = str(path.rename(path.with_suffix(_ending(path))))
    context.meta.setdefault(SPOOLED, []).append(name)
    return name


def _ending(path: Path) -> str:
    """Return the ending of a file's kind, by how it begins."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((ending for mark, ending in STARTS.items() if start.startswith(mark)), ".csv")


# Every command: the file in this package of the same name defines it
SECTIONS = {
    "Start here": ("evaluate", "check", "audit", "recalibrate", "stream", "verify"),
    "Repair and watch": ("apply", "monitor"),
    "Test, compare and plan": ("test", "compare", "classes", "distinguish", "plan"),
    "Beyond yes or no": ("distributions", "abstain"),
    "Large data": ("sketch", "merge"),
    "Learn": ("demo", "measures", "truthful"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)


def load_command(name: str) -> click.Command:
    """Import a command, with only the options of its own."""
    module = import_module(f"calibrant.cli.{name}")
    defined = [item for item in vars(module).values() if isinstance(item, click.Command)]
    return next(command for command in defined if command.name == name)


Table = dict[str, Any]


def with_shared_options(command: click.Command) -> click.Command:
    """Add the options of reading and showing to a verb."""
    return with_showing_options(with_reading_options(command))


def command_named(name: str) -> click.Command:
    """Import a command and give it the options that commands share."""
    return with_defaults(with_shared_options(load_command(name)))


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
            hint = f"{os.devnull} means no defaults"
            raise UnreadableFileError(sentence(f"file {path!r} of --config", "must be a file", got, hint))
        return path
    section = _table(_table(_parsed(file), "tool", file), "calibrant", file)
    verb = str(context.command.name)
    options = _options(context.command)
    for name in set(section) & set(COMMANDS):
        _table(section, name, file)
    own = _table(section, verb, file)
    for key in own:
        if key not in options:
            raise reject_name(f"key of [tool.calibrant.{verb}] in {file}", key, sorted(options))
    shared = {key: item for key, item in section.items() if key not in COMMANDS}
    _refuse_unknown(shared, options, file)
    given = {key: item for key, item in shared.items() if key in options} | own
    if given:
        context.meta[CONFIG] = file
    if path is None:
        _refuse_outputs(given, options, file)
    context.default_map = {
        str(options[key].name): _read(options[key], key, item, file) for key, item in given.items()
    }
    return path


def _refuse_outputs(given: Table, options: dict[str, click.Parameter], file: Path) -> None:
    """Refuse outputs in a pyproject.toml that was not asked for: it may be someone else's folder."""
    for key in given:
        if writes_files(options[key]):
            rule, got = "must not name a file to write", f"got {given[key]!r}"
            hint = f"type --{key}, or --config {file} if you trust this file"
            raise InvalidInputError(sentence(f"{key} in {file}", rule, got, hint))


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
    every = sorted({name for verb in COMMANDS for name in _options(with_shared_options(load_command(verb)))})
    for key in shared:
        if key not in every:
            raise reject_name(f"key of [tool.calibrant] in {file}", key, [*every, *COMMANDS])


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
