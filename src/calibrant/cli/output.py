"""How results are shown: tables, JSON, CSV, Markdown and charts, with control characters escaped."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import click

from calibrant.cli.exit_codes import BAD_INPUT
from calibrant.cli.options import CHARTS, check_paths, file_option, flag, kept, kept_option, refuse_typed
from calibrant.errors import reject_name
from calibrant.files import atomic_write
from calibrant.results import Table, json_ready

FORMATS = ("table", "json", "csv", "markdown")
PAGE_WIDTH = 100  # characters, where the output is not a terminal
SECOND_TABLE = "calibrant.second_table"
# All control characters but tab and line feed, and those that turn the direction of text
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
WORKFLOW_COMMAND = re.compile(r"^(\s*)(::|##\[)", re.MULTILINE)  # what GitHub would obey


def printable(text: str) -> str:
    r"""Write control characters as JSON does, so that text and JSON stay what they are.

    >>> printable("a\x1b[31mb")
    'a\\u001b[31mb'
    """
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Escape control characters and line breaks: a name must not begin a line of its own.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return printable(text.replace("\r\n", "\\n").replace("\n", "\\n").replace("\u2028", "\\u2028"))


class PrintableStream(io.TextIOWrapper):
    """An output that escapes control characters, and remembers if its reader has gone away."""

    reader_is_gone = False

    def write(self, text: str) -> int:
        shown = printable(text)
        if os.environ.get("GITHUB_ACTIONS"):
            shown = WORKFLOW_COMMAND.sub(r"\1\\\2", shown)
        with self._noticing():
            return super().write(shown)

    def write_command(self, text: str) -> None:
        with self._noticing():
            super().write(printable(text) + "\n")

    def flush(self) -> None:
        with self._noticing():
            super().flush()

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.reader_is_gone = True
            raise


def open_closed_streams() -> None:
    """Open streams that the caller closed (>&-), so that no file of ours gets their number and messages."""
    modes = {"stdin": ("r", os.O_RDONLY), "stdout": ("w", os.O_RDONLY), "stderr": ("w", os.O_WRONLY)}
    for name, (mode, flags) in modes.items():
        if getattr(sys, name) is None:
            stream = os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8")
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def guard_output() -> PrintableStream | None:
    """Escape all further output but the progress bar's; return the guarded standard output."""
    guarded = None
    for name in ("stderr", "stdout"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            buffering = name == "stderr" or stream.line_buffering
            guarded = PrintableStream(
                stream.buffer, stream.encoding, "backslashreplace", newline="\n", line_buffering=buffering
            )
            setattr(sys, name, guarded)
    return guarded if guarded is sys.stdout else None


def print_workflow_command(text: str) -> None:
    if isinstance(sys.stderr, PrintableStream):
        sys.stderr.write_command(one_line(text))
    else:
        click.echo(one_line(text), err=True)


class Printout:
    """What is printed for a file, which is written whole, once, when all of it is there."""

    def __init__(self, path: str) -> None:
        self.path, self.buffer, self.delivered = path, io.BytesIO(), False

    def deliver(self) -> None:
        if not self.delivered:
            atomic_write(self.path, self.buffer.getvalue())
        self.delivered = True


shown_form: ContextVar[str] = ContextVar("shown_form", default="table")
no_notes: ContextVar[bool] = ContextVar("no_notes", default=False)
printout: ContextVar[Printout | None] = ContextVar("printout", default=None)


def with_showing_options(command: click.Command) -> click.Command:
    """Add --format and --quiet to a command that has --json, and --output to one that writes nothing else."""
    known = {name for p in command.params for name in p.opts}
    run = command.callback
    if "--json" not in known or run is None:
        return command

    text = "How to print the results; csv prints only the tables."
    click.option("--format", "form", type=click.Choice(FORMATS), default="table", help=text)(command)
    if "--output" not in known:
        text = "File to write the results to, in place of stdout."
        file_option("--output", "-o", "printed", help=text)(command)
    flag("--quiet", "-q", help="Print only results and errors, no notes.")(command)

    @wraps(run)
    def shown(form: str, quiet: bool, json_: bool, printed: str | None = None, **options: Any) -> Any:
        if json_ and form not in ("table", "json"):
            raise click.UsageError(f"give either --json or --format {form}")
        form = "json" if json_ else form
        shown_form.set(form)
        no_notes.set(quiet)
        check_paths(click.get_current_context())
        if "html" in options and not options["html"]:
            refuse_typed("needs --html", "title", "subtitle")
        if options.get(CHARTS):
            from calibrant.report.charts.canvas import chart_target  # loading the charts takes its time

            options[CHARTS] = [chart_target(one) for one in options[CHARTS]]
        elif CHARTS in options:
            refuse_typed("needs --chart", "chart_text")
        with _into(printed):
            return run(json_=form == "json", **options)

    command.callback = shown
    return command


@contextmanager
def _into(path: str | None) -> Iterator[None]:
    if path is None:
        yield
        return
    printed, stdout = Printout(path), sys.stdout
    token = printout.set(printed)
    sys.stdout = PrintableStream(
        printed.buffer, "utf-8", "backslashreplace", newline="\n", write_through=True
    )
    try:
        yield
        printed.deliver()
    except SystemExit as stop:  # limits that are broken are a result
        if stop.code != BAD_INPUT:
            printed.deliver()
        raise
    finally:
        sys.stdout.detach()
        sys.stdout = stdout
        printout.reset(token)


def deliver_results() -> None:
    """Bring what was printed to where it goes: a state is written after that, so a failure changes none."""
    sys.stdout.flush()
    printed = printout.get()
    if printed is not None:
        printed.deliver()


def print_result(text: str = "") -> None:
    """Print a sentence of the result; CSV has no place for sentences, so there it is a note."""
    if not in_csv():
        click.echo(text)
    elif text:
        print_note(*text.strip("\n").split("\n"))


def print_sentences(text: str) -> None:
    if not in_csv():
        text = "\n".join(_wrapped(line, _width()) for line in text.split("\n"))
    print_result(text)


def print_note(*lines: str) -> None:
    """Print lines that are not part of the result on stderr, wrapped for a terminal; --quiet omits them."""
    if no_notes.get():
        return
    width = None
    if sys.stderr.isatty():
        with suppress(OSError, ValueError):
            width = min(PAGE_WIDTH, os.get_terminal_size(sys.stderr.fileno()).columns)
    for line in map(one_line, lines):
        click.echo(line if width is None else _wrapped(line, width), err=True)


def _wrapped(line: str, width: int) -> str:
    return textwrap.fill(line, width or PAGE_WIDTH, break_long_words=False, break_on_hyphens=False)


def show_result(result: Any, json_: bool, *sheets: Table) -> None:
    if json_:
        show_json(result.to_dict())
        return
    print_sentences(f"{result}\n")
    for sheet in sheets:
        show_sheet(sheet)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    show_sheet(Table.from_texts(columns, rows), title, blank=False)


def show_sheet(sheet: Table, title: str = "", *, blank: bool = True) -> None:
    """Print a table in the format that was asked for, and an empty line unless `blank` is false."""
    lines = (tuple(replace(cell, text=one_line(cell.text)) for cell in line) for line in sheet.lines)
    sheet = replace(sheet, columns=tuple(map(one_line, sheet.columns)), lines=tuple(lines))
    form, title = shown_form.get(), one_line(title)
    if form == "csv":
        _show_csv(sheet.columns, [[cell.text for cell in line] for line in sheet.lines])
    elif form == "markdown":
        click.echo((f"**{title}**\n\n" if title else "") + sheet.as_markdown())
    else:
        click.echo((f"{title}\n" if title else "") + sheet.as_text(_width()))
    if blank:
        print_result()


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PAGE_WIDTH


def in_csv() -> bool:
    return shown_form.get() == "csv"


def show_values(rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        _show_csv(list(rows[0]), [[_value(value) for value in row.values()] for row in rows])


def _value(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if isinstance(value, float) else one_line(str(value))


def _show_csv(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    context = click.get_current_context()
    if context.meta.get(SECOND_TABLE):
        click.echo()
    context.meta[SECOND_TABLE] = True
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    click.echo(text.getvalue(), nl=False)


def show_json(data: Mapping[str, Any]) -> None:
    click.echo(json.dumps(json_ready(data), indent=2, ensure_ascii=False))


def readable_number(value: float) -> str:
    return f"{value:.6f}" if 1e-4 <= abs(value) < 1e4 or value == 0 else f"{value:.3e}"


def page_heading(default: str) -> dict[str, Any]:
    return {"title": kept("title") or default, "subtitle": kept("subtitle") or ""}


def write_page(path: str, made: Any) -> None:
    written = atomic_write(path, made) if isinstance(made, str) else made.to_html(path)
    print_note(f"report: {written}")


WRITE_PAGE = "Write the report, one self-contained page."


def page_out(
    command: Callable[..., Any], *, default: str | None = None, words: str = WRITE_PAGE
) -> Callable[..., Any]:
    subtitle = kept_option("--subtitle", help="Line below the title of the report.")
    title = kept_option("--title", help="Title of the report.")
    return file_option("--html", default=default, help=words)(title(subtitle(command)))


TEXTS = ("none", "title", "caption", "both")
Charts = Sequence[tuple[str, Path]]  # the charts that --chart asks for, and where to save them


def charts_out(command: Callable[..., Any]) -> Callable[..., Any]:
    words = "Text to keep on a saved chart; papers have their own captions."
    text = kept_option("--chart-text", type=click.Choice(TEXTS), default="none", help=words)
    words = "Save a chart as SVG, PDF or PNG, e.g. reliability=figure.pdf."
    chart = click.option("--chart", CHARTS, multiple=True, metavar="NAME=FILE", help=words)
    return chart(text(command))


def check_charts(charts: Charts, drawn: Mapping[str, Any]) -> None:
    for name, _ in charts:
        if name not in drawn:
            raise reject_name("--chart", name, list(drawn))


def write_charts(charts: Charts, drawn: Mapping[str, Any]) -> None:
    check_charts(charts, drawn)
    if not charts:
        return
    from calibrant.report.charts.canvas import image_of, without_text

    text = kept("chart_text")
    title, caption = text in ("title", "both"), text in ("caption", "both")
    for name, path in charts:
        made = drawn[name]() if isinstance(drawn[name], FunctionType) else drawn[name]
        image = image_of(without_text(made, title=title, caption=caption), path.suffix.lower())
        print_note(f"chart: {atomic_write(path, image)}")
