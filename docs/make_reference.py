"""Write docs/reference/*.md: every public name, grouped by the question it answers.

Run `python docs/make_reference.py`; a test checks that every public name is on exactly one page.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import calibrant as cb

HERE = Path(__file__).parent / "reference"

PAGES: dict[str, tuple[str, str, str]] = {
    "start": (
        "Start here",
        "The first functions to try.",
        """
        evaluate Evaluation recalibrate audit load_demo Forecasts assert_calibrated reliability_diagram
        verify Verification
        """,
    ),
    "measures": (
        "How far from calibrated?",
        "Measures take arrays or Forecasts and return a float.",
        """
        measure measures Measurement smooth_calibration_error kuiper_error kolmogorov_smirnov_error
        expected_calibration_error binned_calibration_error level_set_error
        averaged_two_bin_error binned_squared_error random_partition_error PartitionError
        kernel_calibration_error random_binning_estimate RandomBinning convolved_calibration_error
        smoothed_reliability SmoothedReliability low_degree_error weighted_calibration_error
        earth_mover_error calibration_in_the_large observed_expected_ratio c_statistic
        calibration_intercept calibration_slope cox_calibration integrated_calibration_index
        brier_score log_loss decompose miscalibration
        Measure Certified Witness CoxCalibration Decomposition
        """,
    ),
    "distances": (
        "Distances to calibration",
        "Proven brackets of how far predictions must move.",
        """
        distances Distances lower_distance transport_plan TransportPlan upper_distance
        distance_to_calibration certified_distance interval_calibration_error
        """,
    ),
    "inference": (
        "Is it real?",
        "Tests, intervals, comparison and planning.",
        """
        calibration_test TestResult tolerance_test ToleranceResult confidence_interval
        ConfidenceInterval compare Comparison Difference OutcomeComparison censored Censored
        required_samples detectable_distance Plan validation_table ValidationTable
        validation_sample_size ValidationPlan spiegelhalter hosmer_lemeshow
        """,
    ),
    "groups": (
        "For whom?",
        "Groups, found or named.",
        """
        Audit search_groups Search Rule compare_groups GroupComparison audit_table AuditTable distinguish
        Distinguisher weight_family WeightFamily error_rates ErrorRates
        """,
    ),
    "decisions": (
        "What does it cost?",
        "For those who act on the predictions.",
        """
        decision_loss worst_task WorstTask threshold_loss_curve ThresholdLossCurve fixed_decision_loss
        decision_report DecisionReport ActionChange estimate_decision_loss DecisionEstimate swap_regret
        SwapRegret net_benefit DecisionCurve net_benefits NetBenefits u_calibration_error monotone_regret
        dominance Dominance DominanceOver best_actions BestActions as_score ConvexScore
        choose_threshold AbstentionThreshold risk_coverage RiskCoverage
        """,
    ),
    "recalibration": (
        "Repair it",
        "Maps from predictions to better ones.",
        """
        recalibrations load_recalibration Recalibration Assessment RecalibrationWarning
        sklearn.Recalibrator sklearn.Recalibrated
        """,
    ),
    "online": (
        "Keep it",
        "Streams, one outcome at a time.",
        """
        online.OnlineCalibrator online.DistanceForecaster online.ExpectedErrorForecaster
        online.DecisionLossForecaster online.CutoffForecaster online.ClassForecaster online.Run
        online.total_certificate Monitor GroupMonitor Reading
        """,
    ),
    "truthfulness": (
        "Who gains by lying?",
        "Incentives of forecasters.",
        """
        truthfulness_gap incentives worst_truth Truthfulness Incentives Incentive class_truthfulness
        ClassTruthfulness
        """,
    ),
    "classes": (
        "Several classes",
        "From class probabilities to yes-or-no questions.",
        """
        top_label class_table ClassTable class_wise one_vs_rest class_low_degree_error
        """,
    ),
    "scale": (
        "More rows than memory",
        "Mergeable summaries.",
        """
        Sketch
        """,
    ),
    "errors": (
        "Errors and warnings",
        "Every error is a CalibrantError, which is a ValueError.",
        """
        CalibrantError InvalidInputError UnknownNameError UnreadableFileError TooFewRecordsError
        MissingDependencyError NoCertificateError SwappedArgumentsWarning LevelSetWarning
        """,
    ),
}


def page(title: str, intro: str, names: list[str]) -> str:
    """Return one page of the reference."""
    blocks = [f"# {title}", "", intro, ""]
    for name in names:
        blocks += ["```{eval-rst}", *directive(name), "```", ""]
    return "\n".join(blocks)


def directive(name: str) -> list[str]:
    """Return the directive that documents one public name."""
    item = cb
    for part in name.split("."):
        item = getattr(item, part) if hasattr(item, part) else import_module(f"calibrant.{part}")
    if inspect.isclass(item):
        routing = [
            member for member in dir(item) if member.startswith("set_") and member.endswith("_request")
        ]
        without = [f"   :exclude-members: {', '.join(routing)}"] if routing else []
        return [f".. autoclass:: calibrant.{name}", "   :members:", *without]
    return [f".. autofunction:: calibrant.{name}"]


def index() -> str:
    """Return the list of pages; the summaries are the first lines of the docstrings."""
    blocks = ["# Reference", "", "Every public name, by the question it answers.", ""]
    for key, (title, intro, names) in PAGES.items():
        listed = [f"   ~calibrant.{name}" for name in names.split()]
        blocks += [f"## [{title}]({key}.md)", "", intro, ""]
        blocks += ["```{eval-rst}", ".. autosummary::", "   :nosignatures:", "", *listed, "```", ""]
    blocks += ["```{toctree}", ":hidden:", *PAGES, "```", ""]
    return "\n".join(blocks)


def write(folder: Path = HERE) -> None:
    """Write all pages."""
    folder.mkdir(exist_ok=True)
    (folder / "index.md").write_text(index(), encoding="utf-8")
    for name, (title, intro, names) in PAGES.items():
        (folder / f"{name}.md").write_text(page(title, intro, names.split()), encoding="utf-8")


if __name__ == "__main__":
    write()
