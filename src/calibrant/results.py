"""Result types shared by all packages: the base class, certified values, tables and catalogs."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from itertools import zip_longest
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from calibrant.errors import MissingDependencyError, reject_name
from calibrant.formatting import format_value

Array = npt.NDArray[np.float64]

LIBRARIES = ("pyarrow", "polars", "pandas")  # that hold frames in memory, the least copying first
NOTHING: Mapping[str, Any] = MappingProxyType({})


def frame_of(columns: Mapping[str, Sequence[Any]], backend: str) -> Any:
    import narwhals as nw

    if backend not in LIBRARIES:
        raise reject_name("backend", backend, list(LIBRARIES))
    try:
        return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
    except ImportError:
        hint = f"pip install {backend}"
        raise MissingDependencyError("this frame", f"needs {backend}", hint=hint) from None


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
    if hasattr(item, "to_dict"):
        return item.to_dict()
    if is_dataclass(item):
        return {part.name: json_ready(getattr(item, part.name)) for part in fields(item)}
    return str(item)


def json_object(fields: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): json_ready(part) for key, part in fields.items()}


class Result:
    """Base class of frozen results: repr, HTML, JSON and frame follow from the fields of the dataclass.

    A subclass is decorated with ``@dataclass(frozen=True, slots=True, repr=False)``. Where it has them, it
    defines `__str__` (its sentence), `sheet` or `tables` (below it in notebooks), `rows` (of `to_frame`)
    and `approximate` (the names of fields that hold only approximately).
    """

    __slots__ = ()

    HIDDEN: ClassVar[tuple[str, ...]] = ()  # fields that `to_dict` leaves out, such as long arrays
    DERIVED: ClassVar[tuple[str, ...]] = ()  # what it adds; "sentence", the text of `__str__`, comes first

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        names = [part.name for part in fields(self) if part.name not in self.HIDDEN]  # type: ignore[arg-type]
        found = {name: getattr(self, name) for name in (*names, *self.DERIVED) if name != "sentence"}
        if "sentence" in (*names, *self.DERIVED):
            found = {"sentence": getattr(self, "sentence", None) or str(self), **found}
        return json_object(found)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the result that `to_dict` wrote; fields that are missing have their defaults."""
        kinds = get_type_hints(cls)
        names = [part.name for part in fields(cls) if part.name in stored]  # type: ignore[arg-type]
        return cls(**{name: _restored(kinds[name], stored[name]) for name in names})

    def tables(self) -> Sequence[Table]:
        sheet = getattr(self, "sheet", None)
        return () if sheet is None else (sheet(),)

    def rows(self) -> Sequence[Result]:
        """Return what `to_frame` has one row for: this result itself, unless it lists others."""
        return (self,)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a frame ("pandas", "polars" or "pyarrow")."""
        lines = [row.to_dict() for row in self.rows()]
        return frame_of({key: [line[key] for line in lines] for key in (lines[0] if lines else ())}, backend)

    def __repr__(self) -> str:
        parts = ((part.name, getattr(self, part.name)) for part in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={_short(item)}' for name, item in parts)})"

    def _repr_html_(self) -> str | None:
        """Return the sentence and the tables; None (notebooks then show the repr) where there are none."""
        said = type(self).__str__ is not object.__str__
        tables = self.tables()
        if not said and not tables:
            return None
        return html_paragraphs(str(self) if said else "") + "".join(table.as_html() for table in tables)


def _restored(kind: Any, stored: Any) -> Any:
    inner = [part for part in get_args(kind) if part is not type(None)]
    outer = get_origin(kind)
    if outer in (Union, UnionType):
        return None if stored is None else _restored(inner[0], stored) if len(inner) == 1 else stored
    if stored is None:
        return math.nan if kind is float else None
    if outer is np.ndarray:
        return np.array([math.nan if item is None else item for item in stored])
    if outer is tuple:
        kinds = [inner[0]] * len(stored) if inner[-1] is ... else inner
        return tuple(_restored(one, item) for one, item in zip(kinds, stored, strict=True))
    if isinstance(outer, type) and issubclass(outer, Mapping):
        return {key: _restored(inner[1], item) for key, item in stored.items()}
    return kind.from_dict(stored) if isinstance(kind, type) and issubclass(kind, Result) else stored


def _short(item: Any) -> str:
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

    @classmethod
    def bounded(cls, value: float, lower: float, upper: float, exact: bool, **details: Any) -> Certified:
        """Return a value that is known between bounds, with its details."""
        return cls(value, lower, upper, exact, None, MappingProxyType(details))


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
        scalars = ("name", "value", "lower", "upper", "exact", "n", "levels")
        return {
            **{name: getattr(self, name) for name in scalars},
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
    columns: tuple[str, ...]
    lines: tuple[tuple[TableCell, ...], ...]

    @classmethod
    def from_texts(cls, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
        """Return a table of plain texts; those that look like numbers are aligned as numbers."""
        interval = r"( to [-+]?\d[\d,.]*( ?%)?)?"
        number = re.compile(rf"[-+≤<]?\s?\d[\d,]*(\.\d+)?(e[-+]?\d+)?\s?(%|points)?{interval}( approx\.)?|–")
        lines = (tuple(TableCell(text, text, bool(number.fullmatch(text))) for text in row) for row in rows)
        return cls(tuple(columns), tuple(lines))

    def without(self, name: str) -> Table:
        kept = [k for k, column in enumerate(self.columns) if column != name]
        lines = tuple(tuple(line[k] for k in kept) for line in self.lines)
        return Table(tuple(self.columns[k] for k in kept), lines)

    def as_text(self, width: int = 100) -> str:
        """Return aligned plain text; the longest text column is wrapped to fit into `width` characters."""
        numeric = self._numeric()
        texts = [self.columns, *(tuple(cell.text for cell in line) for line in self.lines)]
        widths = [max(len(line[k]) for line in texts) for k in range(len(self.columns))]
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        foldable = [k for k in range(len(widths)) if not numeric[k]]
        if excess > 0 and foldable:
            widest = max(foldable, key=lambda k: widths[k])
            if (
                widths[widest] > excess
            ):  # else the other columns alone are too wide, and folding does not help
                widths[widest] = max(12, widths[widest] - excess)
        rows = [row for line in texts for row in _wrapped(line, widths, numeric)]
        return "\n".join("  ".join(row).rstrip() for row in rows)

    def as_markdown(self) -> str:
        rules = ["---:" if number else "---" for number in self._numeric()]
        texts = [self.columns, rules, *([cell.text for cell in line] for line in self.lines)]
        cells = ((text.replace("|", "\\|").replace("\n", " ") for text in line) for line in texts)
        return "\n".join(f"| {' | '.join(line)} |" for line in cells)

    def _numeric(self) -> list[bool]:
        return [
            bool(self.lines)
            and all(line[k].number or not line[k].text for line in self.lines)
            and any(line[k].number for line in self.lines)
            for k in range(len(self.columns))
        ]

    def as_html(self) -> str:
        """Return a plain HTML table, for notebooks, which would set every text to the right."""

        def row(tag: str, texts: Iterable[tuple[str, bool]]) -> str:
            styles = ("text-align:left", "text-align:right;white-space:nowrap")
            cells = (f'<{tag} style="{styles[number]}">{escape(text)}</{tag}>' for text, number in texts)
            return f"<tr>{''.join(cells)}</tr>"

        head = row("th", zip(self.columns, self._numeric(), strict=True))
        body = "".join(row("td", ((cell.text, cell.number) for cell in line)) for line in self.lines)
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _wrapped(line: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> Iterator[list[str]]:
    cells = [
        textwrap.wrap(text, width, break_on_hyphens=False) or [""]
        for text, width in zip(line, widths, strict=True)
    ]
    for parts in zip_longest(*cells, fillvalue=""):
        yield [
            part.rjust(width) if number else part.ljust(width)
            for part, width, number in zip(parts, widths, numeric, strict=True)
        ]


def html_paragraphs(*lines: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line)


def text_cell(value: str) -> TableCell:
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
    """A mapping that cannot be changed, shown as a list of names, in notebooks as a table."""

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
