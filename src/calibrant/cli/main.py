"""`calibrant`: the group of verbs, its exit codes, and the rule that nobody sees a traceback."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import suppress

import click

from calibrant import __version__
from calibrant.cli.lines import with_line
from calibrant.cli.streams import BAD_INPUT, guard_output, open_closed_streams, printable
from calibrant.cli.verbs import SECTIONS, VERBS, bare_verb
from calibrant.disk import SCRATCH, remove_unfinished
from calibrant.errors import CalibrantError

CLOSED_PIPE = 141  # as shells count a program that SIGPIPE, signal 13, has ended


def verb_named(name: str) -> click.Command:
    """Import a verb and give it the options that verbs share."""
    from calibrant.cli.defaults import with_defaults, with_shared_options

    return with_defaults(with_shared_options(bare_verb(name)))


class Verbs(click.Group):
    """Load a verb's file only when it is called, so that `calibrant --version` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs, the first ones to try first."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's file and return its command."""
        return verb_named(name) if name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, and refuse names that would be lost because a later one takes their place."""
        from calibrant.cli.once import refuse_repeated

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
        error.show()
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
        return BAD_INPUT


def _told(error: Exception) -> str:
    """Return the message of an error; one that is not the house's own is named as a defect."""
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
        click.echo(f"calibrant: {printable(message)}", err=True)
