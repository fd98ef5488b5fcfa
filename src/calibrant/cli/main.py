"""`calibrant`: the group of verbs, its exit codes, and the rule that nobody sees a traceback."""

from __future__ import annotations

import re
import sys

import click

from calibrant import __version__
from calibrant.errors import CalibrantError

VERBS = {
    "audit": "calibrant.cli.audit:audit",
    "check": "calibrant.cli.check:check",
    "compare": "calibrant.cli.compare:compare",
    "demo": "calibrant.cli.demo:demo",
    "distinguish": "calibrant.cli.distinguish:distinguish",
    "evaluate": "calibrant.cli.evaluate:evaluate",
    "measures": "calibrant.cli.measures:list_measures",
    "merge": "calibrant.cli.merge:merge",
    "plan": "calibrant.cli.plan:plan",
    "sketch": "calibrant.cli.sketch:sketch",
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
        command: click.Command = getattr(import_module(module), function)
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="calibrant")
def calibrant() -> None:
    """Measure, test and audit the calibration of predicted probabilities."""


def main() -> None:
    """Run the command line: bad input is exit code 2 and one message on stderr, never a traceback."""
    try:
        calibrant(prog_name="calibrant", standalone_mode=False)
    except CalibrantError as error:
        _fail(_in_options(str(error)))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("stopped", code=130)
    except BrokenPipeError:
        sys.stderr.close()


def _in_options(message: str) -> str:
    """Turn the hint's Python, missing="drop", into what can be typed here, --missing drop."""
    text, mark, hint = message.partition(" Hint: ")
    return text + mark + re.sub(r'\b(\w+)="([\w-]+)"', r"--\1 \2", hint)


def _fail(message: str, code: int = 2) -> None:
    click.echo(f"calibrant: {message}", err=True)
    sys.exit(code)
