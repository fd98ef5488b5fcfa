"""calibrant: measure, test and audit the calibration of predicted probabilities."""

import sys
from typing import TYPE_CHECKING

if getattr(sys, "argv", [])[:1] == ["-m"]:  # python -m calibrant: quiet on Ctrl-C while the rest is loaded
    from calibrant_command import stop_quietly

    stop_quietly()

from calibrant.errors import (
    CalibrantError,
    InvalidInputError,
    MissingDependencyError,
    SwappedArgumentsWarning,
    TooFewRecordsError,
    UnknownNameError,
    UnreadableFileError,
)
from calibrant.forecasts import Forecasts
from calibrant.measures.binned import binned_calibration_error
from calibrant.measures.calibration_index import integrated_calibration_index
from calibrant.measures.convolved import convolved_calibration_error
from calibrant.measures.curve import kolmogorov_smirnov_error, kuiper_error
from calibrant.measures.decisions.thresholds import ThresholdLossCurve
from calibrant.measures.decisions.u_calibration import monotone_regret, u_calibration_error
from calibrant.measures.decisions.worst_task import WorstTask, decision_loss, threshold_loss_curve, worst_task
from calibrant.measures.distances.interval_error import interval_calibration_error
from calibrant.measures.distances.lower import TransportPlan, lower_distance, transport_plan
from calibrant.measures.distances.sandwich import Distances, distances
from calibrant.measures.distances.upper import certified_distance, distance_to_calibration, upper_distance
from calibrant.measures.ece import expected_calibration_error
from calibrant.measures.in_the_large import calibration_in_the_large
from calibrant.measures.kernel import kernel_calibration_error
from calibrant.measures.level_sets import LevelSetWarning
from calibrant.measures.low_degree import low_degree_error
from calibrant.measures.random_binning import RandomBinning, random_binning_estimate
from calibrant.measures.registry.lookup import measure, measures
from calibrant.measures.registry.resolution import NoCertificateError
from calibrant.measures.registry.row import Measure
from calibrant.measures.regression import (
    CoxCalibration,
    calibration_intercept,
    calibration_slope,
    cox_calibration,
)
from calibrant.measures.scores import Decomposition, brier_score, decompose, log_loss, miscalibration
from calibrant.measures.smooth import earth_mover_error, smooth_calibration_error
from calibrant.measures.smoothed_curve import SmoothedReliability, smoothed_reliability
from calibrant.measures.truthful import averaged_two_bin_error, binned_squared_error
from calibrant.measures.weighted import weighted_calibration_error
from calibrant.results import Certified, Measurement, Witness

if TYPE_CHECKING:
    from calibrant import online
    from calibrant.demonstration import load_demo
    from calibrant.evaluation.assertion import assert_calibrated
    from calibrant.groups.audit import audit
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.audit_table import AuditTable, audit_table
    from calibrant.groups.compare_groups import compare_groups
    from calibrant.groups.distinguish import distinguish
    from calibrant.groups.distinguisher import Distinguisher
    from calibrant.groups.group_comparison import GroupComparison
    from calibrant.groups.rules import Rule
    from calibrant.groups.search import search_groups
    from calibrant.groups.search_result import Search
    from calibrant.groups.weight_family import WeightFamily, weight_family
    from calibrant.inference.benefit_curves import NetBenefits
    from calibrant.inference.calibration_test import calibration_test
    from calibrant.inference.class_table import ClassTable, class_table
    from calibrant.inference.compare import compare
    from calibrant.inference.comparison import Comparison, Difference
    from calibrant.inference.decision import DecisionEstimate, estimate_decision_loss
    from calibrant.inference.dominance import Dominance, dominance
    from calibrant.inference.dominance_over import DominanceOver
    from calibrant.inference.engine import TestResult
    from calibrant.inference.hosmer_lemeshow import hosmer_lemeshow
    from calibrant.inference.interval import ConfidenceInterval, confidence_interval
    from calibrant.inference.net_benefits import net_benefits
    from calibrant.inference.plan import Plan
    from calibrant.inference.planning import detectable_distance, required_samples
    from calibrant.inference.spiegelhalter import spiegelhalter
    from calibrant.inference.tolerance import ToleranceResult, tolerance_test
    from calibrant.measures.decisions.best_actions import BestActions, best_actions
    from calibrant.measures.decisions.convex_score import ConvexScore, as_score
    from calibrant.measures.decisions.fixed_payoff import (
        ActionChange,
        DecisionReport,
        decision_report,
        fixed_decision_loss,
    )
    from calibrant.measures.decisions.net_benefit import DecisionCurve, net_benefit
    from calibrant.measures.decisions.swap_regret import SwapRegret, swap_regret
    from calibrant.measures.multiclass import class_wise, one_vs_rest, top_label
    from calibrant.online.group_monitor import GroupMonitor
    from calibrant.online.monitor import Monitor
    from calibrant.online.reading import Reading
    from calibrant.recalibration.assess import Assessment
    from calibrant.recalibration.loading import load_recalibration
    from calibrant.recalibration.recalibrate import recalibrate
    from calibrant.recalibration.result import Recalibration, RecalibrationWarning
    from calibrant.recalibration.table import recalibrations
    from calibrant.report.evaluation import Evaluation, evaluate
    from calibrant.scale.sketch import Sketch
    from calibrant.truthfulness.gap import Truthfulness, truthfulness_gap
    from calibrant.truthfulness.incentives import Incentive, Incentives, incentives
    from calibrant.truthfulness.worst import worst_truth


__version__ = "0.2.0"

# What the registry does not need loads when one of its names is first used: importing calibrant stays quick.
_LATER = {
    "ActionChange": "measures.decisions.fixed_payoff",
    "Assessment": "recalibration.assess",
    "Audit": "groups.audit_result",
    "AuditTable": "groups.audit_table",
    "BestActions": "measures.decisions.best_actions",
    "ClassTable": "inference.class_table",
    "Comparison": "inference.comparison",
    "ConfidenceInterval": "inference.interval",
    "ConvexScore": "measures.decisions.convex_score",
    "DecisionCurve": "measures.decisions.net_benefit",
    "DecisionEstimate": "inference.decision",
    "DecisionReport": "measures.decisions.fixed_payoff",
    "Difference": "inference.comparison",
    "Distinguisher": "groups.distinguisher",
    "Dominance": "inference.dominance",
    "DominanceOver": "inference.dominance_over",
    "Evaluation": "report.evaluation",
    "GroupComparison": "groups.group_comparison",
    "GroupMonitor": "online.group_monitor",
    "Incentive": "truthfulness.incentives",
    "Incentives": "truthfulness.incentives",
    "Monitor": "online.monitor",
    "NetBenefits": "inference.benefit_curves",
    "Plan": "inference.plan",
    "Reading": "online.reading",
    "Recalibration": "recalibration.result",
    "RecalibrationWarning": "recalibration.result",
    "Rule": "groups.rules",
    "Search": "groups.search_result",
    "Sketch": "scale.sketch",
    "SwapRegret": "measures.decisions.swap_regret",
    "TestResult": "inference.engine",
    "ToleranceResult": "inference.tolerance",
    "Truthfulness": "truthfulness.gap",
    "WeightFamily": "groups.weight_family",
    "as_score": "measures.decisions.convex_score",
    "assert_calibrated": "evaluation.assertion",
    "audit": "groups.audit",
    "audit_table": "groups.audit_table",
    "best_actions": "measures.decisions.best_actions",
    "calibration_test": "inference.calibration_test",
    "class_table": "inference.class_table",
    "class_wise": "measures.multiclass",
    "compare": "inference.compare",
    "compare_groups": "groups.compare_groups",
    "confidence_interval": "inference.interval",
    "decision_report": "measures.decisions.fixed_payoff",
    "detectable_distance": "inference.planning",
    "distinguish": "groups.distinguish",
    "dominance": "inference.dominance",
    "estimate_decision_loss": "inference.decision",
    "evaluate": "report.evaluation",
    "fixed_decision_loss": "measures.decisions.fixed_payoff",
    "hosmer_lemeshow": "inference.hosmer_lemeshow",
    "incentives": "truthfulness.incentives",
    "load_demo": "demonstration",
    "load_recalibration": "recalibration.loading",
    "net_benefit": "measures.decisions.net_benefit",
    "net_benefits": "inference.net_benefits",
    "one_vs_rest": "measures.multiclass",
    "online": "online",  # a room itself: cb.online.OnlineCalibrator
    "recalibrate": "recalibration.recalibrate",
    "recalibrations": "recalibration.table",
    "required_samples": "inference.planning",
    "search_groups": "groups.search",
    "spiegelhalter": "inference.spiegelhalter",
    "swap_regret": "measures.decisions.swap_regret",
    "tolerance_test": "inference.tolerance",
    "top_label": "measures.multiclass",
    "truthfulness_gap": "truthfulness.gap",
    "weight_family": "groups.weight_family",
    "worst_truth": "truthfulness.worst",
}

__all__ = [
    "ActionChange",
    "Assessment",
    "Audit",
    "AuditTable",
    "BestActions",
    "CalibrantError",
    "Certified",
    "ClassTable",
    "Comparison",
    "ConfidenceInterval",
    "ConvexScore",
    "CoxCalibration",
    "DecisionCurve",
    "DecisionEstimate",
    "DecisionReport",
    "Decomposition",
    "Difference",
    "Distances",
    "Distinguisher",
    "Dominance",
    "DominanceOver",
    "Evaluation",
    "Forecasts",
    "GroupComparison",
    "GroupMonitor",
    "Incentive",
    "Incentives",
    "InvalidInputError",
    "LevelSetWarning",
    "Measure",
    "Measurement",
    "MissingDependencyError",
    "Monitor",
    "NetBenefits",
    "NoCertificateError",
    "Plan",
    "RandomBinning",
    "Reading",
    "Recalibration",
    "RecalibrationWarning",
    "Rule",
    "Search",
    "Sketch",
    "SmoothedReliability",
    "SwapRegret",
    "SwappedArgumentsWarning",
    "TestResult",
    "ThresholdLossCurve",
    "ToleranceResult",
    "TooFewRecordsError",
    "TransportPlan",
    "Truthfulness",
    "UnknownNameError",
    "UnreadableFileError",
    "WeightFamily",
    "Witness",
    "WorstTask",
    "as_score",
    "assert_calibrated",
    "audit",
    "audit_table",
    "averaged_two_bin_error",
    "best_actions",
    "binned_calibration_error",
    "binned_squared_error",
    "brier_score",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "calibration_test",
    "certified_distance",
    "class_table",
    "class_wise",
    "compare",
    "compare_groups",
    "confidence_interval",
    "convolved_calibration_error",
    "cox_calibration",
    "decision_loss",
    "decision_report",
    "decompose",
    "detectable_distance",
    "distance_to_calibration",
    "distances",
    "distinguish",
    "dominance",
    "earth_mover_error",
    "estimate_decision_loss",
    "evaluate",
    "expected_calibration_error",
    "fixed_decision_loss",
    "hosmer_lemeshow",
    "incentives",
    "integrated_calibration_index",
    "interval_calibration_error",
    "kernel_calibration_error",
    "kolmogorov_smirnov_error",
    "kuiper_error",
    "load_demo",
    "load_recalibration",
    "log_loss",
    "low_degree_error",
    "lower_distance",
    "measure",
    "measures",
    "miscalibration",
    "monotone_regret",
    "net_benefit",
    "net_benefits",
    "one_vs_rest",
    "online",
    "random_binning_estimate",
    "recalibrate",
    "recalibrations",
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
    "truthfulness_gap",
    "u_calibration_error",
    "upper_distance",
    "weight_family",
    "weighted_calibration_error",
    "worst_task",
    "worst_truth",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"calibrant.{_LATER[name]}")
    result: object = module if name == _LATER[name] else getattr(module, name)
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
