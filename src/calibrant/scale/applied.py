"""What `apply_file` says of the rows that it wrote."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.errors import InvalidInputError, sentence
from calibrant.numerals import counted


@dataclass(frozen=True, slots=True)
class Applied:
    """How many rows were written, and how many of them had no usable prediction or one outside the range."""

    rows: int
    unusable: int
    outside: int


def refuse_none_usable(applied: Applied, prediction: str) -> None:
    """Refuse rows of which none has a prediction; no rows at all are fine."""
    if applied.rows and applied.unusable == applied.rows:
        got = f"got none in {counted(applied.rows, 'row')}"
        raise InvalidInputError(sentence(f"column {prediction!r}", "must hold probabilities", got))
