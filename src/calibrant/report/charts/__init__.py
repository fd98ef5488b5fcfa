"""Charts in Altair: each is a function of Forecasts or of a result, usable alone in a notebook.

They can be saved as SVG, PNG or PDF with ``chart.save("name.svg")``.
"""

from calibrant.report.charts.comparison import comparison
from calibrant.report.charts.cumulative import cumulative_differences
from calibrant.report.charts.distinguisher import carriers, giveaways
from calibrant.report.charts.dominance import murphy_difference
from calibrant.report.charts.evidence import evidence_over_time
from calibrant.report.charts.group_curves import group_curves
from calibrant.report.charts.group_order import groups_in_order
from calibrant.report.charts.groups import forest
from calibrant.report.charts.net_benefit import decision_curves
from calibrant.report.charts.null import null_histogram
from calibrant.report.charts.online import certificate_over_time, expert_weights, gain_over_time
from calibrant.report.charts.recalibration_map import recalibration_map
from calibrant.report.charts.reliability import reliability_diagram
from calibrant.report.charts.threshold import threshold_loss
from calibrant.report.charts.witness import smooth_witness

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
