"""The table of every group before and after a repair."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.numerals import percent, points, pvalue_text
from calibrant.recalibration.group_changes import GroupChange, GroupSide
from calibrant.sheets import Cell, Sheet, number_cell, text_cell

HELD_OUT = (
    "“After” is honest: the predictions of each record were repaired by a map fitted to other records, four "
    "fifths of all, in turn. Differences are happened minus predicted, in percentage points; a positive one "
    "means that the predictions are too low."
)


def change_sheet(changes: Sequence[GroupChange]) -> Sheet:
    """Return every group before and after: predicted, happened, and the difference with its interval."""
    columns = (
        "group", "records", "happened", "predicted before", "difference", "predicted after", "difference",
        "mean prediction is",
    )  # fmt: skip
    return Sheet(columns, tuple(_line(one) for one in changes))


def score_sheet(changes: Sequence[GroupChange]) -> Sheet:
    """Return the p-values and Brier scores of every group before and after."""
    columns = ("group", "records", "p before", "p after", "Brier before", "Brier after", "Brier score is")
    return Sheet(columns, tuple(_score_line(one) for one in changes))


def short_change_sheet(changes: Sequence[GroupChange]) -> Sheet:
    """Return the same without intervals, p-values and scores, for a terminal."""
    columns = ("group", "records", "happened", "before", "off by", "after", "off by", "mean prediction is")
    return Sheet(columns, tuple(_short_line(one) for one in changes))


def _line(one: GroupChange) -> tuple[Cell, ...]:
    sides = one.before, one.after
    means = [cell for side in sides for cell in (_mean(side.predicted), _difference(side))]
    return (*_who(one), *means, text_cell(one.effect))


def _score_line(one: GroupChange) -> tuple[Cell, ...]:
    sides = one.before, one.after
    tests = [number_cell(side.pvalue, pvalue_text(side.pvalue, floor=side.pvalue_is_bound)) for side in sides]
    scores = [number_cell(side.brier, f"{side.brier:.4f}") for side in sides]
    return (*_who(one)[:2], *tests, *scores, text_cell(one.brier_effect))


def _short_line(one: GroupChange) -> tuple[Cell, ...]:
    means = [
        cell
        for side in (one.before, one.after)
        for cell in (_mean(side.predicted), number_cell(side.difference, points(side.difference)))
    ]
    return (*_who(one), *means, text_cell(one.effect))


def _who(one: GroupChange) -> tuple[Cell, ...]:
    return text_cell(one.rule), number_cell(one.size, f"{one.size:,}"), _mean(one.happened)


def _mean(share: float) -> Cell:
    return number_cell(share, percent(share))


def _difference(side: GroupSide) -> Cell:
    width = side.high - side.low
    low, size, high = (points(value, width) for value in (side.low, side.difference, side.high))
    return number_cell(side.difference, f"{size} ({low} to {high})")
