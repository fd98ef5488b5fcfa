"""Bad rows that an engine counted: refuse them in the library's words, or let the user drop them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.errors import InvalidInputError, sentence
from calibrant.frames import in_memory
from calibrant.inputs import range_hint
from calibrant.numerals import counted
from calibrant.records import Missing
from calibrant.scale.aggregate import Columns
from calibrant.scale.bad_rows import BadRow
from calibrant.scale.cells import WEIGHTLESS

RULES = {
    "missing": "must not be missing",
    "outside": "must lie in [0, 1]",
    "negative": "must be finite and not negative",
}


def refuse(
    rejects: Mapping[str, int],
    columns: Columns,
    missing: Missing,
    invalid: Missing,
    frame: Any,
    inside: Columns | None = None,
    first: Callable[[str, str], BadRow | None] | None = None,
) -> None:
    """Raise for the first kind of bad row that the user did not ask to drop.

    `inside` are the names of the columns in `frame`, where they are others than the user's; `first` finds
    the first row of a column that is bad in some way, where rows have an order.
    """
    names = {"prediction": columns.prediction, "outcome": columns.outcome, "weight": columns.weight}
    inner = inside or columns
    inner_names = {"prediction": inner.prediction, "outcome": inner.outcome, "weight": inner.weight}
    for reason, count in rejects.items():
        if reason == WEIGHTLESS or (missing if "missing" in reason else invalid) == "drop":
            continue
        role, word = reason.split()[0], next(word for word in RULES if word in reason)
        name, rows = names[role], counted(count, "row")
        bad = first(str(name), word) if first else None
        if word == "missing":
            found = f"got no value in {bad.place} ({rows})" if bad else f"got {rows} without a value"
            hint = 'pass missing="drop" to leave such rows out'
        else:
            low, high = _range(frame, str(inner_names[role]))
            found = f"got {bad.text} in {bad.place}" if bad else f"got values from {low:g} to {high:g}"
            found, hint = f"{found} ({rows})", range_hint(low, high)
        if word == "negative":
            hint = 'pass invalid="drop" to leave such rows out'
        raise InvalidInputError(sentence(f"column {name!r}", RULES[word], found, hint))


def _range(frame: Any, name: str) -> tuple[float, float]:
    """Ask the engine between which values a column lies, now that there is something to explain."""
    import narwhals as nw

    column = nw.col(name).cast(nw.Float64())
    table: Any = nw.from_native(frame).select(nw.col(name).cast(nw.Float64()))
    table = table.filter(~column.is_nan()).select(column.min().alias("low"), column.max().alias("high"))
    if isinstance(table, nw.LazyFrame):
        native = table.to_native()
        if hasattr(native, "fetchnumpy"):
            row = native.fetchnumpy()
            return float(row["low"][0]), float(row["high"][0])
        table = in_memory(table)
    return float(table["low"][0]), float(table["high"][0])
