"""Methods that read covariates: hierarchical shifts, patches, boosted trees, and augmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from calibrant.columns import EncodedColumns, Features
from calibrant.errors import InvalidInputError, reject_name
from calibrant.fits.groups import MIN_VARIANCE, Block, Patch, patched
from calibrant.fits.groups import hierarchical as fit_shifts
from calibrant.fits.levels import logit
from calibrant.fits.logistic import Clip, Linear, logistic_regression
from calibrant.fits.trees import STAGE_TREES, Forest, TreeParams, boosted, grown_trees
from calibrant.inputs import whole_number
from calibrant.recalibration.maps.base import Map
from calibrant.recalibration.maps.columns import BinnedColumn, binned_columns, codes_of, encoded_sample
from calibrant.recalibration.maps.groups import (
    CLIP,
    AugmentMap,
    BoostMap,
    ColumnShifts,
    HierarchicalMap,
    PatchedGroup,
    PatchMap,
    RulePatchMap,
    members,
    predicted_by,
)
from calibrant.recalibration.methods.curves import TOO_FEW_LOGITS, spline
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import RowSample

ROUNDING = 1e-9  # relative: a deviation below it is none
MAX_LEVELS = 2_000  # the work grows with their third power


def _encoded(sample: RowSample) -> EncodedColumns:
    return sample.cached("columns", lambda: encoded_sample(sample.covariates))


def hierarchical(
    sample: RowSample, *, seed: int, bins: int = 8, slopes: bool = False, clip: Clip = "auto"
) -> Fitted:
    """Fit the spline, then intercept, slope and a shift per level of every covariate, shrunk to none."""
    whole_number("bins", bins, 2)
    given = _encoded(sample)
    leveled = binned_columns(given, bins)
    count = sum(one.count for one in leveled)
    if count > MAX_LEVELS:  # an identifier among the columns is the usual reason
        widest = max(leveled, key=lambda one: one.count)
        got = f"got {count:,}, of which column {widest.feature.name!r} has {widest.count:,}"
        rule = f"must have at most {MAX_LEVELS:,} levels in all"
        hint = "leave such a column out, or group its values"
        raise InvalidInputError("covariates", rule, got, hint)
    codes = codes_of(leveled, given)
    start = spline(sample, seed=seed, clip=clip)
    x = logit(start.map.predict(sample.predictions), CLIP)
    center = float(np.average(x, weights=sample.weights))
    deviation = float(np.sqrt(np.average((x - center) ** 2, weights=sample.weights)))
    deviation = deviation if deviation > ROUNDING * max(1.0, abs(center)) else 1.0  # all logits are equal
    blocks = [Block(c, one.count) for c, one in zip(codes, leveled, strict=True)]
    if slopes:
        scaled = (x - center) / deviation
        blocks += [Block(c, one.count, scaled) for c, one in zip(codes, leveled, strict=True)]
    fit = fit_shifts(x, sample.outcomes, sample.weights, blocks)
    tables = tuple(
        ColumnShifts(
            column=column,
            shifts=fit.blocks[j].values,
            errors=fit.blocks[j].errors,
            records=np.bincount(codes[j], sample.weights, column.count).astype(np.float64),
            slopes=fit.blocks[len(leveled) + j].values if slopes else None,
        )
        for j, column in enumerate(leveled)
    )
    fitted = HierarchicalMap(fit.intercept, fit.slope, CLIP, center, deviation, tables, start.map)
    notes = tuple(note for note in start.notes if note != TOO_FEW_LOGITS)
    return Fitted(fitted, notes, {"start": dict(start.details), "shifts": _readable(tables)})


def shifts_pvalue(sample: RowSample, bins: int = 8) -> float:
    """Return the p-value of Rao's test for levels whose residuals from the spline differ (Bonferroni)."""
    from scipy.special import chdtrc

    if sample.clusters is not None or not sample.covariates:  # the test does not allow for clusters
        return 1.0
    given = _encoded(sample)
    columns = binned_columns(given, bins)
    q = spline(sample, seed=0).map.predict(sample.predictions)
    residuals, spread = sample.weights * (sample.outcomes - q), sample.weights**2 * q * (1.0 - q)
    smallest = 1.0
    for column, codes in zip(columns, codes_of(columns, given), strict=True):
        known = codes >= 0
        sums, variances = (np.bincount(codes[known], x[known], column.count) for x in (residuals, spread))
        large = variances > MIN_VARIANCE
        if np.count_nonzero(large) > 1:
            statistic = float(np.sum(sums[large] ** 2 / variances[large]))
            smallest = min(smallest, float(chdtrc(np.count_nonzero(large) - 1, statistic)))
    return min(1.0, smallest * len(columns))


def _readable(tables: tuple[ColumnShifts, ...]) -> list[dict[str, Any]]:
    rows = []
    for one in tables:
        for k, words in enumerate(one.column.words()):
            if one.records[k] > 0:
                row = {"group": words, "shift": float(one.shifts[k]), "error": float(one.errors[k])}
                rows.append({**row, "records": float(one.records[k])})
    return rows


HELD_OUT_SHARE = 0.3
NOTHING_TO_PATCH = "No group needed a patch that held-out records support: the map is the spline alone."


def patch(sample: RowSample, *, seed: int, bins: int = 4) -> Fitted:
    """Fit the spline, then shift the worst cell of group and score range again and again."""
    whole_number("bins", bins, 2)
    start = spline(sample, seed=seed)
    x = logit(start.map.predict(sample.predictions), CLIP)
    held_out = sample.fold_of(10, seed) < 10 * HELD_OUT_SHARE
    # columns of numbers give the two sides of each of `bins` quantiles as groups
    inside, words, mapped = (_by_rules if sample.rules else _by_columns)(sample, start.map, bins)
    patches = tuple(patched(x, sample.outcomes, sample.weights, inside, held_out))
    note = () if patches else (NOTHING_TO_PATCH,)
    listed = [_listed(words[one.group], one) for one in patches]
    details = {"patches": listed, "start": dict(start.details)}
    return Fitted(mapped(patches), (*start.notes, *note), details)


Made = tuple[npt.NDArray[np.bool_], list[str], Callable[[tuple[Patch, ...]], Map]]


def _by_columns(sample: RowSample, start: Map, bins: int) -> Made:
    given = encoded_sample(sample.covariates, sample.groups or None)
    columns = binned_columns(given, bins)
    groups = tuple(group for j, column in enumerate(columns) for group in _groups(j, column))
    words = [group.rule for group in groups]
    mapped = partial(PatchMap, start, columns, groups, seen_missing=given.with_gaps)
    return members(columns, groups, given), words, mapped


def _by_rules(sample: RowSample, start: Map, bins: int) -> Made:
    inside = np.array([rule.members(sample.covariates) for rule in sample.rules], dtype=bool)
    names = sorted({condition.column for rule in sample.rules for condition in rule.conditions})
    features, missing = Features(), tuple[str, ...]()
    if names:  # else everyone
        given = encoded_sample(sample.covariates, names)
        features, missing = given.features, given.with_gaps
    mapped = partial(RulePatchMap, start, features, sample.rules, seen_missing=missing)
    return inside, list(sample.rules), mapped


def _groups(j: int, column: BinnedColumn) -> list[PatchedGroup]:
    words, last = column.words(), column.count - 1
    if column.feature.kind == "category":
        return [PatchedGroup(j, (k,), words[k]) for k in range(column.count)]
    collected = [PatchedGroup(j, (last,), words[last])]
    name = column.feature.name
    for cut, at in enumerate(column.written_cuts(), start=1):
        collected.append(PatchedGroup(j, tuple(range(cut)), f"{name} < {at}"))
        collected.append(PatchedGroup(j, tuple(range(cut, last)), f"{name} >= {at}"))
    return collected


def _listed(words: str, one: Patch) -> dict[str, Any]:
    everywhere = one.low <= 0.0 and one.high > 1.0
    scores = "all scores" if everywhere else f"scores from {one.low:.4g} to {min(one.high, 1.0):.4g}"
    return {"rule": words, "scores": scores, "shift": one.shift, "z": one.z}


FOLDS = 4  # for the number of trees,
MAX_CROSS_FITTED = 5_000  # records up to which all folds are used; above, one of
HOLD_OUT_FOLDS = 5
NOTHING_GAINED = "Trees gained less than one standard error on held-out records: the map is the spline alone."


def boost(
    sample: RowSample,
    *,
    seed: int,
    trees: int = 400,
    learning_rate: float = 0.03,
    leaves: int = 15,
    smallest_leaf: int = 100,
    ridge: float = 10.0,
) -> Fitted:
    """Fit the spline, then boost from it by as many trees as have the least held-out log loss."""
    whole_number("leaves", leaves, 2)
    whole_number("trees", trees, STAGE_TREES)
    start = spline(sample, seed=seed)
    given = _encoded(sample)
    x = logit(start.map.predict(sample.predictions), CLIP)
    rows = np.column_stack((given.rows, x))
    growth = TreeParams(given.categorical, trees, learning_rate, leaves, smallest_leaf, ridge)
    few = sample.n <= MAX_CROSS_FITTED
    fold = sample.fold_of(FOLDS if few else HOLD_OUT_FOLDS, seed)
    weight = np.ascontiguousarray(sample.weights)
    grown = boosted(rows, sample.outcomes, x, weight, fold, growth, range(FOLDS) if few else [0])
    details = {
        "gain": grown.gain,
        "gain_error": grown.error,
        "trees": len(grown.forest),
        "trees_tried": grown.trees,
        "grown_by": "lightgbm",
        "start": dict(start.details),
    }
    note = () if len(grown.forest) else (NOTHING_GAINED,)
    fitted = BoostMap(start.map, given.features, grown.forest, given.with_gaps)
    return Fitted(fitted, (*start.notes, *note), details)


Model = Literal["tree", "boosting", "logistic"]
GROWTH = {
    "tree": TreeParams(trees=1, learning_rate=1.0, leaves=1024, smallest_leaf=100, ridge=0.0),
    # LightGBM's defaults
    "boosting": TreeParams(trees=100, learning_rate=0.1, leaves=31, smallest_leaf=20, ridge=0.0),
}


def augment(sample: RowSample, *, seed: int, model: Model = "tree", times: int = 3) -> Fitted:
    """Refit a model to covariates and its previous prediction, `times` times on the same records.

    The predictions given must be those of a model fitted to other records.
    """
    if model not in get_args(Model):
        raise reject_name("model", str(model), list(get_args(Model)))
    whole_number("times", times, 1)
    given = _encoded(sample)
    weight = np.ascontiguousarray(sample.weights)
    q, models, logits = sample.predictions, list[Forest | Linear](), model != "tree"
    for _ in range(times):
        rows = np.column_stack((given.rows, q))
        data = rows, sample.outcomes, weight
        if model == "logistic":  # with scikit-learn's default ridge, on numbers divided by their largest
            models.append(logistic_regression(*data, given.categorical))
        else:
            growth = replace(GROWTH[model], categorical=given.categorical)
            models.append(grown_trees(*data, growth, np.zeros(sample.n) if logits else None))
        q = predicted_by(models[-1], rows, logits)
    fitted = AugmentMap(given.features, tuple(models), logits, given.with_gaps)
    return Fitted(fitted, (), {"model": model, "times": times})
