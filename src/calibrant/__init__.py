"""calibrant: measure, test and audit the calibration of predicted probabilities."""

from typing import TYPE_CHECKING

from calibrant.errors import CalibrantError
from calibrant.forecasts import Forecasts
from calibrant.measures.binned import binned_calibration_error
from calibrant.measures.convolved import convolved_calibration_error
from calibrant.measures.curve import kolmogorov_smirnov_error, kuiper_error, weighted_calibration_error
from calibrant.measures.decision import WorstTask, decision_loss, threshold_loss_curve, worst_task
from calibrant.measures.distances import Distances, distances
from calibrant.measures.ece import expected_calibration_error
from calibrant.measures.interval import interval_calibration_error
from calibrant.measures.kernel import kernel_calibration_error
from calibrant.measures.level_sets import LevelSetWarning
from calibrant.measures.low_degree import low_degree_error
from calibrant.measures.lower_distance import TransportPlan, lower_distance, transport_plan
from calibrant.measures.random_binning import RandomBinning, random_binning_estimate
from calibrant.measures.registry import measure, measures
from calibrant.measures.regression import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    cox_calibration,
    integrated_calibration_index,
)
from calibrant.measures.scores import brier_score, decompose, log_loss, miscalibration
from calibrant.measures.smooth import earth_mover_error, smooth_calibration_error
from calibrant.measures.smoothed_curve import SmoothedReliability, smoothed_reliability
from calibrant.measures.thresholds import ThresholdLossCurve
from calibrant.measures.truthful import averaged_two_bin_error, binned_squared_error
from calibrant.measures.upper_distance import certified_distance, distance_to_calibration, upper_distance
from calibrant.results import Measurement

if TYPE_CHECKING:
    from calibrant.groups.audit import audit
    from calibrant.groups.result import Audit
    from calibrant.groups.search import Search, search_groups
    from calibrant.inference.classic import hosmer_lemeshow, spiegelhalter
    from calibrant.inference.compare import Comparison, Difference, compare
    from calibrant.inference.decision import DecisionEstimate, estimate_decision_loss
    from calibrant.inference.interval import ConfidenceInterval, confidence_interval
    from calibrant.inference.monitor import GroupMonitor, Monitor, Reading
    from calibrant.inference.planning import Plan, detectable_distance, required_samples
    from calibrant.inference.test import calibration_test
    from calibrant.inference.testing import TestResult
    from calibrant.inference.tolerance import ToleranceResult, tolerance_test
    from calibrant.measures.fixed_decision import (
        ActionChange,
        DecisionReport,
        decision_report,
        fixed_decision_loss,
    )
    from calibrant.measures.multiclass import class_wise, one_vs_rest, top_label
    from calibrant.measures.net_benefit import DecisionCurve, net_benefit
    from calibrant.measures.swap import SwapRegret, swap_regret
    from calibrant.report.evaluation import Evaluation, evaluate
    from calibrant.scale.sketch import Sketch


__version__ = "0.1.0"

# What the registry does not need loads when one of its names is first used: importing calibrant stays quick.
_LATER = {
    "ActionChange": "measures.fixed_decision",
    "Audit": "groups.result",
    "Comparison": "inference.compare",
    "ConfidenceInterval": "inference.interval",
    "DecisionCurve": "measures.net_benefit",
    "DecisionEstimate": "inference.decision",
    "DecisionReport": "measures.fixed_decision",
    "Difference": "inference.compare",
    "Evaluation": "report.evaluation",
    "GroupMonitor": "inference.monitor",
    "Monitor": "inference.monitor",
    "Plan": "inference.planning",
    "Reading": "inference.monitor",
    "Search": "groups.search",
    "Sketch": "scale.sketch",
    "SwapRegret": "measures.swap",
    "TestResult": "inference.testing",
    "ToleranceResult": "inference.tolerance",
    "audit": "groups.audit",
    "calibration_test": "inference.test",
    "class_wise": "measures.multiclass",
    "compare": "inference.compare",
    "confidence_interval": "inference.interval",
    "decision_report": "measures.fixed_decision",
    "detectable_distance": "inference.planning",
    "estimate_decision_loss": "inference.decision",
    "evaluate": "report.evaluation",
    "fixed_decision_loss": "measures.fixed_decision",
    "hosmer_lemeshow": "inference.classic",
    "net_benefit": "measures.net_benefit",
    "one_vs_rest": "measures.multiclass",
    "required_samples": "inference.planning",
    "search_groups": "groups.search",
    "spiegelhalter": "inference.classic",
    "swap_regret": "measures.swap",
    "tolerance_test": "inference.tolerance",
    "top_label": "measures.multiclass",
}

__all__ = [
    "ActionChange",
    "Audit",
    "CalibrantError",
    "Comparison",
    "ConfidenceInterval",
    "DecisionCurve",
    "DecisionEstimate",
    "DecisionReport",
    "Difference",
    "Distances",
    "Evaluation",
    "Forecasts",
    "GroupMonitor",
    "LevelSetWarning",
    "Measurement",
    "Monitor",
    "Plan",
    "RandomBinning",
    "Reading",
    "Search",
    "Sketch",
    "SmoothedReliability",
    "SwapRegret",
    "TestResult",
    "ThresholdLossCurve",
    "ToleranceResult",
    "TransportPlan",
    "WorstTask",
    "audit",
    "averaged_two_bin_error",
    "binned_calibration_error",
    "binned_squared_error",
    "brier_score",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "calibration_test",
    "certified_distance",
    "class_wise",
    "compare",
    "confidence_interval",
    "convolved_calibration_error",
    "cox_calibration",
    "decision_loss",
    "decision_report",
    "decompose",
    "detectable_distance",
    "distance_to_calibration",
    "distances",
    "earth_mover_error",
    "estimate_decision_loss",
    "evaluate",
    "expected_calibration_error",
    "fixed_decision_loss",
    "hosmer_lemeshow",
    "integrated_calibration_index",
    "interval_calibration_error",
    "kernel_calibration_error",
    "kolmogorov_smirnov_error",
    "kuiper_error",
    "log_loss",
    "low_degree_error",
    "lower_distance",
    "measure",
    "measures",
    "miscalibration",
    "net_benefit",
    "one_vs_rest",
    "random_binning_estimate",
    "required_samples",
    "search_groups",
    "smooth_calibration_error",
    "smoothed_reliability",
    "spiegelhalter",
    "swap_regret",
    "threshold_loss_curve",
    "tolerance_test",
    "top_label",
    "transport_plan",
    "upper_distance",
    "weighted_calibration_error",
    "worst_task",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"calibrant.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
