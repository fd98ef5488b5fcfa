"""What a recalibration was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class FitFacts:
    """What a recalibration was fitted to."""

    n: int
    effective_n: float
    base_rate: float
    low: float  # smallest prediction seen
    high: float
    levels: int  # distinct predictions
    at_ends: float  # records predicted at exactly 0 or 1 (their effective number)
    weights: str  # "sampling" or "frequency"
    seed: int
    data: str = ""  # hash of the levels


def counted_out(details: Mapping[str, Any], dropped: int) -> Mapping[str, Any]:
    """Return details of a fit with the number of rows that were left out for a missing value, if any were."""
    return MappingProxyType({**details, "dropped": dropped}) if dropped else details
