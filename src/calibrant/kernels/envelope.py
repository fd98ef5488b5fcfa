"""The upper envelope of straight lines."""

from __future__ import annotations

import numpy as np

from calibrant.results import Array


def upper_envelope(intercepts: Array, slopes: Array) -> tuple[list[int], list[float]]:
    """Return the lines that are highest somewhere on [0, 1], in order, and where one takes over."""
    place, line = 0.0, int(np.lexsort((-slopes, -intercepts))[0])  # at 0 the highest, of equals the steepest
    lines, thresholds = [line], []
    while True:
        steeper = np.flatnonzero(slopes > slopes[line])
        if len(steeper) == 0:
            break
        crossing = (intercepts[line] - intercepts[steeper]) / (slopes[steeper] - slopes[line])
        first = float(crossing.min())
        if not first < 1.0:
            break
        nearest = steeper[crossing <= first]
        place, line = max(place, first), int(nearest[np.argmax(slopes[nearest])])
        lines.append(line)
        thresholds.append(place)
    return lines, thresholds
