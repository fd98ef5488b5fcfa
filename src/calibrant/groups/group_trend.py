"""Do groups differ at all, and is there a trend along those that have an order?"""

from __future__ import annotations

import numpy as np

from calibrant.groups.group_comparison import Trend
from calibrant.groups.group_parts import GroupPart
from calibrant.inference.events_given_total import simulated_pvalues
from calibrant.inference.fitted_shift import SMALLEST, Shift, approximate_shift
from calibrant.inference.shift import common_shift, odds_of
from calibrant.results import Array


def exact_tests(parts: list[GroupPart], in_order: bool, draws: int, seed: int) -> tuple[float, Trend | None]:
    """Test all groups together, and the trend of those that have a place in the order."""
    every = [part for part in parts if len(part.logits)]
    if len(every) < 2:
        return 1.0, None
    spread = np.array([_spread(part) for part in every])
    (pvalue,) = simulated_pvalues(
        [part.logits for part in every],
        np.array([part.events for part in every]),
        [lambda surplus: (surplus**2 / spread).sum(axis=1)],
        draws=draws,
        seed=seed,
    )
    placed = [part for part in every if part.labelled]
    if not in_order or len(placed) < 3:
        return pvalue, None
    place = _places(placed)
    (trend,) = simulated_pvalues(
        [part.logits for part in placed],
        np.array([part.events for part in placed]),
        [lambda surplus: np.abs(surplus @ place)],
        draws=draws,
        seed=seed,
    )
    return pvalue, _trend(placed, _slope(placed, place), trend)


def _spread(part: GroupPart) -> float:
    """Return the variance of the group's events if predictions are right."""
    from scipy.special import expit

    rates = expit(part.logits)
    return max(float(rates @ (1 - rates)), SMALLEST)


def _places(parts: list[GroupPart]) -> Array:
    """Return 0, 1, 2, ... along the groups, less what makes a common shift count for nothing."""
    spread = np.array([_spread(part) for part in parts])
    place = np.arange(len(parts), dtype=np.float64)
    return np.asarray(place - float(place @ spread / spread.sum()))


def _trend(parts: list[GroupPart], slope: float, pvalue: float) -> Trend:
    direction = "up" if slope > 0 else "down" if slope < 0 else "none"
    return Trend(pvalue, odds_of(slope), direction, parts[0].name, parts[-1].name)


def _slope(parts: list[GroupPart], place: Array) -> float:
    """Return the likeliest change of the shift from one group to the next: Newton's method for two numbers.

    Its sign is that of the statistic tested, since the likelihood is concave.
    """
    from scipy.special import expit

    shift, slope = (
        common_shift(np.concatenate([p.logits for p in parts]), float(sum(p.events for p in parts))),
        0.0,
    )
    for _ in range(50):
        rates = [expit(p.logits + shift + slope * k) for p, k in zip(parts, place, strict=True)]
        surplus = np.array([p.events - rate.sum() for p, rate in zip(parts, rates, strict=True)])
        spread = np.array([float(rate @ (1 - rate)) for rate in rates])
        cross, square = float(place @ spread), float(place**2 @ spread)
        width = float(spread.sum()) * square - cross**2
        if width <= 1e-12 * square * float(spread.sum()):
            break  # nothing is left to learn: all events are on one side
        step_shift = (square * surplus.sum() - cross * float(place @ surplus)) / width
        step_slope = (float(spread.sum()) * float(place @ surplus) - cross * surplus.sum()) / width
        damping = min(1.0, 2.0 / max(abs(step_shift), abs(step_slope), 1e-300))
        shift, slope = shift + damping * step_shift, slope + damping * step_slope
        if abs(step_slope) < 1e-10 or abs(slope) > 50:
            break
    return slope


def approximate_tests(
    parts: list[GroupPart], in_order: bool, draws: int, seed: int
) -> tuple[float, Trend | None]:
    from scipy.special import chdtrc, ndtr

    known = [part for part in parts if len(part.logits)]
    if len(known) < 2:
        return 1.0, None
    fits = [approximate_shift(part.logits, part.known, part.mass) for part in known]
    values, precision = _precise(fits)
    centre = float(values @ precision / precision.sum())
    pvalue = float(chdtrc(len(known) - 1, float(precision @ (values - centre) ** 2)))
    placed = [k for k, part in enumerate(known) if part.labelled]
    if not in_order or len(placed) < 3:
        return pvalue, None
    values, precision = values[placed], precision[placed]
    place = np.arange(len(placed), dtype=np.float64)
    centred = place - float(place @ precision / precision.sum())
    width = float((precision * centred) @ centred)
    slope = float((precision * centred) @ values) / width
    trend = min(1.0, 2 * float(ndtr(-abs(slope) * np.sqrt(width))))
    return pvalue, _trend([known[k] for k in placed], slope, trend)


def _precise(fits: list[Shift]) -> tuple[Array, Array]:
    return np.array([fit.value for fit in fits]), np.array([1 / fit.error**2 for fit in fits])
