"""compare_groups: is a model as right for one site, league or season as for another, on different rows?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.frames import inputs_of
from calibrant.groups.coding import Column, code_columns
from calibrant.groups.group_comparison import GroupComparison, GroupDifference, GroupLevel, Trend
from calibrant.inference.adjusting import holm
from calibrant.inference.interval import check_confidence
from calibrant.inference.shift import (
    EventCount,
    Shift,
    ShiftPair,
    approximate_shift,
    common_shift,
    exact_pair,
    simulated_pvalues,
)
from calibrant.measures.scores import decompose
from calibrant.records import Checked, Missing, check, warn_if_swapped
from calibrant.results import Array
from calibrant.seeds import checked_draws, recorded_seed

Method = Literal["auto", "exact", "approximate"]
METHODS = ("auto", "exact", "approximate")
MOST = 200  # groups
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
    checked = check(given.y_true, given.y_prob, given.sample_weight, missing, pos_label=pos_label)
    warn_if_swapped(checked, y_true=given.y_true, y_prob=given.y_prob)
    column = _column(given.beside["groups"], checked)
    in_order = not column.nominal if ordered is None else bool(ordered)
    return compare_column(column, checked, _is_exact(method, checked), in_order, confidence, count, used)


def compare_column(
    column: Column, checked: Checked, exact: bool, in_order: bool, confidence: float, draws: int, seed: int
) -> GroupComparison:
    """Compare the groups of one coded column, whose codes belong to the checked rows one by one."""
    parts = _parts(column, checked)
    pvalue, trend = (_exact_tests if exact else _approximate_tests)(parts, in_order, draws, seed)
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
    )


def _column(groups: Any, checked: Checked) -> Column:
    """Code the one column of groups, for the rows that are kept."""
    if groups is None:
        raise InvalidInputError(sentence("groups", "must be given", "got None", "one label per row"))
    one_by_one = isinstance(groups, list | tuple) or (isinstance(groups, np.ndarray) and groups.ndim == 1)
    if one_by_one or getattr(groups, "name", "") is None:  # a series without a name
        groups = {"group": groups}
    columns = code_columns(groups, checked.length, "groups", labels=checked.labels)
    if len(columns) != 1:
        names = ", ".join(column.name for column in columns)
        raise InvalidInputError(
            sentence("groups", "must be one column", f"got {names}", "audit takes several columns")
        )
    rows = np.arange(checked.length) if checked.rows is None else checked.rows
    column = columns[0].known_from(rows).take(rows)
    if not 2 <= len(column.labels) <= MOST:
        rule, got = f"must have 2 to {MOST} different values", f"got {len(column.labels):,}"
        raise InvalidInputError(sentence(f"groups {column.name!r}", rule, got, "cut numbers into ranges"))
    return column


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The rows of one group; `logits`, `known` and `mass` are of predictions other than 0 and 1."""

    name: str
    labelled: bool
    forecasts: Forecasts
    logits: Array
    known: Array
    mass: Array
    sure: float  # weighted events that predictions of 1 foresee
    weight: float
    certain: int
    wrong: int

    @property
    def events(self) -> int:
        return int(self.known.sum())


def _parts(column: Column, checked: Checked) -> list[_Part]:
    return [_part(label, column.codes == code, checked) for code, label in enumerate(column.labels)]


def _name(label: Any) -> str:
    """Write a label; years that stand beside gaps are no fractions."""
    if label is None:
        return "missing"
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _part(label: Any, inside: npt.NDArray[np.bool_], checked: Checked) -> _Part:
    from scipy.special import logit

    p, y = checked.prediction[inside], checked.outcome[inside].astype(np.float64)
    w = np.ones(len(p)) if checked.weight is None else checked.weight[inside]
    free = (p > 0) & (p < 1)
    order = np.lexsort((y[free], p[free]))  # so that row order does not count, not in the last digit either
    forecasts = Forecasts(y, p, sample_weight=None if checked.weight is None else w)
    return _Part(
        _name(label),
        label is not None,
        forecasts,
        np.asarray(logit(p[free]))[order],
        y[free][order],
        w[free][order],
        float(w[p == 1].sum()),
        float(w.sum()),
        int(np.count_nonzero(~free)),
        int(np.count_nonzero(y[~free] != p[~free])),
    )


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


def _level(part: _Part, exact: bool, confidence: float) -> GroupLevel:
    """Measure one group: rates, the factor of its odds, and what that makes of the rates."""
    low, high = _shift_interval(part, exact, confidence)
    forecasts, scores = part.forecasts, decompose(part.forecasts)
    gap = forecasts.base_rate - forecasts.mean_prediction
    return GroupLevel(
        name=part.name,
        n=forecasts.n,
        predicted=forecasts.mean_prediction,
        happened=forecasts.base_rate,
        gap=gap,
        lower=min(gap, _rate(part, low) - forecasts.mean_prediction),
        upper=max(gap, _rate(part, high) - forecasts.mean_prediction),
        odds=float(np.exp(_fitted(part))),
        odds_lower=float(np.exp(low)),
        odds_upper=float(np.exp(high)),
        brier=scores.score,
        miscalibration=scores.miscalibration,
        discrimination=scores.discrimination,
    )


def _shift_interval(part: _Part, exact: bool, confidence: float) -> tuple[float, float]:
    if len(part.logits) == 0:
        return -np.inf, np.inf
    if exact:
        return _law(part).shift_interval(part.events, confidence)
    from scipy.special import ndtri

    fitted = approximate_shift(part.logits, part.known, part.mass)
    half = float(ndtri((1 + confidence) / 2)) * fitted.error
    return fitted.value - half, fitted.value + half


def _law(part: _Part) -> EventCount:
    """Return the law of the group's events, tilted to what was seen, so that it is precise there."""
    return EventCount.of(part.logits, common_shift(part.logits, part.events))


def _fitted(part: _Part) -> float:
    """Return the shift that fits best; infinite where every outcome is the same."""
    mean = float(part.mass @ part.known / part.mass.sum()) if len(part.known) else np.nan
    if not 0 < mean < 1:
        return float(np.nan if np.isnan(mean) else np.copysign(np.inf, mean - 0.5))
    return common_shift(part.logits, float(part.mass @ part.known), part.mass)


def _rate(part: _Part, shift: float) -> float:
    """Return the rate of the outcome if the odds of all records are off by this shift."""
    from scipy.special import expit

    return float((part.mass @ expit(part.logits + shift) + part.sure) / part.weight)


def _differences(parts: list[_Part], exact: bool, confidence: float) -> tuple[GroupDifference, ...]:
    pairs = list(combinations(range(len(parts)), 2))
    compared = (_exact_pairs if exact else _approximate_pairs)(parts, pairs, confidence)
    adjusted = holm([pair.pvalue for pair in compared])
    return tuple(
        GroupDifference(
            parts[i].name,
            parts[j].name,
            float(np.exp(pair.shift)),
            float(np.exp(pair.lower)),
            float(np.exp(pair.upper)),
            pair.pvalue,
            p,
        )
        for (i, j), pair, p in zip(pairs, compared, adjusted, strict=True)
    )


NOTHING_KNOWN = ShiftPair(float("nan"), float("-inf"), float("inf"), 1.0)


def _exact_pairs(parts: list[_Part], pairs: list[tuple[int, int]], confidence: float) -> list[ShiftPair]:
    laws = [_law(part) if len(part.logits) else None for part in parts]
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
    parts: list[_Part], pairs: list[tuple[int, int]], confidence: float
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


def _exact_tests(parts: list[_Part], in_order: bool, draws: int, seed: int) -> tuple[float, Trend | None]:
    """Test all groups together, and the trend of those that have a place in the order."""
    every = [part for part in parts if len(part.logits)]
    if len(every) < 2:
        return 1.0, None
    spread = np.array([_spread(part) for part in every])
    (pvalue,) = simulated_pvalues(
        [part.logits for part in every],
        np.array([part.events for part in every]),
        [lambda surplus: (surplus**2 / spread).sum(axis=1)],
        draws=draws,
        seed=seed,
    )
    placed = [part for part in every if part.labelled]
    if not in_order or len(placed) < 3:
        return pvalue, None
    place = _places(placed)
    (trend,) = simulated_pvalues(
        [part.logits for part in placed],
        np.array([part.events for part in placed]),
        [lambda surplus: np.abs(surplus @ place)],
        draws=draws,
        seed=seed,
    )
    return pvalue, _trend(placed, _slope(placed, place), trend)


def _spread(part: _Part) -> float:
    """Return the variance of the group's events if predictions are right."""
    from scipy.special import expit

    rates = expit(part.logits)
    return float(rates @ (1 - rates))


def _places(parts: list[_Part]) -> Array:
    """Return 0, 1, 2, ... along the groups, less what makes a common shift count for nothing."""
    spread = np.array([_spread(part) for part in parts])
    place = np.arange(len(parts), dtype=np.float64)
    return np.asarray(place - float(place @ spread / spread.sum()))


def _trend(parts: list[_Part], slope: float, pvalue: float) -> Trend:
    direction = "up" if slope > 0 else "down" if slope < 0 else "none"
    return Trend(pvalue, float(np.exp(slope)), direction, parts[0].name, parts[-1].name)


def _slope(parts: list[_Part], place: Array) -> float:
    """Return the likeliest change of the shift from one group to the next: Newton's method for two numbers.

    Its sign is that of the statistic tested, since the likelihood is concave.
    """
    from scipy.special import expit

    shift, slope = (
        common_shift(np.concatenate([p.logits for p in parts]), float(sum(p.events for p in parts))),
        0.0,
    )
    for _ in range(50):
        rates = [expit(p.logits + shift + slope * k) for p, k in zip(parts, place, strict=True)]
        surplus = np.array([p.events - rate.sum() for p, rate in zip(parts, rates, strict=True)])
        spread = np.array([float(rate @ (1 - rate)) for rate in rates])
        cross, square = float(place @ spread), float(place**2 @ spread)
        width = float(spread.sum()) * square - cross**2
        if width <= 1e-12 * square * float(spread.sum()):
            break  # nothing is left to learn: all events are on one side
        step_shift = (square * surplus.sum() - cross * float(place @ surplus)) / width
        step_slope = (float(spread.sum()) * float(place @ surplus) - cross * surplus.sum()) / width
        damping = min(1.0, 2.0 / max(abs(step_shift), abs(step_slope), 1e-300))
        shift, slope = shift + damping * step_shift, slope + damping * step_slope
        if abs(step_slope) < 1e-10 or abs(slope) > 50:
            break
    return slope


def _approximate_tests(
    parts: list[_Part], in_order: bool, draws: int, seed: int
) -> tuple[float, Trend | None]:
    from scipy.special import chdtrc, ndtr

    known = [part for part in parts if len(part.logits)]
    if len(known) < 2:
        return 1.0, None
    fits = [approximate_shift(part.logits, part.known, part.mass) for part in known]
    values, precision = _precise(fits)
    centre = float(values @ precision / precision.sum())
    pvalue = float(chdtrc(len(known) - 1, float(precision @ (values - centre) ** 2)))
    placed = [k for k, part in enumerate(known) if part.labelled]
    if not in_order or len(placed) < 3:
        return pvalue, None
    values, precision = values[placed], precision[placed]
    place = np.arange(len(placed), dtype=np.float64)
    centred = place - float(place @ precision / precision.sum())
    width = float((precision * centred) @ centred)
    slope = float((precision * centred) @ values) / width
    trend = min(1.0, 2 * float(ndtr(-abs(slope) * np.sqrt(width))))
    return pvalue, _trend([known[k] for k in placed], slope, trend)


def _precise(fits: list[Shift]) -> tuple[Array, Array]:
    return np.array([fit.value for fit in fits]), np.array([1 / max(fit.error, 1e-12) ** 2 for fit in fits])
