"""The error of bins at a width, averaged over where they start."""

from __future__ import annotations

import numpy as np

from calibrant.kernels.intervals import Floats


def shifted_error(values: Floats, residuals: Floats, width: float) -> float:
    """Binned error with bins of one width, averaged over where they start, exactly.

    Averaging over the shift is averaging over the left end t of a bin [t, t + width): the integral of
    |C(t + width) - C(t)| / width, whose integrand changes where t or t + width passes a prediction. The
    stretches between are taken from predictions and width apart: an end v - width rounds to v where the
    width is tiny.
    """
    order = np.argsort(np.concatenate([values - width, values]), kind="stable")
    inside = np.cumsum(np.concatenate([residuals, -residuals])[order])[:-1]
    passed = order >= len(values)  # t itself is at the prediction, not t + width
    inside[np.cumsum(np.where(passed, -1, 1))[:-1] == 0] = (
        0.0  # empty: no rounding, which the width would blow up
    )
    stretch = np.diff(np.concatenate([values, values])[order]) + width * np.diff(passed.astype(np.float64))
    return float(np.abs(inside) @ stretch) / width
