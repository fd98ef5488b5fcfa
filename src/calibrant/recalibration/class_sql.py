"""Maps of several classes as SQL: one expression per class, each of all columns."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.errors import InvalidInputError, sentence
from calibrant.inputs import ROW_SUM
from calibrant.recalibration.maps.classes import HINT, ClassMap
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.sql import (
    SparkAlgebra,
    SqlAlgebra,
    double_column,
    find_dialect,
    is_probability,
    quoted_column,
    sql_number,
    where_usable,
    within_limit,
)

ENDING = "_recalibrated"


def class_sql(fitted: Map, columns: Sequence[str], classes: int, dialect: str) -> str:
    """Return a list for SELECT: the recalibrated probability of each class, called NAME_recalibrated.

    Rows that predict refuses (a number missing or outside [0, 1], a sum other than 1) become NULL.
    """
    if isinstance(columns, str) or len(columns) != classes or len(set(columns)) != len(columns):
        rule = f"must name the columns of the {classes} classes, in order"
        raise InvalidInputError(sentence("column", rule, f"got {columns!r}"))
    engine = find_dialect(dialect)
    cells = [double_column(name, engine) for name in columns]
    algebra = SparkAlgebra() if dialect == "spark" else SqlAlgebra()
    total = " + ".join(cell.text for cell in cells)
    usable = [is_probability(cell, dialect) for cell in cells]
    usable.append(f"ABS({total} - 1e0) <= {sql_number(ROW_SUM)}")
    rates = fitted.expressions(cells, algebra) if isinstance(fitted, ClassMap) else cells  # no change
    condition = " AND ".join(usable)
    text = ", ".join(
        f"{where_usable(condition, rate, engine)} AS {quoted_column(name + ENDING, engine)}"
        for rate, name in zip(rates, columns, strict=True)
    )
    return within_limit(text, dialect, HINT)
