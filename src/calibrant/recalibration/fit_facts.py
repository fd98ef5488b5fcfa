"""What a recalibration was fitted to."""

from __future__ import annotations

from dataclasses import dataclass


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
