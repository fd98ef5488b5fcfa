"""One section of a page: a question, and what answers it."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.sheets import Sheet


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the report; everything in it is text, never markup."""

    id: str
    title: str
    texts: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False  # shown on demand: for those who check the mathematics
