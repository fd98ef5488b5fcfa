"""compare_groups: is a model as right for one site, league or season as for another, on different rows?"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.frames import inputs_of
from calibrant.groups.coding import code_columns
from calibrant.groups.column_codes import Column
from calibrant.groups.gap_interval import gap_interval, law_of, shift_interval
from calibrant.groups.group_comparison import UNNAMED, GroupComparison, GroupDifference, GroupLevel
from calibrant.groups.group_parts import GroupPart, parts_of
from calibrant.groups.group_trend import approximate_tests, exact_tests
from calibrant.inference.adjusting import holm
from calibrant.inference.fitted_shift import approximate_shift
from calibrant.inference.interval import check_confidence
from calibrant.inference.shift import ShiftPair, common_shift, exact_pair, odds_of
from calibrant.measures.scores import decompose
from calibrant.options import flag
from calibrant.records import Checked, Missing, check_records, warn_if_swapped
from calibrant.seeds import checked_draws, recorded_seed

Method = Literal["auto", "exact", "approximate"]
METHODS = ("auto", "exact", "approximate")
MOST = 200  # groups
SEVERAL = (
    "audit takes several columns and their combinations; for a trend within each group, compare the rows of "
    "one group at a time, or make one column of both"
)
PAIRED = 30  # groups up to which every pair is compared
MOST_EXACT = 2_000_000  # records: seconds, not minutes


def compare_groups(
    y_true: Any,
    y_prob: Any = None,
    groups: Any = None,
    *,
    sample_weight: Any = None,
    ordered: bool | None = None,
    method: Method = "auto",
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    confidence: float = 0.95,
    draws: int = 999,
    seed: int | None = None,
) -> GroupComparison:
    """Compare how right predictions are for groups of different rows: sites, leagues, seasons.

    The question is whether the odds of the outcome, given the predictions, are off by the same factor in
    every group. Given the events of all groups together that factor drops out, which leaves Fisher's exact
    test with a prediction for every record: p-values hold in groups of any size and whatever their
    predictions. Errors that cancel within a group are not seen: `audit` looks for those. Nor is a group's
    Brier score compared, since that also says how hard its records are.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        Outcomes, predictions and weights; or a frame with the names of its columns.
    groups
        One label per row, or one column (a named series, a mapping with one name, the name of a column).
        Missing labels are a group of their own, which is in no trend.
    ordered
        Whether the groups have an order, so that a trend is tested. By default numbers, dates and ordered
        categories have one; True orders text by name ("2014-15", "2015-16", ...).
    method
        "exact" for outcomes of 0 or 1 without weights; "approximate" by a sandwich estimate, right where
        every group has many records; "auto" takes the exact one where it can.
    missing, pos_label, outcome, prediction, weight
        As in `evaluate`.
    confidence
        Of the intervals, and 1 minus the level at which a difference is called real.
    draws, seed
        Draws for the p-values of all groups and of the trend; pairs need none.

    Returns
    -------
    GroupComparison

    Examples
    --------
    >>> p = [0.2, 0.4, 0.6, 0.8] * 100
    >>> y = [0, 0, 1, 1] * 50 + [0, 1, 1, 1] * 50
    >>> found = compare_groups(y, p, ["A"] * 200 + ["B"] * 200, seed=1)
    >>> [(group.name, round(group.gap, 3)) for group in found.groups], found.pvalue < 1e-6
    ([('A', 0.0), ('B', 0.25)], True)
    """
    given = inputs_of(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight, groups=groups
    )
    check_confidence(confidence)
    count, used = checked_draws(draws), recorded_seed(seed)
    if method not in METHODS:
        raise reject_name("method", method, list(METHODS))
    checked = check_records(given.y_true, given.y_prob, given.sample_weight, missing, pos_label=pos_label)
    warn_if_swapped(checked, y_true=given.y_true, y_prob=given.y_prob)
    column = _column(given.beside["groups"], checked)
    in_order = not column.nominal if ordered is None else flag("ordered", ordered)
    return compare_column(column, checked, _is_exact(method, checked), in_order, confidence, count, used)


def compare_column(
    column: Column,
    checked: Checked,
    exact: bool,
    in_order: bool,
    confidence: float,
    draws: int,
    seed: int,
    most: int = MOST_EXACT,
) -> GroupComparison:
    """Compare the groups of one coded column, whose codes belong to the checked rows one by one.

    `most` is how many rows are tested exactly unless somebody asks.
    """
    parts = parts_of(column, checked)
    pvalue, trend = (exact_tests if exact else approximate_tests)(parts, in_order, draws, seed)
    pairs = _differences(parts, exact, confidence) if len(parts) <= PAIRED else ()
    return GroupComparison(
        column=column.name,
        groups=tuple(_level(part, exact, confidence) for part in parts),
        differences=pairs,
        pvalue=pairs[0].pvalue if len(pairs) == 1 else pvalue,  # one test of two groups, not two
        trend=trend,
        ordered=in_order,
        confidence=confidence,
        method="exact" if exact else "approximate",
        n=len(checked),
        dropped=checked.dropped,
        certain=sum(part.certain for part in parts),
        wrong=sum(part.wrong for part in parts),
        draws=draws,
        seed=seed,
        reason="" if exact else _why_approximate(checked, most),
    )


def _why_approximate(checked: Checked, most: int) -> str:
    """Say why p-values are approximate, and what to do about it where something can be done."""
    fractions = int(np.count_nonzero((checked.outcome > 0) & (checked.outcome < 1)))
    if checked.weight is not None:
        return "rows have weights"
    if fractions:
        are = "outcome is a fraction" if fractions == 1 else "outcomes are fractions"
        return f"{fractions:,} {are}; leave such rows (ties) out for exact ones"
    return f"more than {most:,} rows" if len(checked) > most else "as asked"


def _column(groups: Any, checked: Checked) -> Column:
    """Code the one column of groups, for the rows that are kept."""
    if groups is None:
        raise InvalidInputError(sentence("groups", "must be given", "got None", "one label per row"))
    one_by_one = isinstance(groups, list | tuple) or (isinstance(groups, np.ndarray) and groups.ndim == 1)
    if one_by_one or getattr(groups, "name", "") is None:  # a series without a name
        groups = {UNNAMED: groups}
    columns = code_columns(groups, checked.length, "groups", labels=checked.labels)
    if len(columns) != 1:
        names = ", ".join(column.name for column in columns)
        raise InvalidInputError(sentence("groups", "must be one column", f"got {names}", SEVERAL))
    rows = np.arange(checked.length) if checked.rows is None else checked.rows
    column = columns[0].known_from(rows).take(rows)
    if not 2 <= len(column.labels) <= MOST:
        rule, got = f"must have 2 to {MOST} different values", f"got {len(column.labels):,}"
        hint = (
            "cut numbers into ranges"
            if len(column.labels) > MOST
            else "one group has no other to differ from"
        )
        raise InvalidInputError(sentence(f"groups {column.name!r}", rule, got, hint))
    return column


def _is_exact(method: Method, checked: Checked) -> bool:
    able = checked.binary and checked.weight is None
    if method == "exact" and not able:
        got = "got weights" if checked.weight is not None else "got fractional outcomes"
        raise InvalidInputError(
            sentence(
                'method="exact"', "needs outcomes of 0 or 1 without weights", got, 'method="approximate"'
            )
        )
    return method == "exact" or (method == "auto" and able and len(checked) <= MOST_EXACT)


def _level(part: GroupPart, exact: bool, confidence: float) -> GroupLevel:
    """Measure one group: rates, the factor of its odds, and what that makes of the rates."""
    low, high = shift_interval(part, exact, confidence)
    gap_low, gap_high = gap_interval(part, (low, high), confidence)
    forecasts, scores = part.forecasts, decompose(part.forecasts)
    return GroupLevel(
        name=part.name,
        n=forecasts.n,
        predicted=forecasts.mean_prediction,
        happened=forecasts.base_rate,
        gap=forecasts.base_rate - forecasts.mean_prediction,
        lower=gap_low,
        upper=gap_high,
        odds=odds_of(_fitted(part)),
        odds_lower=odds_of(low),
        odds_upper=odds_of(high),
        brier=scores.score,
        miscalibration=scores.miscalibration,
        discrimination=scores.discrimination,
    )


def _fitted(part: GroupPart) -> float:
    """Return the shift that fits best; infinite where every outcome is the same."""
    if len(part.known) == 0:
        return float("nan")
    mass = part.mass / part.mass.max()
    events, others = float(mass @ part.known), float(mass @ (1 - part.known))
    if events == 0 or others == 0:
        return -np.inf if events == 0 else np.inf
    return common_shift(part.logits, events, mass, others)


def _differences(parts: list[GroupPart], exact: bool, confidence: float) -> tuple[GroupDifference, ...]:
    pairs = list(combinations(range(len(parts)), 2))
    compared = (_exact_pairs if exact else _approximate_pairs)(parts, pairs, confidence)
    adjusted = holm([pair.pvalue for pair in compared])
    return tuple(
        GroupDifference(
            parts[i].name,
            parts[j].name,
            odds_of(pair.shift),
            odds_of(pair.lower),
            odds_of(pair.upper),
            pair.pvalue,
            p,
        )
        for (i, j), pair, p in zip(pairs, compared, adjusted, strict=True)
    )


NOTHING_KNOWN = ShiftPair(float("nan"), float("-inf"), float("inf"), 1.0)


def _exact_pairs(parts: list[GroupPart], pairs: list[tuple[int, int]], confidence: float) -> list[ShiftPair]:
    laws = [law_of(part) if len(part.logits) else None for part in parts]
    fitted = [_fitted(part) for part in parts]
    collected = []
    for i, j in pairs:
        one, other = laws[i], laws[j]
        if one is None or other is None:
            collected.append(NOTHING_KNOWN)
        else:
            events = parts[i].events, parts[j].events
            collected.append(exact_pair(one, other, events, (fitted[i], fitted[j]), confidence))
    return collected


def _approximate_pairs(
    parts: list[GroupPart], pairs: list[tuple[int, int]], confidence: float
) -> list[ShiftPair]:
    from scipy.special import ndtr, ndtri

    reach = float(ndtri((1 + confidence) / 2))
    fits = [approximate_shift(p.logits, p.known, p.mass) if len(p.logits) else None for p in parts]
    collected = []
    for i, j in pairs:
        one, other = fits[i], fits[j]
        if one is None or other is None:
            collected.append(NOTHING_KNOWN)
            continue
        shift, error = one.value - other.value, float(np.hypot(one.error, other.error))
        z = abs(shift) / error if error > 0 else 0.0 if shift == 0 else np.inf
        collected.append(
            ShiftPair(shift, shift - reach * error, shift + reach * error, min(1.0, 2 * float(ndtr(-z))))
        )
    return collected
