"""Rules: who is in a subpopulation, in words ("age >= 43 and county in {Inyo, Mono}") and among new rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.columns import Column, code_columns, named_columns
from calibrant.errors import InvalidInputError, reject_name
from calibrant.inputs import check_same_length
from calibrant.records import ValidRows

DEFAULT_COLUMN = "group"  # the column of groups that came without a name
AMBIGUOUS = re.compile(
    r'[=<>{},"\\\x00-\x1f\x7f-\x9f\u2028\u2029]|^[\s(]|\s$|^$|^missing$| (and|or|in|is|not) '
)


def written(name: str) -> str:
    """Return a column or category as written in a rule: quoted where it could be read as something else."""
    return _quoted(name) if AMBIGUOUS.search(name) else name


def _quoted(text: str) -> str:
    """Quote as JSON does; what would break the line or steer a terminal is escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", plain)


def label_in_words(value: Any) -> str:
    """Return a value as text; a moment without the zeros at its end, so that a date is one."""
    if not isinstance(value, np.datetime64 | datetime):
        return str(value)
    text = re.sub(r"\.(\d*?)0+$", r".\1", str(value).replace("T", " ")).rstrip(".")
    return text.removesuffix(" 00:00:00")


def value_in_words(value: Any, quoted: bool = False) -> str:
    if isinstance(value, float | np.floating):
        value = value + 0.0  # -0.0 is 0
        return f"{value:.17g}" if float(f"{value:.12g}") != value else f"{value:.12g}"
    if not isinstance(value, str):
        return written(label_in_words(value))
    return _quoted(value) if quoted else written(value)


@dataclass(frozen=True, slots=True)
class IsIn:
    """The column has one of some values, or none of them where `negated`."""

    column: str
    values: tuple[Any, ...]
    missing: bool = False  # whether that is one of the values
    negated: bool = False
    mixed: bool = False  # whether the column holds text and other values, so that text is quoted

    def __str__(self) -> str:
        name, values = written(self.column), [value_in_words(value, self.mixed) for value in self.values]
        if self.missing and not values:
            return f"{name} is {'not ' if self.negated else ''}missing"
        if len(values) == 1 and not self.missing:
            return f"{name} {'!=' if self.negated else '='} {values[0]}"
        listed = ", ".join((["missing"] if self.missing else []) + values)
        return f"{name} {'not in' if self.negated else 'in'} {{{listed}}}"

    def holds_each(self, values: Sequence[Any]) -> list[bool]:
        known = {_plain(one) for one in self.values}
        inside = (self.missing if value is None else _plain(value) in known for value in values)
        return [one != self.negated for one in inside]


@dataclass(frozen=True, slots=True)
class InRange:
    """The column lies at or above `low` and below `high`, either may be None; `missing` is in or out."""

    column: str
    low: Any
    high: Any
    missing: bool = False
    gaps: bool = False  # whether values were missing where the rule was found
    categories: tuple[Any, ...] | None = None  # that are meant: they have an order of their own

    def __str__(self) -> str:
        name = written(self.column)
        if self.low is None:
            text = f"{name} < {value_in_words(self.high)}"
            return f"({text} or missing)" if self.missing else f"{text} (not missing)" if self.gaps else text
        if self.high is None:
            return f"{name} >= {value_in_words(self.low)}"
        return f"{value_in_words(self.low)} <= {name} < {value_in_words(self.high)}"

    def holds_each(self, values: Sequence[Any]) -> list[bool]:
        low, high = _plain(self.low), _plain(self.high)

        def holds(value: Any) -> bool:
            if value is None:
                return self.missing
            if self.categories is not None:
                return value in self.categories
            plain = _plain(value)
            return bool((low is None or plain >= low) and (high is None or plain < high))

        return [holds(value) for value in values]


@dataclass(frozen=True, slots=True)
class MaskIs:
    """The rows where the user's mask of this name is true."""

    column: str

    def __str__(self) -> str:
        return self.column

    def holds_each(self, values: Sequence[Any]) -> list[bool]:
        for value in values:
            if not isinstance(value, bool | np.bool_):
                raise InvalidInputError(f"mask {self.column!r}", "must hold truth values", f"got {value!r}")
        return [bool(value) for value in values]


Condition = IsIn | InRange | MaskIs


def condition_in_words(condition: Condition) -> str:
    """Write a condition as a sentence does: "self-employed (employment)" for one text of a column."""
    if not isinstance(condition, IsIn) or condition.missing or condition.negated:
        return str(condition)
    if len(condition.values) > 1 or not isinstance(condition.values[0], str):
        return str(condition)
    return f"{value_in_words(condition.values[0], condition.mixed)} ({written(condition.column)})"


def check_kind(condition: Condition, labels: list[Any]) -> None:
    """Refuse new values that cannot be compared with those of the condition."""
    ends = condition.values if isinstance(condition, IsIn) else ()
    if isinstance(condition, InRange):
        ends = condition.categories or (condition.low, condition.high)
    known = {_kind(value) for value in ends if value is not None}
    kinds = {_kind(label) for label in labels if label is not None}
    compared = isinstance(condition, InRange) and condition.categories is None
    if known and kinds and (not known & kinds or (compared and not kinds <= known)):
        rule = f"must hold {'/'.join(sorted(known))} as in the rule"
        raise InvalidInputError(f"column {condition.column!r}", rule, f"got {'/'.join(sorted(kinds))}")


def _kind(value: Any) -> str:
    if isinstance(value, timedelta | np.timedelta64):  # numpy counts the latter among numbers
        return "durations"
    if isinstance(value, bool | np.bool_ | Real | Decimal | np.number):
        return "numbers"
    if isinstance(value, date | np.datetime64):
        return "dates"
    return "times" if isinstance(value, time) else "text" if isinstance(value, str) else "other values"


def _plain(value: Any) -> Any:
    """Return a value that compares alike, whichever container it came from."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, timedelta | np.timedelta64):
        return np.timedelta64(value).astype("timedelta64[us]").astype(np.int64).item()
    if isinstance(value, date | np.datetime64):
        if isinstance(value, datetime):
            value = value.replace(tzinfo=None)
        return np.datetime64(value).astype("datetime64[us]").astype(np.int64).item()
    return value.item() if isinstance(value, np.generic) else value


EVERYONE = "everyone"


class Rule(str):
    """Who is in a subpopulation: a text that people read, and that picks the members among new rows.

    As a string it is the rule in words; columns and values that could be misread are quoted. `conditions`
    must all hold; none at all means everyone. The rule of a mask that the user named is that name.

    >>> rule = Rule([IsIn("city", ("B",)), InRange("age", 43.0, None)])
    >>> print(rule)
    city = B and age >= 43
    >>> rule.members({"city": ["A", "B", "B"], "age": [50, 50, 20]}).tolist()
    [False, True, False]
    """

    conditions: tuple[Condition, ...]

    def __new__(cls, conditions: Iterable[Condition] = ()) -> Rule:
        given = tuple(conditions) if isinstance(conditions, Iterable) else (conditions,)
        for condition in given:
            if not isinstance(condition, Condition):
                hint = "take the rule of a group of audit, or build it of IsIn, InRange and MaskIs"
                raise InvalidInputError("rule", "must be made of conditions", f"got {condition!r}", hint)
        self = super().__new__(cls, " and ".join(map(str, given)) or EVERYONE)
        self.conditions = given
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.conditions,)

    def members(self, frame: Any) -> npt.NDArray[np.bool_]:
        """Return which rows of a frame are members: any data frame, or a mapping of names to columns."""
        named = dict(named_columns(frame, "frame"))
        for name, values in named.items():
            if not hasattr(values, "__len__"):
                raise InvalidInputError(f"column {name!r}", "must be one-dimensional", f"got {values!r}")
        inside = np.ones(len(next(iter(named.values()), ())), dtype=bool)
        for condition in self.conditions:
            name = condition.column
            if name not in named:
                raise reject_name("column of the rule", name, list(named))
            check_same_length(named[name], inside, (f"column {name!r}", "the first column"))
            (column,) = code_columns({name: named[name]}, len(inside), "frame")
            labels = list(column.labels)  # every distinct value is judged once
            check_kind(condition, labels)
            inside &= np.array(condition.holds_each(labels), dtype=bool)[column.codes]
        return inside


def conjunction(conditions: Iterable[Condition | None]) -> Rule:
    """Return the rule of some conditions; those that exclude no record are None."""
    return Rule(condition for condition in conditions if condition is not None)


def between(column: Column, low: int, high: int) -> Condition | None:
    """Say that the code of an ordered column lies in low .. high - 1; a gap in the data is code 0."""
    end, lowest = len(column.labels), 1 if column.missing else 0
    if high - low == 1:
        return one_of(column, [low])
    if low <= lowest and high == end:
        return IsIn(column.name, (), missing=True, negated=True) if low == 1 and column.missing else None
    # the order of texts is not that of their values
    named = tuple(label for label in column.labels[low:high] if label is not None) if _texts(column) else None
    return InRange(
        column.name,
        None if low <= lowest else _cut(column, low),
        None if high == end else _cut(column, high),
        missing=column.missing and low == 0,
        gaps=column.missing,
        categories=named,
    )


def among(column: Column, codes: Iterable[int]) -> IsIn | None:
    """Say that a column takes one of several categories, by the shorter of the list and its complement."""
    inside = sorted(codes)
    outside = sorted(set(range(len(column.labels))) - set(inside))
    if not outside:
        return None
    if len(inside) > 1 and (len(outside) == 1 or len(outside) < len(inside)):
        return one_of(column, outside, negated=True)
    return one_of(column, inside)


def one_of(column: Column, codes: Sequence[int], negated: bool = False) -> IsIn:
    gap = column.missing and 0 in codes
    values = tuple(column.labels[code] for code in codes if not (gap and code == 0))
    return IsIn(column.name, values, gap, negated, _is_mixed(column))


def single_column(argument: str, groups: Any, checked: ValidRows, hint: str) -> Column:
    """Code the one column of groups, for the rows that are kept."""
    if groups is None:
        raise InvalidInputError(argument, "must be given", "got None", "one label per row")
    one_by_one = isinstance(groups, list | tuple) or (isinstance(groups, np.ndarray) and groups.ndim == 1)
    if one_by_one or getattr(groups, "name", "") is None:  # a series without a name
        groups = {DEFAULT_COLUMN: groups}
    columns = code_columns(groups, checked.length, argument, labels=checked.labels)
    if len(columns) != 1:
        names = ", ".join(column.name for column in columns)
        raise InvalidInputError(argument, "must be one column", f"got {names}", hint)
    rows = np.arange(checked.length) if checked.rows is None else checked.rows
    return columns[0].drop_unused_labels(rows).take(rows)


def written_labels(column: Column) -> list[str]:
    """Return the labels in words, 2018 for 2018.0; text is quoted where another label could read the same."""
    mixed, names = _is_mixed(column), []
    for label in column.labels:
        if label is None:
            names.append("missing")
        elif isinstance(label, str) and (mixed or (column.missing and label == "missing")):
            names.append(_quoted(label))
        else:  # a missing value turns whole numbers into floats
            whole = isinstance(label, float | np.floating) and float(label).is_integer()
            names.append(str(int(label)) if whole else label_in_words(label))
    return names


def _is_mixed(column: Column) -> bool:
    return 0 < _texts(column) < len(column.labels) - int(column.missing)


@lru_cache(maxsize=64)  # asked once per value of the column, which may have very many
def _texts(column: Column) -> int:
    return sum(isinstance(label, str) for label in column.labels)


def _cut(column: Column, code: int) -> Any:
    """Return the shortest number that separates the values below `code` from those at and above it."""
    below, above = column.labels[code - 1], column.labels[code]
    if not isinstance(above, float | np.floating) or below is None:
        return above
    for digits in range(1, 17):
        short = float(f"{above:.{digits}g}")
        if below < short <= above:
            return short
    return above


FORMAT, VERSION = "calibrant_rules", 1
KINDS: Mapping[str, type[Condition]] = {"one of": IsIn, "within": InRange, "mask": MaskIs}


def rule_to_list(rule: Rule) -> list[dict[str, Any]]:
    """Return the conditions of a rule, ready for JSON."""
    kinds = {one: name for name, one in KINDS.items()}
    listed = []
    for one in rule.conditions:
        values = {part.name: _plain_json(getattr(one, part.name)) for part in fields(one)}
        listed.append({"kind": kinds[type(one)], **values})
    return listed


def rule_from_list(items: Sequence[Mapping[str, Any]]) -> Rule:
    """Rebuild a rule; reject anything that is not a condition."""
    return Rule([_read(item) for item in items])


def rules_to_json(rules: Sequence[Rule]) -> str:
    """Return rules as the text of a file, each in words and as conditions."""
    listed = [{"rule": str(rule), "conditions": rule_to_list(rule)} for rule in rules]
    return json.dumps({FORMAT: VERSION, "rules": listed}, indent=1, ensure_ascii=False) + "\n"


def rules_from_json(text: str, subject: str) -> tuple[Rule, ...]:
    """Read what `rules_to_json` wrote; anything else is refused, by the name of its file."""
    try:
        stored = json.loads(text)
        if stored[FORMAT] != VERSION:
            raise ValueError
        return tuple(rule_from_list(item["conditions"]) for item in stored["rules"])
    except (KeyError, TypeError, ValueError):
        hint = "calibrant audit --rules writes one"
        raise InvalidInputError(subject, "must be a file of rules", hint=hint) from None


def _plain_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_json(one) for one in value]
    kind = _kind(value)
    if kind == "dates":
        return {"moment": str(np.datetime64(value))}
    if kind == "times":
        return {"time": value.isoformat()}
    plain = _plain(value)  # as conditions compare it
    if kind == "durations":
        return {"microseconds": plain}
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    got = f"got {value!r} of type {type(value).__name__}"
    raise InvalidInputError("a rule that is saved", "must use numbers, text or dates", got)


def _read(item: Mapping[str, Any]) -> Condition:
    try:
        kind = KINDS[item["kind"]]
        condition = kind(**{name: _value(value) for name, value in item.items() if name != "kind"})
        lists = [getattr(condition, name, None) or () for name in ("values", "categories")]
        if not isinstance(condition.column, str) or not all(isinstance(one, tuple) for one in lists):
            raise TypeError
        return condition
    except (KeyError, TypeError, ValueError, AttributeError):
        rule = "must be a mask, one of some values, or within limits"
        raise InvalidInputError("a condition of a rule", rule, f"got {item!r}") from None


def _value(stored: Any) -> Any:
    if isinstance(stored, list):
        return tuple(_value(one) for one in stored)
    if not isinstance(stored, Mapping):
        return stored
    ((unit, value),) = stored.items()
    if unit == "moment":
        return np.datetime64(value)
    return np.timedelta64(value, "us") if unit == "microseconds" else time.fromisoformat(value)
