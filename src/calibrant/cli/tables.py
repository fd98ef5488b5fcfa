"""Tables: rich on a terminal, plain aligned text when piped, or CSV or Markdown where asked for."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from calibrant.cli.showing import say, shown_as
from calibrant.cli.streams import printable
from calibrant.sheets import Sheet

SECOND_TABLE = "calibrant.second_table"


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print rows of text; the last column may wrap on a terminal."""
    form = shown_as.get().form
    if form == "csv":
        _show_csv(columns, rows)
    elif form == "markdown":
        _show_markdown(columns, rows, title)
    elif sys.stdout.isatty():
        _show_rich(columns, rows, title)
    else:
        _show_plain(columns, rows, title)


def in_csv() -> bool:
    """Return whether tables are printed as CSV, which other programs read."""
    return shown_as.get().form == "csv"


def show_values(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows of plain values as CSV, numbers with every digit; what is not known is an empty cell."""
    if rows:
        _show_csv(list(rows[0]), [[_value(value) for value in row.values()] for row in rows])


def _value(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if isinstance(value, float) else str(value)


def show_sheet(sheet: Sheet) -> None:
    """Print a table and an empty line."""
    show_table(list(sheet.columns), [[cell.text for cell in line] for line in sheet.lines])
    say()


def _show_plain(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    if title:
        click.echo(title)
    widths = [max(len(line[k]) for line in (columns, *rows)) for k in range(len(columns))]
    for line in (columns, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _show_csv(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as CSV; an empty line parts it from the one before."""
    context = click.get_current_context()
    if context.meta.get(SECOND_TABLE):
        click.echo()
    context.meta[SECOND_TABLE] = True
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    click.echo(text.getvalue(), nl=False)


def _show_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    if title:
        click.echo(f"**{title}**\n")
    for line in (columns, ["---"] * len(columns), *rows):
        cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in line)
        click.echo(f"| {' | '.join(cells)} |")


def _show_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.title = Text(printable(title)) if title else None
    for name in columns:
        table.add_column(name, no_wrap=name != columns[-1])
    for line in rows:
        # Text: a hostile name is never read as markup, and its control characters are shown, not obeyed
        table.add_row(*(Text(printable(cell)) for cell in line))
    sys.stdout.flush()
    Console(file=sys.__stdout__).print(table)


def show_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object; what JSON cannot say (NaN, infinity) becomes null."""
    click.echo(json.dumps(_finite(data), indent=2, ensure_ascii=False))


def _finite(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {str(key): _finite(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_finite(value) for value in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None
    return item


def readable_number(value: float) -> str:
    """Return a value at the precision people read."""
    return f"{value:.6f}" if 1e-4 <= abs(value) < 1e4 or value == 0 else f"{value:.3e}"
