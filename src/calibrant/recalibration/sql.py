"""Maps as SQL: one expression of one column, or one expression per class of all columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.errors import InvalidInputError, reject_name
from calibrant.inputs import ROW_SUM
from calibrant.recalibration.maps.base import Algebra, Map
from calibrant.recalibration.maps.classes import PREDICT_HINT, ClassMap
from calibrant.results import Array


@dataclass(frozen=True, slots=True)
class SqlDialect:
    quote: str
    double: str  # the name of the type
    most: int  # characters of the largest expression that it is known to take
    never: str = ""  # characters that its quoted names cannot hold
    strict: bool = False  # reads 0.5e0 as a decimal, and stops at products too small for a double


DIALECTS = {
    "duckdb": SqlDialect('"', "DOUBLE", 10_000_000),
    "spark": SqlDialect("`", "DOUBLE", 10_000_000, never="\\"),
    "postgres": SqlDialect('"', "DOUBLE PRECISION", 10_000_000, strict=True),
    "bigquery": SqlDialect("`", "FLOAT64", 1_000_000, never="\\`\n\r"),
}
NEARLY_ZERO = 1e-290  # a product with the slope of a map could be too small for a double

MAX_SPARK_NUMBERS = 500  # numbers that Spark takes one by one


def _operation(sign: str) -> Callable[[Sql, Sql | float], Sql]:
    return lambda one, other: Sql(f"({one.text} {sign} {_text(other)})")


@dataclass(slots=True, eq=False)
class Sql:
    text: str

    __add__, __sub__, __mul__, __truediv__ = map(_operation, "+-*/")

    def __neg__(self) -> Sql:
        return Sql(f"(-{self.text})")

    def __lt__(self, other: Sql | float) -> Sql:
        return Sql(f"{self.text} < {_text(other)}")

    def __eq__(self, other: object) -> Sql:  # type: ignore[override]
        return Sql(f"{self.text} = {_text(other)}")

    __hash__ = None  # type: ignore[assignment]


class _StrictColumn(Sql):
    """A column of a strict engine: compared as it is; it and its quotients are 0 in products if nearly so."""

    __slots__ = ()

    def __sub__(self, other: Sql | float) -> Sql:
        return _held(self) - other

    def __mul__(self, other: Sql | float) -> Sql:
        return _held(self) * other

    def __truediv__(self, other: Sql | float) -> Sql:
        return _held(super().__truediv__(other))


def _held(number: Sql) -> Sql:
    return Sql(f"CASE WHEN {number.text} < {sql_number(NEARLY_ZERO)} THEN 0e0 ELSE {number.text} END")


def _text(item: object) -> str:
    return item.text if isinstance(item, Sql) else sql_number(float(item))  # type: ignore[arg-type]


def sql_number(value: float) -> str:
    """Return a number as a double in every engine: without an exponent some would read a decimal.

    >>> sql_number(0.25), sql_number(1e-07), sql_number(-2.0)
    ('0.25e0', '1e-07', '(-2.0e0)')
    """
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text


class SqlAlgebra(Algebra):
    def log(self, x: Sql) -> Sql:
        return Sql(f"LN({x.text})")

    def exp(self, x: Sql) -> Sql:
        return Sql(f"EXP({x.text})")

    def clip(self, x: Sql, low: float, high: float) -> Sql:
        return Sql(f"LEAST(GREATEST({x.text}, {sql_number(low)}), {sql_number(high)})")

    def greatest(self, columns: Sequence[Sql]) -> Sql:
        texts = [column.text for column in columns]
        return Sql(f"GREATEST({', '.join(texts)})" if len(texts) > 1 else texts[0])

    def when(self, condition: Sql, then: Sql, otherwise: Sql) -> Sql:
        return Sql(f"CASE WHEN {condition.text} THEN {then.text} ELSE {otherwise.text} END")

    def number(self, value: float) -> Sql:
        return Sql(sql_number(value))


class SparkAlgebra(SqlAlgebra):
    """The functions of maps, for Spark, whose compiler takes minutes and gigabytes for trees of choices."""

    def pieces(self, p: Sql, cuts: Array, tables: Sequence[Array], formula: Callable[..., Sql]) -> Sql:
        """Return a binary search in an array of cuts, as a fold over the sizes of its steps."""
        if not len(cuts):
            return formula(*(self.number(float(table[0])) for table in tables))
        steps, filled = search_steps(cuts)
        piece, step = _unlike("piece", p), _unlike("step", p)
        search = f"IF({_array(filled)}[{piece} + {step} - 1] <= {p.text}, {piece} + {step}, {piece})"
        formed = formula(*(Sql(f"{_array(table)}[{piece}]") for table in tables))
        sizes = ", ".join(map(str, steps))
        return Sql(f"AGGREGATE(ARRAY({sizes}), 0, ({piece}, {step}) -> {search}, {piece} -> {formed.text})")


def search_steps(cuts: Array) -> tuple[list[int], Array]:
    """Return the step sizes of a binary search, and the cuts padded with 2, which no prediction reaches."""
    steps = [2**k for k in reversed(range(len(cuts).bit_length()))]
    return steps, np.append(cuts, [2.0] * (2 * steps[0] - 1 - len(cuts)))


def _unlike(name: str, p: Sql) -> str:
    """Return the name of a variable that hides no column."""
    while name in p.text.lower():
        name += "_"
    return name


def _array(numbers: Iterable[float]) -> str:
    """Return an array; many numbers as one text, which Spark splits once, when it plans the query."""
    texts = [repr(float(one)) for one in numbers]
    if len(texts) > MAX_SPARK_NUMBERS:
        return f"CAST(SPLIT('{','.join(texts)}', ',') AS ARRAY<DOUBLE>)"
    return f"ARRAY({', '.join(sql_number(float(one)) for one in texts)})"


def quoted_column(name: str, dialect: SqlDialect) -> str:
    mark = dialect.quote
    if not isinstance(name, str) or not name or any(letter in dialect.never for letter in name):
        raise InvalidInputError("column", "must be a plain name", f"got {name!r}")
    return mark + name.replace(mark, mark * 2) + mark


def is_probability(number: Sql, dialect: str) -> str:
    """Return the SQL of whether a number lies in [0, 1]; NULL and NaN do not."""
    inside = f"{number.text} >= 0e0 AND {number.text} <= 1e0"
    # DuckDB takes `inside` for true where a Parquet file states a smallest and largest value in [0, 1];
    # these leave NaN out.
    return f"ISFINITE({number.text}) AND {inside}" if dialect == "duckdb" else inside


def sql_of(fitted: Map, column: str, dialect: str, tolerance: float) -> str:
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < 1:
        raise InvalidInputError("tolerance", "must lie in [0, 1)", f"got {tolerance!r}")
    thinned = fitted.thinned(float(tolerance))
    (text,) = _usable_rates([column], dialect, lambda names, algebra: [thinned.expression(names[0], algebra)])
    return _within_limit(text, dialect, "pass a tolerance, such as 1e-6, to thin the knots")


COLUMN_SUFFIX = "_recalibrated"


def class_sql(fitted: Map, columns: Sequence[str], classes: int, dialect: str) -> str:
    """Return a list for SELECT: NAME_recalibrated of each class, NULL in rows that predict refuses."""
    if isinstance(columns, str) or len(columns) != classes or len(set(columns)) != len(columns):
        rule = f"must name the columns of the {classes} classes, in order"
        raise InvalidInputError("column", rule, f"got {columns!r}")
    rates = _usable_rates(
        columns, dialect, fitted.expressions if isinstance(fitted, ClassMap) else lambda names, _: names
    )
    names = [quoted_column(name + COLUMN_SUFFIX, DIALECTS[dialect]) for name in columns]
    text = ", ".join(f"{rate} AS {name}" for rate, name in zip(rates, names, strict=True))
    return _within_limit(text, dialect, PREDICT_HINT)


def _usable_rates(columns: Sequence[str], dialect: str, rates: Callable[..., Sequence[Sql]]) -> list[str]:
    """Return the SQL of rates of the columns, always doubles, NULL where these are not probabilities."""
    if dialect not in DIALECTS:
        raise reject_name("dialect", str(dialect), list(DIALECTS))
    engine = DIALECTS[dialect]
    kind = _StrictColumn if engine.strict else Sql
    cells = [kind(f"CAST({quoted_column(name, engine)} AS {engine.double})") for name in columns]
    usable = [is_probability(cell, dialect) for cell in cells]
    if len(cells) > 1:
        usable.append(f"ABS({' + '.join(cell.text for cell in cells)} - 1e0) <= {sql_number(ROW_SUM)}")
    algebra, condition = SparkAlgebra() if dialect == "spark" else SqlAlgebra(), " AND ".join(usable)
    texts = [f"CASE WHEN {condition} THEN {rate.text} END" for rate in rates(cells, algebra)]
    return [f"CAST({text} AS {engine.double})" for text in texts] if engine.strict else texts


def _within_limit(text: str, dialect: str, hint: str) -> str:
    most = DIALECTS[dialect].most
    if len(text) > most:
        got = f"got {len(text):,} characters"
        raise InvalidInputError(f"SQL for {dialect}", f"must have at most {most:,} characters", got, hint)
    return text
