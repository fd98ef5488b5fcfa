"""Bad rows that an engine counted: refuse them in the library's words, or let the user drop them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.errors import InvalidInputError, sentence
from calibrant.frames import in_memory
from calibrant.inputs import range_hint
from calibrant.records import Missing
from calibrant.scale.aggregate import Columns
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
) -> None:
    """Raise for the first kind of bad row that the user did not ask to drop.

    `inside` are the names of the columns in `frame`, where they are others than the user's.
    """
    names = {"prediction": columns.prediction, "outcome": columns.outcome, "weight": columns.weight}
    inner = inside or columns
    inner_names = {"prediction": inner.prediction, "outcome": inner.outcome, "weight": inner.weight}
    for reason, count in rejects.items():
        if reason == WEIGHTLESS or (missing if "missing" in reason else invalid) == "drop":
            continue
        name = names[reason.split()[0]]
        rule = next(rule for word, rule in RULES.items() if word in reason)
        rows = f"{count:,} row{'s' if count > 1 else ''}"
        found, hint = f"got {rows} without a value", 'pass missing="drop" to leave such rows out'
        if "missing" not in reason:
            low, high = _range(frame, str(inner_names[reason.split()[0]]))
            found, hint = f"got values from {low:g} to {high:g} ({rows})", range_hint(low, high)
            if name == columns.weight:
                hint = 'pass invalid="drop" to leave such rows out'
        raise InvalidInputError(sentence(f"column {name!r}", rule, found, hint))


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
