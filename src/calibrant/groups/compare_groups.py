"""compare_groups: is a model as right for one site, league or season as for another, on different rows?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters, clusters_of
from calibrant.columns import Column
from calibrant.errors import InvalidInputError, TooFewClustersError, reject_name
from calibrant.fits.levels import logit
from calibrant.forecasts import Forecasts
from calibrant.frames import resolve_inputs
from calibrant.groups.compare_groups_result import (
    GroupComparison,
    GroupDifference,
    GroupLevel,
    Trend,
    WithinGroup,
)
from calibrant.groups.rules import single_column, written_labels
from calibrant.groups.stratified import StratifiedScores, compare_pair, difference_test, log_odds_slope
from calibrant.inference.group_interval import row_interval
from calibrant.inference.null import ClusterSummary
from calibrant.inference.odds_shift import common_shift, odds_of
from calibrant.inference.pvalues import MORE_DRAWS, holm
from calibrant.inputs import flag, open_share
from calibrant.metrics.scores import decompose
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Missing, ValidRows, check_records, warn_if_swapped

Method = Literal["auto", "permutation", "approximate", "exact"]
METHODS = ("auto", "permutation", "approximate")
MAX_GROUPS = 200
MAX_PAIRED = 30  # groups up to which every pair is compared
MAX_PERMUTED = 500_000  # records: seconds, not minutes
MAX_WEIGHTED = 20_000  # the same where every draw has a covariance of its own
MAX_MORE_DRAWS = 9999  # so that p-values adjusted for many values of `within` can still be small
ONE_COLUMN_HINT = "`within` takes the second column, and audit takes several columns and their combinations"


def compare_groups(
    y_true: Any,
    y_prob: Any = None,
    groups: Any = None,
    *,
    within: Any = None,
    sample_weight: Any = None,
    ordered: bool | None = None,
    method: Method = "auto",
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    clusters: Any = None,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int | None = 0,
) -> GroupComparison:
    """Test whether predictions mean the same in different groups: sites, leagues, seasons.

    The question is whether the outcome depends on the group at equal predictions. Outcomes are permuted
    between records of nearly equal predictions, so the answer holds whatever the calibration curve: a model
    that is wrong for everyone in the same way raises no alarm. Errors that cancel within a group are not
    seen: `audit` looks for those. Brier scores are shown and not compared, since they also depend on how
    hard the records of a group are.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        Outcomes, predictions and weights; or a frame with the names of its columns.
    groups
        One label per row, or one column (a named series, a mapping with one name, the name of a column).
        Missing labels form a group of their own, which takes no part in a trend.
    within
        A second column: the groups are also compared among the rows of each of its values (the seasons of
        every league), with p-values that allow for all of them.
    ordered
        Whether the groups have an order, so that a trend is tested. By default numbers, dates and ordered
        categories do; True orders text by name ("2014-15", "2015-16", ...).
    method
        "permutation" within strata of the prediction, "approximate" for the chi-square law of the same
        statistic; "auto" permutes unless there are too many rows. "exact" is an older name of "permutation".
    missing, pos_label, outcome, prediction, weight
        As in `evaluate`.
    clusters
        Labels of rows that belong together, or the name of their column. Each cluster then gets a random
        sign in place of permutations.
    confidence
        Of the intervals, and 1 minus the level at which a difference is called real.
    draws, seed
        Permutations for the p-values of several groups and of a trend. Ten times as many are drawn where the
        verdict would depend on the seed; None draws a fresh seed.

    Returns
    -------
    GroupComparison

    Examples
    --------
    >>> p = [0.2, 0.4, 0.6, 0.8] * 100
    >>> y = [0, 0, 1, 1] * 50 + [0, 1, 1, 1] * 50
    >>> found = compare_groups(y, p, ["A"] * 200 + ["B"] * 200)
    >>> [(group.name, round(group.gap, 3)) for group in found.groups], found.pvalue < 1e-6
    ([('A', 0.0), ('B', 0.25)], True)
    """
    given = resolve_inputs(
        y_true,
        y_prob,
        sample_weight,
        outcome=outcome,
        prediction=prediction,
        weight=weight,
        groups=groups,
        within=within,
        clusters=clusters,
    )
    open_share("confidence", confidence)
    count, used = checked_draws(draws), recorded_seed(seed)
    if method not in (*METHODS, "exact"):
        raise reject_name("method", method, list(METHODS))
    checked = check_records(given.y_true, given.y_prob, given.sample_weight, missing, pos_label=pos_label)
    warn_if_swapped(checked, y_true=given.y_true, y_prob=given.y_prob)
    column = _column("groups", given.extra["groups"], checked)
    in_order = not column.nominal if ordered is None else flag("ordered", ordered)
    rows = np.arange(checked.length) if checked.rows is None else checked.rows
    joint = clusters_of(given.extra["clusters"], checked.length, rows)

    def compared(some: Column, among: ValidRows, joint: Clusters | None, draws: int) -> GroupComparison:
        return compare_column(some, among, in_order, confidence, draws, used, method=method, clusters=joint)

    whole = compared(column, checked, joint, count)
    if within is None:
        return whole
    outer = _column("within", given.extra["within"], checked)
    draws = max(count, min(200 * len(outer.labels), MAX_MORE_DRAWS))
    outer_names = written_labels(outer)
    parts: dict[str, GroupComparison] = {}
    left_out: dict[str, str] = {}

    def compare_within(code: int, draws: int) -> None:
        name, inside = outer_names[code], np.flatnonzero(outer.codes == code)
        some = column.drop_unused_labels(inside).take(inside)
        if len(some.labels) < 2:
            left_out[name] = "one group"
            return
        try:
            some_clusters = None if joint is None else joint.take(inside)
            parts[name] = compared(some, _rows_of(checked, inside), some_clusters, draws)
        except TooFewClustersError as reason:
            left_out[name] = str(reason)

    for code in range(len(outer.labels)):
        compare_within(code, draws)
    close = {part.name for part in WithinGroup.adjusted_for_all(parts) if part.undecided}
    for code, name in enumerate(outer_names):
        if name in close:
            compare_within(code, MORE_DRAWS * draws)
    found = WithinGroup.adjusted_for_all(parts)
    return replace(whole, within_column=outer.name, within=found, left_out=left_out)


def compare_column(
    column: Column,
    checked: ValidRows,
    in_order: bool,
    confidence: float,
    draws: int,
    seed: int,
    *,
    method: Method = "auto",
    max_permuted: int = MAX_PERMUTED,
    clusters: Clusters | None = None,
) -> GroupComparison:
    """Compare the groups of one coded column, whose codes belong to the checked rows one by one."""
    outcome, group = checked.outcome.astype(np.float64), column.codes.astype(np.intp)
    about, cluster = "", None
    weight = None if checked.weight is None else checked.weight / checked.weight.max()
    if clusters is not None and not clusters.all_single:
        mass = np.ones(len(checked)) if weight is None else weight
        about = str(ClusterSummary.of_rows(clusters, checked.outcome, checked.prediction, mass))
        keys = (*(() if weight is None else (checked.weight,)), outcome, checked.prediction, group)
        cluster = clusters.by_content(*keys).codes
    plain = weight is None or cluster is not None
    limit = max_permuted if plain else min(max_permuted, MAX_WEIGHTED)
    permuted = method in ("permutation", "exact") or (method == "auto" and len(checked) <= limit)
    names = written_labels(column)
    scores = StratifiedScores.of(checked.prediction, outcome, group, len(names), weight, cluster)
    pairs = _differences(names, scores, confidence) if len(names) <= MAX_PAIRED else ()
    draws_for_all = draws if permuted and len(pairs) != 1 else 0
    pvalue, drawn = difference_test(scores, draws_for_all, seed, confidence)
    reason = "" if permuted else "as requested" if method == "approximate" else f"more than {limit:,} rows"
    certain = (scores.prediction == 0) | (scores.prediction == 1)
    return GroupComparison(
        column=column.name,
        groups=tuple(
            _level(name, scores, scores.group == code, confidence) for code, name in enumerate(names)
        ),
        differences=pairs,
        pvalue=pairs[0].pvalue if len(pairs) == 1 else pvalue,  # one test of two groups, not two
        trend=_trend(column, scores, draws if permuted else 0, seed, confidence) if in_order else None,
        ordered=in_order,
        confidence=confidence,
        method="approximate" if not permuted else "permutation" if cluster is None else "signs",
        n=len(checked),
        dropped=checked.dropped,
        certain=int(np.count_nonzero(certain)),
        wrong=int(np.count_nonzero(scores.outcome[certain] != scores.prediction[certain])),
        draws=drawn or (draws if permuted else 0),
        seed=seed,
        reason=reason,
        comparable=scores.rank > 0,
        clusters=about,
    )


def _rows_of(checked: ValidRows, which: npt.NDArray[np.intp]) -> ValidRows:
    weight = None if checked.weight is None else checked.weight[which]
    outcome, prediction = checked.outcome[which], checked.prediction[which]
    return replace(checked, outcome=outcome, prediction=prediction, weight=weight, dropped=0)


def _column(argument: str, groups: Any, checked: ValidRows) -> Column:
    column = single_column(argument, groups, checked, ONE_COLUMN_HINT)
    if not 2 <= len(column.labels) <= MAX_GROUPS:
        rule, got = f"must have 2 to {MAX_GROUPS} different values", f"got {len(column.labels):,}"
        many = len(column.labels) > MAX_GROUPS
        hint = "cut numbers into ranges" if many else "one group has no other to differ from"
        raise InvalidInputError(f"{argument} {column.name!r}", rule, got, hint)
    return column


def _level(
    name: str, scores: StratifiedScores, inside: npt.NDArray[np.bool_], confidence: float
) -> GroupLevel:
    p, y, weight, _ = rows = scores.rows(inside)
    forecasts = Forecasts(y, p, sample_weight=weight)
    brier = decompose(forecasts)
    predicted, happened = forecasts.mean_prediction, forecasts.base_rate
    return GroupLevel(
        name,
        forecasts.n,
        predicted,
        happened,
        happened - predicted,
        *row_interval(*rows, confidence),
        *_odds(scores, inside, confidence),
        brier=brier.score,
        miscalibration=brier.miscalibration,
        discrimination=brier.discrimination,
    )


def _odds(
    scores: StratifiedScores, inside: npt.NDArray[np.bool_], confidence: float
) -> tuple[float, float, float]:
    """Return the factor between observed and predicted odds, and those that reach the rate's interval."""
    # no factor moves predictions of exactly 0 and 1
    p, y, weight, _ = rows = scores.rows(inside & (scores.prediction > 0) & (scores.prediction < 1))
    if len(p) == 0:
        return float("nan"), 0.0, float("inf")
    mass = np.ones(len(p)) if weight is None else weight / weight.max()
    logits, total = logit(p, 0.0), float(mass.sum())
    events, others = float(mass @ y), float(mass @ (1 - y))
    gap, (low, high) = float(mass @ (y - p)) / total, row_interval(*rows, confidence)

    def factor(more: float) -> float:
        wanted, rest = events + total * more, others - total * more
        if np.isnan(more):
            return float("nan")
        if wanted <= 0 or rest <= 0:
            return 0.0 if wanted <= 0 else float("inf")
        return odds_of(common_shift(logits, wanted, mass, rest))

    odds = factor(0.0)
    return odds, min(factor(low - gap), odds), max(factor(high - gap), odds)


def _differences(
    names: Sequence[str], scores: StratifiedScores, confidence: float
) -> tuple[GroupDifference, ...]:
    chosen = list(combinations(range(len(names)), 2))
    compared = [compare_pair(scores.among(pair), confidence) for pair in chosen]
    adjusted = holm([pair.pvalue for pair in compared])
    return tuple(
        GroupDifference(
            names[i], names[j], odds_of(pair.shift), odds_of(pair.lower), odds_of(pair.upper), pair.pvalue, p
        )
        for (i, j), pair, p in zip(chosen, compared, adjusted, strict=True)
    )


def _trend(column: Column, whole: StratifiedScores, draws: int, seed: int, confidence: float) -> Trend | None:
    placed = [code for code, label in enumerate(column.labels) if label is not None]
    if len(placed) < 3:
        return None
    scores = whole.among(placed)
    place = np.arange(len(placed), dtype=np.float64)
    pvalue, _ = difference_test(scores, draws, seed, confidence, place)
    slope = log_odds_slope(scores, place) if scores.rank else 0.0
    direction = "up" if slope > 0 else "down" if slope < 0 else "none"
    names = written_labels(column)
    return Trend(pvalue, odds_of(slope), direction, names[placed[0]], names[placed[-1]])
