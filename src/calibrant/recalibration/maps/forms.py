"""All forms of maps by the name that files give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.errors import UnreadableFileError, sentence
from calibrant.recalibration.maps.augment import AugmentMap
from calibrant.recalibration.maps.boost import BoostMap
from calibrant.recalibration.maps.classes import OneVsRestMap, SoftmaxMap, TopLabelMap
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.maps.hierarchical import HierarchicalMap
from calibrant.recalibration.maps.identity import IdentityMap
from calibrant.recalibration.maps.logistic import LogisticMap
from calibrant.recalibration.maps.pairs import PairMap
from calibrant.recalibration.maps.patch import PatchMap
from calibrant.recalibration.maps.piecewise import PiecewiseMap, SplineMap
from calibrant.recalibration.maps.prevalence import PrevalenceMap
from calibrant.recalibration.maps.rules import RulePatchMap
from calibrant.recalibration.maps.steps import StepMap

FORMS: tuple[type[Map], ...] = (
    IdentityMap,
    LogisticMap,
    PiecewiseMap,
    SplineMap,
    PairMap,
    StepMap,
    PrevalenceMap,
    HierarchicalMap,
    BoostMap,
    AugmentMap,
    PatchMap,
    RulePatchMap,
    SoftmaxMap,
    OneVsRestMap,
    TopLabelMap,
)


def map_to_dict(fitted: Map) -> dict[str, Any]:
    """Return a map as JSON: its form and its numbers."""
    return {"form": fitted.form, **fitted.to_dict()}


def map_from_dict(numbers: Mapping[str, Any]) -> Map:
    """Rebuild a map, or say that its form is not known here."""
    known = {form.form: form for form in FORMS}
    form = numbers.get("form")
    if form not in known:
        raise UnreadableFileError(
            sentence("form of a map", f"must be one of {', '.join(known)}", f"got {form!r}")
        )
    return known[form].from_dict(numbers)
