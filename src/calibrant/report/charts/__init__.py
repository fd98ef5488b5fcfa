"""Charts in Altair: each is a function of Forecasts or of a result, and is saved with ``.save("x.svg")``."""

from __future__ import annotations

from calibrant.report.charts.decisions import decision_curves, murphy_difference, threshold_loss
from calibrant.report.charts.evidence import cumulative_differences, null_histogram, smooth_witness
from calibrant.report.charts.groups import (
    carriers,
    forest,
    giveaways,
    group_curves,
    groups_in_order,
    groups_within,
)
from calibrant.report.charts.online import (
    certificate_over_time,
    evidence_over_time,
    expert_weights,
    gain_over_time,
)
from calibrant.report.charts.reliability import comparison, recalibration_map, reliability_diagram

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
    "groups_within",
    "murphy_difference",
    "null_histogram",
    "recalibration_map",
    "reliability_diagram",
    "smooth_witness",
    "threshold_loss",
]
