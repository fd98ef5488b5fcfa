"""Result types shared by all packages: the base class, certified values, tables and catalogues.

`Table` holds text cells with sort keys and renders for the terminal, a notebook and the report. `Catalogue`
is a registry by name that prints as a table.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.formatting import format_value

Array = npt.NDArray[np.float64]

MIN_COLUMN_WIDTH = 12  # of a wrapped column
_NUMBER = re.compile(
    r"[-+≤<]?\s?\d[\d,]*(\.\d+)?(e[-+]?\d+)?\s?(%|points)?( to [-+]?\d[\d,.]*( ?%)?)?( approx\.)?|–"
)

NOTHING: Mapping[str, Any] = MappingProxyType({})


def json_ready(item: Any) -> Any:
    """Return plain lists, dicts and numbers; what JSON has no number for (nan, inf) becomes None."""
    if isinstance(item, (np.ndarray, np.generic)):
        return json_ready(item.tolist())
    if isinstance(item, Mapping):
        return json_object(item)
    if isinstance(item, (tuple, list)):
        return [json_ready(part) for part in item]
    if isinstance(item, float):
        return item if math.isfinite(item) else None
    if item is None or isinstance(item, (bool, int, str)):
        return item
    return item.to_dict() if hasattr(item, "to_dict") else str(item)


def json_object(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping of plain values, ready for JSON."""
    return {str(key): json_ready(part) for key, part in fields.items()}


class Result:
    """What the frozen results have in common: a short repr, and `to_dict`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {part.name: json_ready(getattr(self, part.name)) for part in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = ((part.name, getattr(self, part.name)) for part in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={_short(item)}' for name, item in parts)})"


def _short(item: Any) -> str:
    """Show a number by six digits, an array or a list by its length once it is long."""
    if isinstance(item, (float, np.floating)):
        return f"{item:.6g}"
    if isinstance(item, (np.ndarray, tuple, list)) and len(item) > 4:
        return f"<{len(item):,} {'numbers' if isinstance(item, np.ndarray) else 'items'}>"
    return str(item.tolist()) if isinstance(item, np.ndarray) else repr(item)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Witness(Result):
    """A function of the prediction that proves a value: ``sum(residual * weight)`` attains it.

    `values` are the points where the function is given, `weights` what it is there, `meaning` one sentence
    for a reader.
    """

    values: Array
    weights: Array
    meaning: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certified(Result):
    """What a measure found: a value, and proven bounds on the exact value on the same data.

    `exact` says that the value itself is exact (up to rounding), not merely bracketed. `details` holds
    what a reader may want next (the arg-max interval, the plan, the bins), by name.
    """

    value: float
    lower: float
    upper: float
    exact: bool = True
    witness: Witness | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        bounds = "" if self.exact else f" in [{self.lower:.6g}, {self.upper:.6g}]"
        return f"Certified({self.value:.6g}{bounds})"

    @classmethod
    def point(cls, value: float, witness: Witness | None = None, **details: Any) -> Certified:
        """Return an exact value with its details."""
        return cls(value, value, value, True, witness, MappingProxyType(details))


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A measure taken of some forecasts: the value, and an interval that provably contains the exact one.

    For exact data `lower` and `upper` differ from `value` only where the algorithm stops at a tolerance
    (`exact` is then False). For a sketch they hold the value on the raw rows.
    """

    name: str
    value: float
    lower: float
    upper: float
    exact: bool
    n: int
    levels: int
    witness: Witness | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        bounds = "" if self.exact else f" in [{self.lower:.6g}, {self.upper:.6g}]"
        return f"Measurement({self.name} = {self.value:.6g}{bounds}, n = {self.n:,})"

    def to_dict(self) -> dict[str, Any]:
        """Return the scalar fields, ready for JSON (no witness, no arrays)."""
        plain = (bool, int, float, str, type(None))
        return {
            "name": self.name,
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "exact": self.exact,
            "n": self.n,
            "levels": self.levels,
            "options": json_ready(self.options),
            "details": {key: item for key, item in self.details.items() if isinstance(item, plain)},
        }


@dataclass(frozen=True, slots=True)
class TableCell:
    """What is shown, and what it sorts by (a number as Python writes it, or the text itself)."""

    text: str
    key: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table: column names and lines of cells.

    `inside` gives, for each line, the line under which it is folded on a page (None: not folded). A folded
    line follows the one it belongs to.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[TableCell, ...], ...]
    inside: tuple[int | None, ...] = ()

    def parent(self, line: int) -> int | None:
        """Return the line under which a line is folded."""
        return self.inside[line] if self.inside else None

    def folded(self, line: int) -> int:
        """Return how many lines are folded under a line."""
        return self.inside.count(line)

    @classmethod
    def from_texts(cls, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
        """Return a table of plain texts; those that look like numbers are aligned as numbers."""
        lines = (tuple(TableCell(text, text, _is_number(text)) for text in row) for row in rows)
        return cls(tuple(columns), tuple(lines))

    def without(self, name: str) -> Table:
        """Return the table without one of its columns."""
        kept = [k for k, column in enumerate(self.columns) if column != name]
        lines = tuple(tuple(line[k] for k in kept) for line in self.lines)
        return Table(tuple(self.columns[k] for k in kept), lines, self.inside)

    def as_text(self, width: int = 100) -> str:
        """Return aligned plain text; the longest text column is wrapped to fit into `width` characters."""
        numeric = self._numeric()
        texts = [self.columns, *(tuple(cell.text for cell in line) for line in self.lines)]
        widths = [max(len(line[k]) for line in texts) for k in range(len(self.columns))]
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        foldable = [k for k in range(len(widths)) if not numeric[k]]
        if excess > 0 and foldable:
            widest = max(foldable, key=lambda k: widths[k])
            if widths[widest] > excess:  # else the other columns alone are too wide, and folding is no help
                widths[widest] = max(MIN_COLUMN_WIDTH, widths[widest] - excess)
        rows = [row for line in texts for row in _wrapped(line, widths, numeric)]
        return "\n".join("  ".join(row).rstrip() for row in rows)

    def as_markdown(self) -> str:
        """Return a Markdown table."""
        rules = ["---:" if number else "---" for number in self._numeric()]
        texts = [self.columns, rules, *([cell.text for cell in line] for line in self.lines)]
        cells = ((text.replace("|", "\\|").replace("\n", " ") for text in line) for line in texts)
        return "\n".join(f"| {' | '.join(line)} |" for line in cells)

    def _numeric(self) -> list[bool]:
        """Return which columns hold numbers only."""
        return [
            bool(self.lines)
            and all(line[k].number or not line[k].text for line in self.lines)
            and any(line[k].number for line in self.lines)
            for k in range(len(self.columns))
        ]

    def as_html(self) -> str:
        """Return a plain HTML table, for notebooks."""
        numeric = self._numeric()
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


def _wrapped(line: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> Iterator[list[str]]:
    """Yield the rows of text that one line of a table takes."""
    cells = [
        textwrap.wrap(text, width, break_on_hyphens=False) or [""]
        for text, width in zip(line, widths, strict=True)
    ]
    for k in range(max(map(len, cells))):
        parts = (cell[k] if k < len(cell) else "" for cell in cells)
        yield [
            part.rjust(width) if number else part.ljust(width)
            for part, width, number in zip(parts, widths, numeric, strict=True)
        ]


def _is_number(text: str) -> bool:
    """Return whether a text is a number, an interval of numbers or a p-value, for alignment."""
    return bool(_NUMBER.fullmatch(text))


def _aligned(number: bool) -> str:
    """Return the style of a cell: notebooks would set every text to the right, and wrap numbers."""
    return ' style="text-align:right;white-space:nowrap"' if number else ' style="text-align:left"'


def html_paragraphs(*lines: str) -> str:
    """Return sentences as HTML, for notebooks."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line)


def text_cell(value: str) -> TableCell:
    """Return a cell of text."""
    return TableCell(value, value)


def number_cell(value: float | None, shown: str | None = None) -> TableCell:
    """Return a cell of a number, in short form unless `shown` is given."""
    return TableCell(format_value(value, 4) if shown is None else shown, sort_key(value), number=True)


def sort_key(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return repr(float(value)) if math.isfinite(value) else "-Infinity" if value < 0 else "Infinity"


TableRow = TypeVar("TableRow")


class Catalogue(Mapping[str, TableRow]):
    """A mapping that cannot be changed, shown as a list of names, in notebooks as a table.

    >>> Catalogue("fruits", {"apple": 1, "pear": 2}, {"name": str})
    <2 fruits: apple, pear>
    """

    def __init__(
        self,
        noun: str,
        rows: Mapping[str, TableRow],
        columns: Mapping[str, Callable[[TableRow], str]],
        aliases: Mapping[str, TableRow] = NOTHING,
    ) -> None:
        self._noun, self._rows, self._columns = noun, dict(rows), dict(columns)
        self._aliases = dict(aliases)  # found by name, and not listed

    def __getitem__(self, name: str) -> TableRow:
        return self._aliases[name] if name in self._aliases else self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._noun}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        lines = (tuple(text_cell(write(row)) for write in self._columns.values()) for row in self.values())
        return Table(tuple(self._columns), tuple(lines)).as_html()
