"""Every public name and the file that defines it: the one list behind `import calibrant` and its modules.

`docs/make_stubs.py` writes the type stubs (`__init__.pyi`) from it, so each name is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# Public module -> file -> names, as `name` or `public=defined`. The module "" is `calibrant` itself: what
# `dir(calibrant)` shows.
PUBLIC: dict[str, dict[str, str]] = {
    "": {
        "abstention": "choose_threshold risk_coverage",
        "censoring": "censored",
        "demo": "load_demo",
        "errors": "CalibrantError InvalidInputError",
        "evaluation.evaluate": "Evaluation evaluate",
        "evaluation.gate": "assert_calibrated",
        "evaluation.verify": "Verification verify",
        "forecasts": "Forecasts",
        "groups.audit": "AuditTable audit audit_table",
        "groups.audit_result": "Audit",
        "groups.compare_groups": "compare_groups",
        "groups.compare_groups_result": "GroupComparison",
        "inference.compare": "compare",
        "inference.compare_result": "Comparison",
        "inference.intervals": "ConfidenceInterval confidence_interval",
        "inference.planning": "Plan required_samples",
        "inference.testing": "TestResult calibration_test",
        "inference.tolerance": "ToleranceResult tolerance_test",
        "metrics.binned": "binned_calibration_error expected_calibration_error",
        "metrics.certificates": "NoCertificateError",
        "metrics.cumulative": "kuiper_error",
        "metrics.lookup": "measure measures",
        "metrics.scores": "brier_score log_loss",
        "metrics.smooth": "smooth_calibration_error",
        "online.monitor": "GroupMonitor Monitor",
        "recalibration.recalibrate": "load_recalibration recalibrate",
        "recalibration.result": "Recalibration",
        "report.diagram": "reliability_diagram",
        "results": "Measurement",
        "sketch.sketch": "Sketch",
    },
    "metrics": {
        "metrics.binned": "binned_calibration_error expected_calibration_error level_set_error",
        "metrics.convolved": "SmoothedReliability convolved_calibration_error smoothed_reliability",
        "metrics.cox": "CoxCalibration calibration_intercept calibration_slope cox_calibration",
        "metrics.cumulative": (
            "calibration_in_the_large kolmogorov_smirnov_error kuiper_error observed_expected_ratio"
        ),
        "metrics.decisions.worst_case": "monotone_regret u_calibration_error",
        "metrics.distance.lower": "TransportPlan lower_distance transport_plan",
        "metrics.distance.summary": "Distances distances",
        "metrics.distance.upper": (
            "certified_distance distance_to_calibration interval_calibration_error upper_distance"
        ),
        "metrics.kernel": (
            "RandomBinning kernel_calibration_error random_binning_estimate weighted_calibration_error"
        ),
        "metrics.low_degree": "low_degree_error",
        "metrics.registry": "Measure",
        "metrics.scores": (
            "Decomposition brier_score c_statistic decompose integrated_calibration_index log_loss"
            " miscalibration"
        ),
        "metrics.smooth": "earth_mover_error smooth_calibration_error",
        "metrics.truthful": (
            "PartitionError averaged_two_bin_error binned_squared_error random_partition_error"
        ),
        "results": "Certified Witness",
    },
    "decisions": {
        "abstention": "AbstentionThreshold RiskCoverage",
        "inference.decision_loss": "DecisionEstimate estimate_decision_loss",
        "inference.dominance": "Dominance DominanceOver dominance",
        "inference.net_benefits": "NetBenefits net_benefits",
        "metrics.decisions.fixed_payoff": (
            "ActionChange DecisionCurve DecisionReport SwapRegret decision_report fixed_decision_loss "
            "net_benefit swap_regret"
        ),
        "metrics.decisions.payoffs": "BestActions ConvexScore as_score best_actions",
        "metrics.decisions.worst_case": (
            "ThresholdLossCurve WorstTask decision_loss threshold_loss_curve worst_task"
        ),
    },
    "distributions": {
        "distributions.tables": "IntervalCoverage QuantileTable interval_coverage quantile_table",
        "distributions.thresholds": (
            "HorizonTable ThresholdTable horizon_table threshold_forecasts threshold_table"
        ),
        "distributions.uniformity": "Pit pit",
        "evaluation.distributions": "DistributionEvaluation evaluate=evaluate_distributions",
    },
    "groups": {
        "groups.distinguisher": "Distinguisher distinguish",
        "groups.classification_rates": "ErrorRates error_rates",
        "groups.rules": "Rule",
        "groups.search": "Search search_groups",
        "groups.weight_functions": "WeightFamily weight_family",
    },
    "inference": {
        "censoring": "Censored",
        "inference.classic_tests": "hosmer_lemeshow spiegelhalter",
        "inference.compare_outcomes": "OutcomeComparison",
        "inference.compare_result": "Difference",
        "inference.planning": "ValidationPlan detectable_distance validation_sample_size",
        "inference.validation": "ValidationTable validation_table",
    },
    "multiclass": {
        "inference.class_table": "ClassTable class_table",
        "metrics.multiclass": "class_low_degree_error class_wise one_vs_rest top_label",
    },
    "online": {
        "online.base": "Run total_certificate",
        "online.bins": "ExpectedErrorForecaster",
        "online.calibrator": "OnlineCalibrator",
        "online.classes": "ClassForecaster",
        "online.decision_loss": "DecisionLossForecaster",
        "online.cutoff": "CutoffForecaster",
        "online.distance": "DistanceForecaster",
        "online.monitor": "GroupMonitor Monitor Reading",
    },
    "recalibration": {
        "recalibration.assess": "Assessment",
        "recalibration.methods.table": "recalibrations",
        "recalibration.result": "RecalibrationWarning",
    },
    "truthfulness": {
        "truthfulness.gap": (
            "ClassTruthfulness Truthfulness class_truthfulness truthfulness_gap worst_truth"
        ),
        "truthfulness.lies": "Incentive Incentives incentives",
    },
    "errors": {
        "errors": (
            "LevelSetWarning MissingDependencyError SwappedArgumentsWarning TooFewRecordsError "
            "UnknownNameError UnreadableFileError"
        ),
    },
}

# Modules with names of their own, which `calibrant` itself does not have unless SHARED lists them.
OWN_NAMES = ("distributions", "online")
SHARED = ("GroupMonitor", "Monitor", "Reading")
MODULES: tuple[str, ...]
MODULES = ("decisions", "distributions", "errors", "groups", "inference", "logs", "losses", "metrics")
MODULES += ("multiclass", "online", "recalibration", "sklearn", "truthfulness")


def homes(module: str) -> dict[str, tuple[str, str]]:
    """Return for each name of a public module the file that defines it and its name there."""
    found = {}
    for file, names in PUBLIC[module].items():
        for entry in names.split():
            name, _, defined = entry.partition("=")
            found[name] = (file, defined or name)
    return found


def all_homes() -> dict[str, tuple[str, str]]:
    """Return the same for every name that can be imported from `calibrant`."""
    found = [(module, name, home) for module in PUBLIC for name, home in homes(module).items()]
    return {name: home for module, name, home in found if module not in OWN_NAMES or name in SHARED}


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a public module, whose names load when first used."""
    module = package.partition(".")[2]
    shown = sorted(homes(module))
    known = homes(module) if module else all_homes()

    def load(name: str) -> Any:
        if name in known:
            file, defined = known[name]
            return getattr(import_module(f"calibrant.{file}"), defined)
        if not module and name in MODULES:
            return import_module(f"calibrant.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: shown if module else sorted([*shown, "__version__", "online"]), shown
