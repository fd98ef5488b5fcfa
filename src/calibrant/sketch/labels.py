"""The one grammar of group labels, whatever engine or file they come from.

A label is text, a truth value, a number or None (missing). A number without a fraction is an int, so 1.0
is 1. Dates and times are text: 2024-01-31, 2024-01-31 12:30:00.5, and 2024-01-31 11:30:00+00:00 in UTC where
the time zone is known; midnight without a zone is its date. Equal values then have equal labels, and
sketches of one day from Spark and of the next from pandas add up group by group.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.io.read import refuse_nested
from calibrant.io.sources import SourceColumn

Label = tuple[Any, ...]
Reader = Callable[[Any], Any]
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
SECOND = 10**9  # nanoseconds
LISTS = (list, tuple, dict, set, np.ndarray)  # more than one value


def plain_label(item: Any) -> Any:
    """Return the label of a Python value.

    >>> plain_label(2.0), plain_label(Decimal("1.50")), plain_label(datetime.date(2024, 1, 31))
    (2, 1.5, '2024-01-31')
    """
    if isinstance(item, np.datetime64):
        return None if np.isnat(item) else moment(_nanoseconds(item, "datetime64"))
    if isinstance(item, np.timedelta64):
        return None if np.isnat(item) else duration(_nanoseconds(item, "timedelta64"))
    if isinstance(item, np.generic):
        item = item.item()
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, (str, bool, int)):
        return item
    if isinstance(item, float):
        return None if math.isnan(item) else int(item) if item.is_integer() else item
    if isinstance(item, Decimal):
        return exact_number(item)
    if isinstance(item, (datetime.date, datetime.time, datetime.timedelta)):
        return _time_label(item)
    if isinstance(item, (*LISTS, bytes)):
        rule, got = "must hold one value per row", f"got {type(item).__name__}"
        raise InvalidInputError("column of groups", rule, got, "choose one element, or make it text")
    return str(item)


def _nanoseconds(item: Any, kind: str) -> int:
    """Return numpy's time as whole nanoseconds; 64 bits of them end in the year 2262, of microseconds not."""
    fine = np.datetime_data(item.dtype)[0] in ("ns", "ps", "fs", "as")
    ticks = int(item.astype(f"{kind}[{'ns' if fine else 'us'}]").astype(np.int64))
    return ticks if fine else ticks * 1000


def exact_number(value: Decimal) -> int | float | str | None:
    if value.is_nan():
        return None
    if not value.is_finite():
        return float(value)
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else f"{value.normalize():f}"


def moment(nanoseconds: int, zone: bool = False) -> str:
    """Return the text of a moment, given in nanoseconds since 1970 (in UTC where the zone is known).

    >>> moment(0), moment(1_500_000_000), moment(0, zone=True)
    ('1970-01-01', '1970-01-01 00:00:01.5', '1970-01-01 00:00:00+00:00')
    """
    seconds, rest = divmod(nanoseconds, SECOND)
    text = str(EPOCH + datetime.timedelta(seconds=seconds))
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{text}{fraction}+00:00" if zone else date_if_midnight(text + fraction)


def date_if_midnight(text: str) -> str:
    """Leave out a time of day that is midnight: engines disagree on whether a date has one."""
    return text.removesuffix(" 00:00:00")


def duration(nanoseconds: int) -> str:
    seconds, rest = divmod(abs(nanoseconds), SECOND)
    sign = "-" if nanoseconds < 0 else ""
    return f"{sign}{seconds}" + (f".{rest:09d}".rstrip("0") if rest else "") + " s"


def _time_label(item: Any) -> str:
    if isinstance(item, datetime.timedelta):
        return duration(item // MICROSECOND * 1000 + int(getattr(item, "nanoseconds", 0) or 0))
    if isinstance(item, datetime.time):
        return time_text(item.isoformat())
    if not isinstance(item, datetime.datetime):
        return str(item)
    aware = item.tzinfo is not None
    naive = item.astimezone(datetime.UTC).replace(tzinfo=None) if aware else item
    return moment((naive - EPOCH) // MICROSECOND * 1000 + int(getattr(item, "nanosecond", 0)), aware)


def time_text(text: str) -> str:
    return re.sub(r"(\.\d*?)0+$", r"\1", text).rstrip(".") if "." in text else text


def cell_label(text: str) -> Any:
    """Return the label of a CSV cell: a number if it is written as one is, else the text itself.

    >>> cell_label("12"), cell_label("1.0"), cell_label("007"), cell_label("1.10"), cell_label("true")
    (12, 1, '007', '1.10', True)
    """
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.0)?", text):
        return int(text.removesuffix(".0"))
    if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) and repr(float(text)) == text:
        return plain_label(float(text))
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", text):
        return date_if_midnight(time_text(text))
    return text


def label_sql(column: SourceColumn) -> str:
    refuse_nested(column)
    kind, cell = column.kind, column.sql
    if kind == "TEXT":
        return f"CASE WHEN trim({cell}) = '' THEN NULL ELSE {cell} END"  # "NA" may be a name
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"CAST(timezone('UTC', {cell}) AS VARCHAR) || '+00:00'"
    if kind == "INTERVAL":
        return f"CAST(round(epoch({cell}) * 1000000) AS BIGINT)"
    if kind in ("BLOB", "BIT"):
        rule, got = "must hold text, numbers or dates", f"got values of type {kind}"
        raise InvalidInputError(f"column {column.name!r}", rule, got)
    return cell if labels_of(kind)[1] is plain_label else f"CAST({cell} AS VARCHAR)"


# By how SQL types begin: the family, whose labels may be appended to each other, and what turns a value of
# the type, as `label_sql` gives it, into a label
LABELS_OF: dict[str, tuple[str, Reader]] = {
    "TEXT": ("TEXT", cell_label),
    "JSON": ("JSON", lambda text: plain_label(json.loads(text))),
    "VARCHAR": ("VARCHAR", plain_label),
    "ENUM": ("VARCHAR", str),
    "UUID": ("VARCHAR", str),
    "BOOLEAN": ("BOOLEAN", plain_label),
    "INTERVAL": ("INTERVAL", lambda micro: duration(int(micro) * 1000)),
    "TIMESTAMP WITH TIME ZONE": ("instant", date_if_midnight),
    "TIMESTAMP": ("moment", date_if_midnight),
    "DATE": ("moment", date_if_midnight),
    "TIME": ("time", time_text),
    "DECIMAL": ("exact", lambda text: exact_number(Decimal(text))),
    "HUGEINT": ("exact", lambda text: exact_number(Decimal(text))),
    "UHUGEINT": ("exact", lambda text: exact_number(Decimal(text))),
    "": ("number", plain_label),
}


def labels_of(kind: str) -> tuple[str, Reader]:
    return next(found for start, found in LABELS_OF.items() if kind.startswith(start))


def ordered_labels(labels: set[Label]) -> tuple[Label, ...]:
    """Return labels in an order that does not depend on the engine: by type, then by value."""

    def place(item: Any) -> tuple[str, Any]:
        kind = "number" if isinstance(item, (int, float)) else type(item).__name__
        return kind, 0 if item is None else item

    return tuple(sorted(labels, key=lambda label: [place(item) for item in label]))


def refuse_truth_beside_numbers(subject: str, items: Iterable[Any]) -> None:
    """Refuse True next to 1 and False next to 0: they are equal, so their groups would silently be joined."""
    truth: dict[Any, bool] = {}
    for item in items:
        if truth.setdefault(item, isinstance(item, bool)) != isinstance(item, bool):
            rule, got = "must not mix truth values and numbers", f"got {bool(item)} and {int(item)}"
            raise InvalidInputError(subject, rule, got, "write the truth values as 0 and 1")


def refuse_lookalikes(labels: Sequence[Label]) -> None:
    """Refuse labels that read alike but differ, 1 and "1": their groups would silently stay apart."""
    for column in zip(*labels, strict=True):
        refuse_truth_beside_numbers("labels of the sketches", column)
    seen: dict[tuple[str, ...], Label] = {}
    for label in labels:
        known = seen.setdefault(tuple(map(_shown, label)), label)
        if known != label:
            rule, got = "must have labels of one type", f"got {known!r} and {label!r}"
            hint = "make the column text, or a number, in all of them"
            raise InvalidInputError("sketches", rule, got, hint)


def _shown(item: Any) -> str:
    if item is None:
        return "\0"  # no text
    return str(item).lower() if isinstance(item, bool) else str(item)
