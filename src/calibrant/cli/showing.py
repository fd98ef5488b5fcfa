"""How results are shown: as tables, JSON, CSV or Markdown, on stdout or in a file, with notes or without."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from calibrant.cli.options import files_read
from calibrant.disk import check_target, write_whole

FORMATS = ("table", "json", "csv", "markdown")
BAD_INPUT = 2  # exit code


@dataclass(frozen=True, slots=True)
class Showing:
    """The form of the results, and whether notes are left out."""

    form: str = "table"
    quiet: bool = False


shown_as: ContextVar[Showing] = ContextVar("shown_as", default=Showing())  # noqa: B039 - it is frozen


def say(text: str = "") -> None:
    """Print a sentence of the result; CSV has no place for sentences, so there it is a note."""
    if shown_as.get().form != "csv":
        click.echo(text)
    elif text:
        note(text)


def note(text: str) -> None:
    """Print a message that is not part of the result, on stderr; --quiet leaves it out."""
    if not shown_as.get().quiet:
        click.echo(text, err=True)


def watched_by_a_person() -> bool:
    """Return whether somebody would see a progress bar."""
    return sys.stderr.isatty() and not shown_as.get().quiet


def with_showing_options(command: click.Command) -> click.Command:
    """Add --format and --quiet to a verb that has --json, and --output to one that writes nothing else."""
    known = {name for p in command.params for name in p.opts}
    if "--json" not in known or "--format" in known or command.callback is None:
        return command
    command.params.append(
        click.Option(["--format", "form"], type=click.Choice(FORMATS), default="table", show_default=True,
                     help="How to print the results; csv has the tables alone.")
    )  # fmt: skip
    if "--output" not in known:
        short = [] if any("-o" in p.opts for p in command.params) else ["-o"]
        command.params.append(
            click.Option(["--output", *short, "printed"], type=click.Path(dir_okay=False),
                         help="File to write the results to, in place of stdout.")
        )  # fmt: skip
    command.params.append(
        click.Option(["--quiet", "-q"], is_flag=True, help="Print results and errors alone, no notes.")
    )
    command.callback = _shown(command.callback)
    return command


def _shown(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Run a verb under its options of showing."""

    @wraps(verb)
    def run(form: str, quiet: bool, json_: bool, printed: str | None = None, **options: Any) -> Any:
        if json_ and form not in ("table", "json"):
            raise click.UsageError(f"give either --json or --format {form}")
        form = "json" if json_ else form
        shown_as.set(Showing(form, quiet))
        with _into(printed, files_read()):
            return verb(json_=form == "json", **options)

    return run


@contextmanager
def _into(path: str | None, sources: list[str]) -> Iterator[None]:
    """Send what is printed to a file, which is written whole when the verb has a result."""
    if path is None:
        yield
        return
    check_target(path, sources)
    stdout, buffer = sys.stdout, io.BytesIO()
    sys.stdout = io.TextIOWrapper(
        buffer, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True
    )
    try:
        yield
    except SystemExit as stop:  # limits that are broken are a result
        if stop.code != BAD_INPUT:
            write_whole(path, buffer.getvalue(), sources)
        raise
    else:
        write_whole(path, buffer.getvalue(), sources)
    finally:
        sys.stdout.detach()
        sys.stdout = stdout
