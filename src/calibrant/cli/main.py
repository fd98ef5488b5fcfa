"""`calibrant`: the group of commands, how a process ends, and the wording of errors."""

from __future__ import annotations

import csv
import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from calibrant import __version__
from calibrant.cli.config import COMMANDS, SECTIONS, command_named
from calibrant.cli.exit_codes import BAD_INPUT, CLOSED_PIPE, UNDECIDED
from calibrant.cli.options import ORIGINAL_FILES, SPOOLED, refuse_repeated
from calibrant.cli.output import guard_output, one_line, open_closed_streams
from calibrant.cli.reading import LOG_OPTIONS, TOOL, TYPED, log_hint
from calibrant.errors import CalibrantError, Hint, TooFewRecordsError, UnreadableFileError
from calibrant.files import SCRATCH, remove_unfinished
from calibrant.io.csv_dialect import read_dialect
from calibrant.io.session import TEXT_FORMATS

MAX_COUNTED_ROWS = 5_000_000  # rows that are counted again to find a line


class Commands(click.Group):
    """Load a command's file only when it is called, so that `calibrant --version` stays quick."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.running: click.Command | None = None  # the command that was called
        self.meta: dict[str, Any] = {}  # what its context knows

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return command_named(name) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse names that would be lost because a later one takes their place."""
        name, command, rest = super().resolve_command(ctx, args)
        self.running, self.meta = command, ctx.meta
        if command is not None and not ctx.resilient_parsing:
            refuse_repeated(command, ctx, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(n, command_named(n).get_short_help_str(limit=500)) for n in names])


SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="calibrant")
def calibrant() -> None:
    """Measure, test, audit, repair and watch the calibration of predicted probabilities."""


def main() -> None:
    open_closed_streams()
    _stop_cleanly()
    guarded = guard_output()
    code = run_command()
    remove_unfinished()  # a command that was refused before it began has not closed what it opened
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code if code == BAD_INPUT else _lost_output(error)  # reported already
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(CLOSED_PIPE if guarded is not None and guarded.reader_is_gone else code)


def run_command() -> int:
    try:
        calibrant(prog_name="calibrant", standalone_mode=False)
        return 0
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None) * 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        with suppress(OSError):
            if context is not None:
                click.echo(context.get_usage(), err=True)
                click.echo(f"Try '{one_line(context.command_path)} -h' for help.\n", err=True)
            hint = log_hint(error, calibrant.meta.get(TYPED, ()))
            click.echo(f"Error: {one_line(error.format_message())}{hint}", err=True)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        _print_error("stopped")
        return 130
    except OSError as error:
        return _lost_output(error)
    except Exception as error:
        if os.environ.get("CALIBRANT_TRACEBACK"):
            raise
        _print_error(_worded(error))
        return UNDECIDED if isinstance(error, TooFewRecordsError) else BAD_INPUT


def _stop_cleanly() -> None:
    def stop(number: int, frame: object) -> None:
        remove_unfinished()
        shown = b"\x1b[?25h" if sys.stderr.isatty() else b""  # a progress bar hides the cursor
        with suppress(OSError):
            os.write(2, shown + b"calibrant: stopped\n")
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), stop)


def _lost_output(error: OSError) -> int:
    """Report that output could not be written; a reader that went away (a closed pipe) knows already."""
    if not isinstance(error, BrokenPipeError):
        name = f" {error.filename!r}" if error.filename else ""
        _print_error(f"could not read or write{name}: {error.strerror or error}")
    return BAD_INPUT


def _print_error(message: str) -> None:
    with suppress(OSError):
        click.echo(f"calibrant: {one_line(message)}", err=True)  # unbroken: a hint may be there to copy


def _worded(error: Exception) -> str:
    if isinstance(error, CalibrantError):
        return error_text(error, calibrant.running, calibrant.meta)
    if isinstance(error, MemoryError):
        return "not enough memory. Hint: calibrant sketch reads files of any size"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    text = str(error).splitlines()[0] if str(error) else ""
    return (
        f"unexpected {type(error).__name__}: {text}. Hint: this is a defect of calibrant; "
        "CALIBRANT_TRACEBACK=1 shows where it is"
    )


def error_text(error: CalibrantError, command: click.Command | None, meta: dict[str, Any]) -> str:
    """Word an error for the command line: options as they are typed, and the line of the file."""
    if not error.subject:
        return str(error)
    subject, got, hint = _typed_subject(error, command), error.got, error.hint
    for path in meta.get(SPOOLED, ()):
        subject = subject.replace(f"file {path!r}", "standard input")
    if error.place is not None:
        place, files = error.place, meta.get(ORIGINAL_FILES, [])
        file = Path(place.file or (files[0] if len(files) == 1 else ""))
        if file.parent.name.startswith(SCRATCH):  # what was piped in, or the answer of a query
            place = place._replace(file="")
        line = _line(file, place.row)
        named = "" if line is None else f", line {line:,}" + ("" if place.file else f" of {file.name}")
        got = f"{got} {place.with_line(named)}"
    if isinstance(hint, Hint):
        hint = hint.worded(lambda name, value: _typed_option(name, value, command, bool(meta.get(TOOL))))
    return str(error.with_parts(subject=subject, got=got, hint=str(hint), place=None))


def _typed_subject(error: CalibrantError, command: click.Command | None) -> str:
    """Name the option where an argument that it sets is refused: --min-size for min_size."""
    if command is None or isinstance(error, TooFewRecordsError):  # whose subjects are not arguments
        return error.subject
    options = (one for one in command.params if isinstance(one, click.Option))
    return next((one.opts[0] for one in options if one.name == error.subject), error.subject)


def _typed_option(name: str, value: Any, command: click.Command | None, log: bool) -> str:
    flag = "--" + name.replace("_", "-")
    text = "..." if value is ... else shlex.quote(str(value))
    if log and name in LOG_OPTIONS:
        return f"--log-option {name}={text}"
    if command is not None and any(flag in one.opts for one in command.params):
        return f"{flag} {text}"
    return f"{Hint('{}', (name, value))} in Python"


def _line(path: Path, row: int) -> int | None:
    """Return the line on which a row begins: after the header, lines without anything on them left out."""
    if path.suffix.lower() not in TEXT_FORMATS or row > MAX_COUNTED_ROWS:
        return None
    with suppress(OSError, csv.Error, UnreadableFileError):
        separator = read_dialect(path).separator
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.reader(file, delimiter=separator)
            before, left = 0, row + 1  # the header comes before row 0
            for cells in reader:
                if cells and left == 0:
                    return before + 1
                left -= bool(cells)
                before = reader.line_num
    return None
