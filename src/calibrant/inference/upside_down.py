"""Whether predictions point the wrong way: the higher they are, the fewer events come."""

from __future__ import annotations

import math

from calibrant.forecasts import Forecasts

ROUNDING = 1e-12  # of weights that sum to 1
SURE = 3.0  # standard deviations from which on predictions are said to point the wrong way


def upside_down(forecasts: Forecasts) -> bool:
    """Return whether higher predictions go with fewer events, by more than chance would give."""
    centred = forecasts.values - forecasts.mean_prediction
    rate = min(1.0, forecasts.base_rate)
    noise = rate * (1 - rate) * float(forecasts.squared_weights @ centred**2)
    return float(centred @ forecasts.outcomes) < -SURE * math.sqrt(noise) - ROUNDING
