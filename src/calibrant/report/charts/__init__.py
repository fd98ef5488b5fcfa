"""Charts in Altair: each is a function of Forecasts or of a result, and is saved with ``.save("x.svg")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from calibrant.report.charts.canvas import Chart, Charts, Spec
from calibrant.report.charts.decisions import decision_curves, murphy_difference, threshold_loss
from calibrant.report.charts.groups import carriers, forest, giveaways, group_curves, groups_in_order
from calibrant.report.charts.online import (
    certificate_over_time,
    evidence_over_time,
    expert_weights,
    gain_over_time,
)
from calibrant.report.charts.reliability import (
    comparison,
    cumulative_differences,
    null_histogram,
    recalibration_map,
    reliability_diagram,
    smooth_witness,
)

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.evaluation.repair_preview import Proposal
    from calibrant.groups.group_comparison import GroupComparison


__all__ = [
    "carriers",
    "certificate_over_time",
    "comparison",
    "cumulative_differences",
    "decision_curves",
    "evidence_over_time",
    "expert_weights",
    "forest",
    "gain_over_time",
    "giveaways",
    "group_curves",
    "groups_in_order",
    "murphy_difference",
    "null_histogram",
    "recalibration_map",
    "reliability_diagram",
    "smooth_witness",
    "threshold_loss",
]


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
        collected["groups"] = forest.spec(evaluation.audit, shown=6)
        collected["group-curves"] = group_curves.spec(evaluation.audit)
    for compared in [one for one in differences if one.trend is not None][:1]:
        collected["groups-in-order"] = groups_in_order.spec(compared)
    if evaluation.recalibration is not None:
        collected["threshold"] = threshold_loss.spec(evaluation.recalibration.curve)
    if not isinstance(proposal, str):
        collected["recalibration"] = recalibration_map.spec(proposal)
    return MappingProxyType(collected)
