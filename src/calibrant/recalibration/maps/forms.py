"""All forms of maps, loaded together: `map_from_dict` knows those that are loaded."""

from __future__ import annotations

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
from calibrant.recalibration.maps.rule_patch import RulePatchMap
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
