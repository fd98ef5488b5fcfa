"""How results are shown: as tables, JSON, CSV or Markdown, on stdout or in a file, with notes or without."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from calibrant.cli.options import files_read
from calibrant.cli.streams import BAD_INPUT
from calibrant.disk import check_target, write_whole
from calibrant.errors import InvalidInputError, sentence

FORMATS = ("table", "json", "csv", "markdown")


@dataclass(frozen=True, slots=True)
class Showing:
    """The form of the results, and whether notes are left out."""

    form: str = "table"
    quiet: bool = False


class Printout:
    """What is printed for a file, which is written whole, once, when all of it is there."""

    def __init__(self, path: str, sources: list[str]) -> None:
        check_target(path, sources)
        self.path, self.sources, self.buffer, self.delivered = path, sources, io.BytesIO(), False

    def deliver(self) -> None:
        """Write the file, unless that is done."""
        if not self.delivered:
            write_whole(self.path, self.buffer.getvalue(), self.sources)
        self.delivered = True


shown_as: ContextVar[Showing] = ContextVar("shown_as", default=Showing())  # noqa: B039 - it is frozen
printout: ContextVar[Printout | None] = ContextVar("printout", default=None)


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


def deliver_results() -> None:
    """Bring what was printed to where it goes: a state is written after that, so a failure changes none."""
    sys.stdout.flush()
    printed = printout.get()
    if printed is not None:
        printed.deliver()


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
        _refuse_shared_places()
        with _into(printed, files_read()):
            return verb(json_=form == "json", **options)

    return run


def _refuse_shared_places() -> None:
    """Refuse one name for two files: what one option writes would take the place of the other's."""
    context = click.get_current_context()
    places: dict[Path, str] = {}
    for option in context.command.params:
        path = context.params.get(option.name or "")
        if isinstance(option, click.Option) and isinstance(option.type, click.Path) and path:
            place = Path(path).resolve()
            if place in places:
                rule = f"must not be the file of {places[place]}"
                raise InvalidInputError(sentence(option.opts[0], rule, f"got {path!r}"))
            places[place] = option.opts[0]


@contextmanager
def _into(path: str | None, sources: list[str]) -> Iterator[None]:
    """Send what is printed to a file, which is written whole when the verb has a result."""
    if path is None:
        yield
        return
    printed, stdout = Printout(path, sources), sys.stdout
    token = printout.set(printed)
    sys.stdout = io.TextIOWrapper(
        printed.buffer, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True
    )
    try:
        yield
    except SystemExit as stop:  # limits that are broken are a result
        if stop.code != BAD_INPUT:
            printed.deliver()
        raise
    else:
        printed.deliver()
    finally:
        sys.stdout.detach()
        sys.stdout = stdout
        printout.reset(token)
