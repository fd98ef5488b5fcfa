"""Numbers that stand in a file as text: how a cell is read, and what is said of a cell that is none.

A cell is read by itself. What the cells above or below it hold never changes what it means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from calibrant.errors import InvalidInputError, sentence
from calibrant.scale.session import literal

TEXT_FOR_MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")


@dataclass(frozen=True, slots=True)
class Notation:
    """How numbers are written: the decimal mark, and whether a percent sign means hundredths."""

    decimal: str = "."
    percent: bool = False

    def __post_init__(self) -> None:
        """Refuse marks that no one writes."""
        if self.decimal not in (".", ","):
            raise InvalidInputError(sentence("decimal", "must be '.' or ','", f"got {self.decimal!r}"))


# How the numbers of this run are written, where the caller does not say
written_as: ContextVar[Notation] = ContextVar("written_as", default=Notation())  # noqa: B039 - it is frozen


def number_sql(text: str, notation: Notation) -> str:
    """Return the SQL that reads text as a number: NULL where it is missing or not a number."""
    # trim() keeps DuckDB from handing the cast to its CSV reader, which would fail where TRY_CAST must not
    digits = f"trim({text})"
    if notation.decimal == ",":
        # a point would be a thousands separator or a mistake: neither is read
        digits = f"CASE WHEN contains({text}, '.') THEN NULL ELSE replace(trim({text}), ',', '.') END"
    hundredths = ""
    if notation.percent:
        bare = f"trim(rtrim({digits}, '%'))"
        hundredths = f", CASE WHEN {digits} LIKE '%\\%' ESCAPE '\\' THEN TRY_CAST({bare} AS DOUBLE) / 100 END"
    truth = f"CASE lower(trim({text})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"coalesce(TRY_CAST({digits} AS DOUBLE){hundredths}, {truth})"


def unless_missing(text: str, missing: str, otherwise: str) -> str:
    """Return the SQL of one value where a cell stands for a missing value, and of another elsewhere.

    Not by IN: DuckDB makes a join of a long list, and a join by several threads changes the order of rows.
    """
    cases = " ".join(f"WHEN {literal(word)} THEN {missing}" for word in TEXT_FOR_MISSING)
    return f"CASE trim({text}) {cases} ELSE {otherwise} END"


def unread_sql(text: str, number: str) -> str:
    """Return the SQL condition of cells that hold text, but no number."""
    return f"({number}) IS NULL AND {text} IS NOT NULL AND {unless_missing(text, 'false', 'true')}"


def not_a_number(column: str, text: str, where: str) -> InvalidInputError:
    """Build the error for a cell that is no number, with the hint that fits it."""
    return InvalidInputError(
        sentence(f"column {column!r}", "must be numeric", f"got the text {text!r}{where}", hint(text))
    )


def hint(text: str) -> str:
    """Say what to do about a cell that is no number.

    >>> hint("0,75"), hint("75 %")
    ('this is a decimal comma; pass --decimal ,', 'this is a percentage; pass --percent')
    """
    shown = text.strip()
    if re.fullmatch(r"[+-]?\d+([.,]\d+)?\s*%", shown):
        return "this is a percentage; pass --percent" + (" and --decimal ," if "," in shown else "")
    if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", shown):
        return "this is a decimal comma; pass --decimal ,"
    if re.fullmatch(r"[+-]?\d+\.\d+", shown):
        return "this is a decimal point; leave --decimal , out"
    if re.fullmatch(r"[+-]?[\d.,' ]+\d", shown):
        return "write it without separators of thousands"
    return "correct the cells, and leave them empty where the value is missing; or map the labels to 0 and 1"


def refuse_repeats(names: Sequence[str]) -> None:
    """Refuse one column in two roles, as outcome and prediction or as weight: a slip that gives a number."""
    for name in names:
        if names.count(name) > 1:
            rule, got = "must be different columns", f"got {name!r} {names.count(name)} times"
            raise InvalidInputError(sentence("outcome, prediction and weight", rule, got))
