"""patch: shifts of named groups and ranges of scores, every one of them listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.fits.logits import logit
from calibrant.fits.patching import Patch, patched
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import LeveledColumn, Met, coded, met
from calibrant.recalibration.maps.boost import CLIP
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.maps.patch import PatchedGroup, PatchMap, members
from calibrant.recalibration.maps.rule_patch import RulePatchMap, rule_members
from calibrant.recalibration.methods.checks import at_least_two
from calibrant.recalibration.methods.spline import spline
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Rows

HELD_OUT = 0.3
NOTHING_TO_PATCH = "No group needed a patch that held-out records support: the map is the spline alone."


def patch(sample: Rows, *, seed: int, bins: int = 4) -> Fitted:
    """Fit the spline, then shift the worst cell of group and score range again and again.

    Groups are the rules of `groups=`, or the values of its columns (of all covariates where there are none),
    for numbers the two sides of each of the `bins` quantiles.
    """
    at_least_two("bins", bins)
    assert sample.covariates is not None  # the registry row says so
    start = spline(sample, seed=seed)
    x = logit(start.map.predict(sample.predictions), CLIP)
    held_out = sample.dealt(10, seed) < 10 * HELD_OUT
    make = _by_rules if sample.rules else _by_columns
    inside, words, mapped = make(sample, start.map, bins)
    patches = tuple(patched(x, sample.outcomes, sample.weights, inside, held_out))
    note = () if patches else (NOTHING_TO_PATCH,)
    listed = [_listed(words[one.group], one) for one in patches]
    details = {"patches": listed, "start": dict(start.details)}
    return Fitted(mapped(patches), (*start.notes, *note), details)


Made = tuple[npt.NDArray[np.bool_], list[str], Callable[[tuple[Patch, ...]], Map]]


def _by_columns(sample: Rows, start: Map, bins: int) -> Made:
    """Return who is in every group of the columns, the groups in words, and the map of some patches."""
    assert sample.covariates is not None
    columns = coded(sample.covariates, sample.groups or None)
    features = Features.of(columns)
    given = met(features, columns)
    leveled = tuple(
        LeveledColumn.of(one, given.encoded.rows[:, j], bins) for j, one in enumerate(features.features)
    )
    groups = tuple(group for j, column in enumerate(leveled) for group in _groups(j, column))
    inside = members(leveled, groups, given)
    missing = _with_gaps(given)
    return inside, [g.words for g in groups], lambda made: PatchMap(start, leveled, groups, made, missing)


def _by_rules(sample: Rows, start: Map, bins: int) -> Made:
    """Return the same for rules; `bins` has no meaning for them."""
    inside = rule_members(sample.rules, sample.covariates)
    names = sorted({condition.column for rule in sample.rules for condition in rule.conditions})
    if not names:  # everyone
        return inside, list(sample.rules), lambda made: RulePatchMap(start, Features(()), sample.rules, made)
    assert sample.covariates is not None
    columns = coded(sample.covariates, names)
    features = Features.of(columns)
    missing = _with_gaps(met(features, columns))
    return (
        inside,
        list(sample.rules),
        lambda made: RulePatchMap(start, features, sample.rules, made, missing),
    )


def _with_gaps(given: Met) -> tuple[str, ...]:
    return tuple(name for name, count in given.encoded.missing.items() if count)


def _groups(j: int, column: LeveledColumn) -> list[PatchedGroup]:
    """Return the groups of one column: every category, or both sides of every cut, and missing."""
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
