"""`calibrant`: the group of verbs, its exit codes, and the rule that nobody sees a traceback."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import suppress

import click

from calibrant import __version__
from calibrant.cli.streams import guard_output, printable
from calibrant.disk import remove_unfinished
from calibrant.errors import CalibrantError

VERBS = {
    "apply": "calibrant.cli.apply:apply",
    "audit": "calibrant.cli.audit:audit",
    "check": "calibrant.cli.check:check",
    "compare": "calibrant.cli.compare:compare",
    "demo": "calibrant.cli.demo:demo",
    "distinguish": "calibrant.cli.distinguish:distinguish",
    "evaluate": "calibrant.cli.evaluate:evaluate",
    "measures": "calibrant.cli.measures:list_measures",
    "merge": "calibrant.cli.merge:merge",
    "monitor": "calibrant.cli.monitor:monitor",
    "plan": "calibrant.cli.plan:plan",
    "recalibrate": "calibrant.cli.recalibrate:recalibrate",
    "sketch": "calibrant.cli.sketch:sketch",
    "stream": "calibrant.cli.stream:stream",
    "test": "calibrant.cli.test:test",
    "truthful": "calibrant.cli.truthful:truthful",
}


class Verbs(click.Group):
    """Load a verb's file only when it is called, so that `calibrant --version` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's file and return its command."""
        if name not in VERBS:
            return None
        from importlib import import_module

        module, function = VERBS[name].split(":")
        from calibrant.cli.reading import with_reading_options

        return with_reading_options(getattr(import_module(module), function))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="calibrant")
def calibrant() -> None:
    """Measure, test and audit the calibration of predicted probabilities."""


def main() -> None:
    """Run the command line: one message on stderr and exit code 2 for whatever goes wrong, no traceback.

    The process then ends without the interpreter's own clean-up: threads of DuckDB and numba that still run
    would be torn down in the middle of their work, which aborts.
    """
    _stop_cleanly()
    guard_output()
    code = run_verb()
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _lost_output(error)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


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
        return 2
    except (click.Abort, KeyboardInterrupt):
        _say("stopped")
        return 130
    except OSError as error:
        return _lost_output(error)
    except Exception as error:
        if os.environ.get("CALIBRANT_TRACEBACK"):
            raise
        _say(_in_options(_told(error)))
        return 2


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
    return 2


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
    """Turn the hint's Python, missing="drop", into what can be typed here, --missing drop."""
    text, mark, hint = message.partition(" Hint: ")
    return text + mark + re.sub(r'\b(\w+)="([\w-]+)"', r"--\1 \2", hint)


def _say(message: str) -> None:
    """Print one message on stderr."""
    with suppress(OSError):
        click.echo(f"calibrant: {printable(message)}", err=True)
