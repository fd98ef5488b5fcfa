"""Columns of groups and covariates: numbers, dates, truth values or text, decided by the whole column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.scale.sources import Source, SourceColumn
from calibrant.scale.text_numbers import Notation, unless_missing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What a cell must look like for its column to be of a type; the first type that fits every cell is taken.
# Leading zeros make a name of digits: a postal code is not a number. Whole numbers too long for 64 bits are
# names too: floats would round them, and make one of two identifiers.
SHAPES = {
    "BIGINT": r"[+-]?(0|[1-9][0-9]{0,18})",
    "VARCHAR": r"[+-]?(0|[1-9][0-9]*)",
    "DOUBLE": r"[+-]?(0?\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][+-]?[0-9]+)?|[+-]?(?i)inf(inity)?",
    "BOOLEAN": "(?i)true|false",
    "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?",
}
SHOWN_AS = {
    "ENUM": "VARCHAR",
    "UUID": "VARCHAR",
    "DECIMAL": "DOUBLE",
    "HUGEINT": "DOUBLE",
    "UHUGEINT": "DOUBLE",
}
WHOLE = re.compile(r"U?HUGEINT|DECIMAL\(\d+,0\)")  # types of whole numbers that floats may round
EXACT = 2**53  # up to here a float is every whole number


def category_column(
    connection: DuckDBPyConnection, parts: Sequence[Source], name: str, notation: Notation
) -> npt.NDArray[Any]:
    """Return one column of any type, in the order of the rows."""
    columns = [part.columns[name] for part in parts]
    for column in columns:
        refuse_nested(column)
    if any(column.text is None for column in columns):
        return _together([_typed_cells(connection, part, name) for part in parts])
    texts = [f"SELECT {_cell(part.columns[name], notation)} AS t FROM {part.scan}" for part in parts]
    kind = _kind(connection, " UNION ALL ".join(texts))
    if kind == "VARCHAR":  # among names, "NA" and "None" are names: only an empty cell is missing
        texts = [f"SELECT {_label(part.columns[name])} AS t FROM {part.scan}" for part in parts]
    cells = [f"SELECT TRY_CAST(t AS {kind}) AS x FROM ({text})" for text in texts]
    return _together([_filled(connection.execute(query).fetchnumpy()["x"]) for query in cells])


def refuse_nested(column: SourceColumn) -> None:
    """Say in words that a column of lists or records has no groups."""
    if column.kind.endswith("]") or column.kind.startswith(("STRUCT", "MAP", "UNION", "VARIANT")):
        rule, got = "must hold one value per row", f"got values of type {column.kind}"
        hint = "choose one element, or join them to text"
        raise InvalidInputError(sentence(f"column {column.name!r}", rule, got, hint))


def _typed_cells(connection: DuckDBPyConnection, part: Source, name: str) -> npt.NDArray[Any]:
    """Return the cells of a column that has a type in the file."""
    column = part.columns[name]
    kind = SHOWN_AS.get(column.kind.split("(")[0], "")
    long = bool(WHOLE.fullmatch(column.kind)) and _rounded_by_floats(connection, column.sql, part.scan)
    kind = "VARCHAR" if long else kind
    cell = f"CAST({column.sql} AS {kind})" if kind else column.sql
    cells = _filled(connection.execute(f"SELECT {cell} AS x FROM {part.scan}").fetchnumpy()["x"])
    if not long:
        return cells
    return np.array([None if text is None else int(text) for text in cells.tolist()], dtype=object)


def _rounded_by_floats(connection: DuckDBPyConnection, cell: str, scan: str) -> bool:
    """Return whether some whole number of a column is too long for a float."""
    query = f"SELECT bool_or({cell} NOT BETWEEN -{EXACT} AND {EXACT}) FROM {scan}"
    return bool(connection.execute(query).fetchall()[0][0])


def _cell(column: SourceColumn, notation: Notation) -> str:
    """Return the SQL of the text of a cell, NULL where it stands for a missing value."""
    text = str(column.text)
    known = unless_missing(text, "NULL", text)
    return known if notation.decimal == "." else f"replace({known}, ',', '.')"


def _label(column: SourceColumn) -> str:
    """Return the SQL of the text of a cell as it stands, NULL where it is empty."""
    return f"CASE WHEN trim({column.text}) = '' THEN NULL ELSE {column.text} END"


def _kind(connection: DuckDBPyConnection, texts: str) -> str:
    """Return the first type of SHAPES that every cell of a column has, else text."""
    tests = [
        f"bool_and(regexp_full_match(trim(t), '{shape}') AND TRY_CAST(t AS {kind}) IS NOT NULL)"
        for kind, shape in SHAPES.items()
    ]
    distinct = f"SELECT DISTINCT t FROM ({texts}) WHERE t IS NOT NULL"
    [fits] = connection.execute(f"SELECT {', '.join(tests)} FROM ({distinct})").fetchall()
    return next((kind for kind, fit in zip(SHAPES, fits, strict=True) if fit), "VARCHAR")


def _filled(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put the missing value of its type where DuckDB left a gap."""
    absent = np.ma.getmaskarray(column)
    values = np.asarray(np.ma.getdata(column))
    if not absent.any():
        return values
    if values.dtype.kind in "iuf" and not _too_long_for_floats(values[~absent]):
        return np.where(absent, np.nan, values.astype(np.float64))
    if values.dtype.kind == "M":
        return np.where(absent, np.array("NaT", dtype=values.dtype), values)
    out = values.astype(object)
    out[absent] = None
    return out


def _too_long_for_floats(values: npt.NDArray[Any]) -> bool:
    """Return whether floats, which can be missing, would round these whole numbers."""
    if values.dtype.kind == "f" or not len(values):
        return False
    return max(abs(int(values.min())), abs(int(values.max()))) > EXACT


def _together(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Append columns; numbers stay numbers unless that rounds them, and types that do not mix are objects."""
    kinds = {"n" if part.dtype.kind in "iuf" else part.dtype.kind for part in parts}
    alike = len(kinds) == 1
    if kinds == {"n"} and len({part.dtype.kind for part in parts}) > 1:
        alike = not any(_too_long_for_floats(part) for part in parts)
    return np.concatenate(parts if alike else [part.astype(object) for part in parts])
