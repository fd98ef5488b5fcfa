"""Charts in Altair: each is a function of Forecasts or of a result, and is saved with ``.save("x.svg")``.

A page loads the files of its own charts only: some know results of packages that it does not need.
"""

from importlib import import_module
from typing import Any

CHARTS = {
    "decisions": "decision_curves murphy_difference threshold_loss",
    "distributions": "curve_of_tests pit_histogram risk_curve",
    "evidence": "cumulative_differences null_histogram smooth_witness",
    "groups": "carriers forest giveaways group_curves groups_in_order groups_within",
    "online": "certificate_over_time evidence_over_time expert_weights gain_over_time",
    "reliability": "comparison recalibration_map reliability_diagram",
}
HOMES = {name: file for file, names in CHARTS.items() for name in names.split()}
__all__ = sorted(HOMES)


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
