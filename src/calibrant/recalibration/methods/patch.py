"""patch: shifts of named groups and ranges of scores, every one of them listed."""

from __future__ import annotations

from typing import Any

from calibrant.fits.logits import logit
from calibrant.fits.patching import Patch, patched
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import LeveledColumn, coded, met
from calibrant.recalibration.maps.boost import CLIP
from calibrant.recalibration.maps.patch import PatchedGroup, PatchMap, members
from calibrant.recalibration.methods.checks import at_least_two
from calibrant.recalibration.methods.spline import spline
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Rows

HELD_OUT = 0.3
NOTHING_TO_PATCH = "No group needed a patch that held-out records support: the map is the spline alone."


def patch(sample: Rows, *, seed: int, bins: int = 4) -> Fitted:
    """Fit the spline, then shift the worst cell of group and score range again and again.

    Groups are the values of the columns of `groups=` (of all covariates where there are none), for numbers
    the two sides of each of the `bins` quantiles.
    """
    at_least_two("bins", bins)
    assert sample.covariates is not None  # the registry row says so
    start = spline(sample, seed=seed)
    columns = coded(sample.covariates, sample.groups or None)
    features = Features.of(columns)
    given = met(features, columns)
    leveled = tuple(
        LeveledColumn.of(one, given.encoded.rows[:, j], bins) for j, one in enumerate(features.features)
    )
    groups = tuple(group for j, column in enumerate(leveled) for group in _groups(j, column))
    x = logit(start.map.predict(sample.predictions), CLIP)
    held_out = sample.dealt(10, seed) < 10 * HELD_OUT
    inside = members(leveled, groups, given)
    patches = tuple(patched(x, sample.outcomes, sample.weights, inside, held_out))
    missing = tuple(name for name, count in given.encoded.missing.items() if count)
    fitted = PatchMap(start.map, leveled, groups, patches, missing)
    note = () if patches else (NOTHING_TO_PATCH,)
    listed = [_listed(groups, one) for one in patches]
    return Fitted(fitted, (*start.notes, *note), {"patches": listed, "start": dict(start.details)})


def _groups(j: int, column: LeveledColumn) -> list[PatchedGroup]:
    """Return the groups of one column: every category, or both sides of every cut, and missing."""
    words, last = column.words(), column.count - 1
    if column.feature.kind == "category":
        return [PatchedGroup(j, (k,), words[k]) for k in range(column.count)]
    found = [PatchedGroup(j, (last,), words[last])]
    name = column.feature.name
    for cut in range(1, last):
        at = words[cut].split(" <= ")[0] if cut < last - 1 else words[cut].split(" >= ")[1]
        found.append(PatchedGroup(j, tuple(range(cut)), f"{name} < {at}"))
        found.append(PatchedGroup(j, tuple(range(cut, last)), f"{name} >= {at}"))
    return found


def _listed(groups: tuple[PatchedGroup, ...], one: Patch) -> dict[str, Any]:
    everywhere = one.low <= 0.0 and one.high > 1.0
    scores = "all scores" if everywhere else f"scores from {one.low:.4g} to {min(one.high, 1.0):.4g}"
    return {"rule": groups[one.group].words, "scores": scores, "shift": one.shift, "z": one.z}
