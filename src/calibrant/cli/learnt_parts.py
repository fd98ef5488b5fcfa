"""Parts of a stream that a state has counted, so that the same rows are not counted twice by mistake."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibrant.cli.options import F
from calibrant.cli.ordered_rows import OrderedRows
from calibrant.cli.showing import note
from calibrant.errors import InvalidInputError, sentence
from calibrant.online.group_monitor import GroupMonitor
from calibrant.online.state import Fields, parsed, read_text

PARTS = "parts"  # the field of a state that holds them
KEPT = 10_000  # the latest; as many nights are 27 years
SURPRISE = 20.0  # nats: rows that say less may well come again by chance


def same_option(verb: F) -> F:
    """Add --same."""
    return click.option("--same", is_flag=True, help="Count rows even if the state has counted the same.")(
        verb
    )


def counted_parts(state: str | Path | None, kind: str) -> list[str]:
    """Return the parts that a state has counted; older states say nothing about theirs."""
    if state is None or not Path(state).exists():
        return []
    fields = Fields(_holder(parsed(read_text(state), kind)), kind)
    if PARTS not in fields.content:
        return []
    parts = fields.items(PARTS)
    if not all(isinstance(part, str) for part in parts):
        raise fields.refused(PARTS, "must be a list of texts")
    return parts


def with_part(parts: list[str], rows: OrderedRows, same: bool, state: str | Path | None = None) -> list[str]:
    """Return the parts with these rows among them; rows that are there already are refused."""
    part = _digest(rows)
    if part is None:
        if state is not None and Path(state).exists() and len(rows) and not same:
            alike = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
            note(f"{alike}, too few or too much alike to know whether the state has counted them before")
        return parts
    if part in parts and not same:
        rule, got = "must hold rows that the state has not counted yet", "got the rows of an earlier run"
        raise InvalidInputError(sentence("FILE", rule, got, "pass --same to count them again"))
    return [*(known for known in parts if known != part), part][-KEPT:]


def with_beginning(parts: list[str], rows: OrderedRows, seen: int) -> list[str]:
    """Return the parts with all rows of a file that grows; it must begin with the `seen` rows counted before.

    States that were fed otherwise do not say what they have counted, so nothing can be refused there.
    """
    rows.after(seen)  # refuses a file that is too short
    begun = _beginning(rows, seen)
    if any(part.endswith(f"+{seen}") and part != begun for part in parts):
        rule, got = "must begin with the rows that the state has counted", "got others"
        raise InvalidInputError(sentence("FILE", rule, got, "leave --grown out if all rows are new"))
    return [*(part for part in parts if "+" not in part), _beginning(rows, len(rows))]


def _beginning(rows: OrderedRows, count: int) -> str:
    return f"{_hashed(rows.taken(np.arange(count)))}+{count}"


def with_parts(text: str, parts: list[str]) -> str:
    """Return the JSON of a state with its parts as the last field."""
    if not parts:
        return text
    content = json.loads(text)
    _holder(content)[PARTS] = parts
    return json.dumps(content, allow_nan=False)


def _holder(content: dict[str, Any]) -> Any:
    """Return the state that holds the parts: that of everybody, where the fields are groups."""
    return content.get(GroupMonitor.EVERYBODY, content)


def _digest(rows: OrderedRows) -> str | None:
    """Return a digest of the rows whose outcome is known, None where chance may well repeat them."""
    known = rows.taken(np.flatnonzero(~np.isnan(rows.outcome)))
    _, counts = np.unique(np.column_stack([known.outcome, known.prediction]), axis=0, return_counts=True)
    surprise = -float(counts @ np.log(counts / counts.sum()))  # of these rows in this order
    return _hashed(known) if surprise >= SURPRISE else None


def _hashed(rows: OrderedRows) -> str:
    digest = hashlib.sha256(
        b"".join(part.astype("<f8").tobytes() for part in (rows.outcome, rows.prediction))
    )
    columns: list[Any] = [[str(cell) for cell in column.tolist()] for column in rows.columns.values()]
    digest.update(json.dumps(columns).encode())
    return digest.hexdigest()[:16]
