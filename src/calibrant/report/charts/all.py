"""Which charts an evaluation has, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from calibrant.report.charts.cumulative import cumulative_differences
from calibrant.report.charts.group_curves import group_curves
from calibrant.report.charts.group_order import groups_in_order
from calibrant.report.charts.groups import forest
from calibrant.report.charts.layers import Spec
from calibrant.report.charts.notebook import Chart, Charts
from calibrant.report.charts.null import null_histogram
from calibrant.report.charts.recalibration_map import recalibration_map
from calibrant.report.charts.reliability import reliability_diagram
from calibrant.report.charts.threshold import threshold_loss
from calibrant.report.charts.witness import smooth_witness

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.evaluation.proposal import Proposal
    from calibrant.groups.group_comparison import GroupComparison


def charts(
    evaluation: Findings, proposal: Proposal | str, differences: Sequence[GroupComparison] = ()
) -> Mapping[str, Chart]:
    """Draw every chart that the evaluation has data for, for notebooks."""
    return Charts(specifications(evaluation, proposal, differences))


def specifications(
    evaluation: Findings, proposal: Proposal | str, differences: Sequence[GroupComparison] = ()
) -> Mapping[str, Spec]:
    """Return the specification of every chart that the evaluation has data for."""
    forecasts = evaluation.forecasts
    collected = {
        "reliability": reliability_diagram.spec(forecasts, seed=evaluation.seed),
        "cumulative": cumulative_differences.spec(forecasts),
        "witness": smooth_witness.spec(forecasts),
    }
    if evaluation.null is not None:
        null = evaluation.null
        collected["null"] = null_histogram.spec(null.values, null.observed, null.pvalue, null.measure)
    if evaluation.audit is not None:
        collected["groups"] = forest.spec(evaluation.audit)
        collected["group-curves"] = group_curves.spec(evaluation.audit)
    for compared in [one for one in differences if one.trend is not None][:1]:
        collected["groups-in-order"] = groups_in_order.spec(compared)
    if evaluation.recalibration is not None:
        collected["threshold"] = threshold_loss.spec(evaluation.recalibration.curve)
    if not isinstance(proposal, str):
        collected["recalibration"] = recalibration_map.spec(proposal)
    return MappingProxyType(collected)
