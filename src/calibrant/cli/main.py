"""`calibrant`: the group of commands and its exit codes; a traceback is never shown.

From the row of an error, which is counted from 0, to the line of the text file that was read.
"""

from __future__ import annotations

import csv
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import click

from calibrant import __version__
from calibrant.cli.config import COMMANDS, SECTIONS, load_command
from calibrant.cli.output import BAD_INPUT, guard_output, one_line, open_closed_streams
from calibrant.errors import CalibrantError, TooFewClustersError, UnreadableFileError
from calibrant.files import SCRATCH, remove_unfinished
from calibrant.io.csv_dialect import read_dialect
from calibrant.io.paths import KINDS, PACKED, TEXT_KINDS
from calibrant.io.read import ENDINGS

ROW = re.compile(r"in row (\d+) \([\d,]+ rows?\)")
ROW_OF_FILE = re.compile(r"""in row (\d+) of (['"])(.+?)\2""")
FARTHEST = 5_000_000  # rows that are counted again to find a line
ASIDE = ("--state", "--output", "--out", "-o", "--rules", "--config")  # options whose files hold no rows


def with_line(message: str, arguments: list[str] | None = None) -> str:
    """Add the line of the file, where one text file and no other file of rows is on the command line."""
    if (named := ROW_OF_FILE.search(message)) is not None:
        return _with_line_of(message, named)
    result = ROW.search(message)
    if result is None or int(result[1]) > FARTHEST:
        return message
    given = sys.argv[1:] if arguments is None else arguments
    words = [word for before, word in zip(["", *given], given, strict=False) if before not in ASIDE]
    files = [Path(word) for word in words if word == "-" or _may_hold_rows(Path(word))]
    known = len(files) == 1 and files[0].suffix.lower() in TEXT_KINDS
    line = _line(files[0], int(result[1])) if known else None
    if line is None:
        return message
    return f"{message[: result.end()]}, line {line:,} of {files[0].name}{message[result.end() :]}"


def _with_line_of(message: str, named: re.Match[str]) -> str:
    """Add the line where the message names one of several files."""
    path, row = Path(named[3]), int(named[1])
    if path.parent.name.startswith(SCRATCH):  # what was piped in, or the answer of a query
        return message[: named.start()] + f"in row {row}" + message[named.end() :]
    known = path.suffix.lower() in TEXT_KINDS and row <= FARTHEST
    line = _line(path, row) if known else None
    return message if line is None else f"{message[: named.end()]}, line {line:,}{message[named.end() :]}"


def _may_hold_rows(path: Path) -> bool:
    return path.suffix.lower() in (*KINDS, *PACKED, *ENDINGS) and path.is_file()


def _line(path: Path, row: int) -> int | None:
    """Return the line on which a row begins: after the header, lines without anything on them left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.reader(file, delimiter=read_dialect(path).separator)
            before, left = 0, row + 1  # the header comes before row 0
            for cells in reader:
                if cells and left == 0:
                    return before + 1
                left -= bool(cells)
                before = reader.line_num
    except (OSError, csv.Error, UnreadableFileError):
        return None
    return None


TOO_LITTLE_DATA = 3
CLOSED_PIPE = 141  # as shells count a program that SIGPIPE, signal 13, has ended


def verb_named(name: str) -> click.Command:
    """Import a verb and give it the options that verbs share."""
    from calibrant.cli.config import with_defaults, with_shared_options

    return with_defaults(with_shared_options(load_command(name)))


class Verbs(click.Group):
    """Load a verb's file only when it is called, so that `calibrant --version` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs, the first ones to try first."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's file and return its command."""
        return verb_named(name) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, and refuse names that would be lost because a later one takes their place."""
        from calibrant.cli.options import refuse_repeated

        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            refuse_repeated(command, ctx, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs section by section, each with its whole first sentence."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, verb_named(name).get_short_help_str(limit=500)) for name in names])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="calibrant")
def calibrant() -> None:
    """Measure, test, audit, repair and watch the calibration of predicted probabilities."""


def main() -> None:
    """Run the command line: one message on stderr and exit code 2 for whatever goes wrong, no traceback.

    The process then ends without the interpreter's own clean-up: threads of DuckDB and numba that still run
    would be torn down in the middle of their work, which aborts.
    """
    open_closed_streams()
    _stop_cleanly()
    guarded = guard_output()
    code = run_verb()
    remove_unfinished()  # a verb that was refused before it began has not closed what it opened
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code if code == BAD_INPUT else _lost_output(error)  # said already
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(CLOSED_PIPE if guarded is not None and guarded.reader_is_gone else code)


def run_verb() -> int:
    """Run the verb and return the exit code."""
    try:
        calibrant(prog_name="calibrant", standalone_mode=False)
        return 0
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None) * 2
    except click.ClickException as error:
        _show_usage(error)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        _say("stopped")
        return 130
    except OSError as error:
        return _lost_output(error)
    except Exception as error:
        if os.environ.get("CALIBRANT_TRACEBACK"):
            raise
        _say(_in_options(_without_scratch(with_line(_told(error)))))
        return TOO_LITTLE_DATA if isinstance(error, TooFewClustersError) else BAD_INPUT


def _show_usage(error: click.ClickException) -> None:
    """Print what is wrong with the command line, and how it is used."""
    context = getattr(error, "ctx", None)
    with suppress(OSError):
        if context is not None:
            click.echo(context.get_usage(), err=True)
            click.echo(f"Try '{one_line(context.command_path)} -h' for help.\n", err=True)
        click.echo(f"Error: {one_line(error.format_message())}", err=True)


def _told(error: Exception) -> str:
    """Return the message of an error; one that is not a CalibrantError is called a defect."""
    if isinstance(error, CalibrantError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory. Hint: calibrant sketch reads files of any size"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    text = str(error).splitlines()[0] if str(error) else ""
    return (
        f"unexpected {type(error).__name__}: {text}. Hint: this is a defect of calibrant; "
        "CALIBRANT_TRACEBACK=1 shows where it is"
    )


def _lost_output(error: OSError) -> int:
    """Say that output could not be written; a reader that went away (a closed pipe) knows already."""
    if not isinstance(error, BrokenPipeError):
        name = f" {error.filename!r}" if error.filename else ""
        _say(f"could not read or write{name}: {error.strerror or error}")
    return BAD_INPUT


def _stop_cleanly() -> None:
    """Leave at once when interrupted, whatever runs in other threads, with nothing half written."""

    def stop(number: int, frame: object) -> None:
        remove_unfinished()
        shown = b"\x1b[?25h" if sys.stderr.isatty() else b""  # a progress bar hides the cursor
        with suppress(OSError):
            os.write(2, shown + b"calibrant: stopped\n")
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), stop)


def _in_options(message: str) -> str:
    """Turn the hint's Python, missing="drop", into what can be typed here, --missing drop.

    No option names the label that counts as 1: outcomes of -1 and 1 are to be changed in the file.
    """
    text, mark, hint = message.partition(" Hint: ")
    if "--percent" in sys.argv:
        signed = "--percent reads 12 %, with its sign; numbers without it must be divided by 100"
        hint = hint.replace("percentages must be divided by 100", signed)
    hint = hint.replace("name the one that counts as 1: pos_label=1", "write -1 as 0")
    return text + mark + re.sub(r'\b(\w+)="([\w-]+)"', r"--\1 \2", hint)


def _without_scratch(message: str) -> str:
    """Call the file that standard input was copied to what the user knows it as."""
    return re.sub(rf"file '[^']*{SCRATCH}[^']*stdin[^']*'", "standard input", message)


def _say(message: str) -> None:
    """Print one message on stderr."""
    with suppress(OSError):
        click.echo(f"calibrant: {one_line(message)}", err=True)
