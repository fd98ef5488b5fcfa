"""Sheets: tables as text cells with sort keys, written once for terminal, notebook and page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from calibrant.numerals import short


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, and what it sorts by (a number as Python writes it, or the text itself)."""

    text: str
    key: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: column names and lines of cells.

    `inside` says of each line under which other line it is folded on a page (None: under none); a folded
    line stands after the one it belongs to. Without it every line stands for itself.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]
    inside: tuple[int | None, ...] = ()

    def parent(self, line: int) -> int | None:
        """Return the line under which a line is folded."""
        return self.inside[line] if self.inside else None

    def folded(self, line: int) -> int:
        """Return how many lines are folded under a line."""
        return self.inside.count(line)

    def as_text(self, width: int = 110) -> str:
        """Return aligned plain text, cut to `width` characters per line."""
        lines = [self.columns, *(tuple(cell.text for cell in line) for line in self.lines)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]
        padded = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)
        return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in padded)

    def as_html(self) -> str:
        """Return a plain HTML table, for notebooks."""
        numeric = [any(line[k].number for line in self.lines) for k in range(len(self.columns))]
        head = "".join(
            f"<th{_aligned(n)}>{escape(c)}</th>" for c, n in zip(self.columns, numeric, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(f"<td{_aligned(cell.number)}>{escape(cell.text)}</td>" for cell in line)
            + "</tr>"
            for line in self.lines
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _aligned(number: bool) -> str:
    """Return the style of a cell: notebooks would set every text to the right, and wrap numbers."""
    return ' style="text-align:right;white-space:nowrap"' if number else ' style="text-align:left"'


def paragraphs(*lines: str) -> str:
    """Return sentences as HTML, for notebooks."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line)


def text_cell(value: str) -> Cell:
    """Return a cell of text."""
    return Cell(value, value)


def number_cell(value: float | None, shown: str | None = None) -> Cell:
    """Return a cell of a number, in short form unless `shown` is given."""
    return Cell(short(value, 4) if shown is None else shown, sort_key(value), number=True)


def sort_key(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return repr(float(value)) if math.isfinite(value) else "-Infinity" if value < 0 else "Infinity"
