"""What a sketch proves of the raw rows: for each measure, an interval that holds its value on them.

A sketch replaces the predictions v_i of a cell by their weighted mean. The residual of the cell stays
exact; what is lost is where in the cell it lies. Write r_i = w_i (y_i - v_i) for a record's residual,
A for the absolute residual mass of a cell (`over` + `under`), h for the spread of its predictions, and
d <= h for the largest distance from its mean to a prediction. Every rule below bounds, in exact
arithmetic, what moving the residuals inside their cells can change, and adds `rounding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError, sentence
from calibrant.forecasts import Cells, Forecasts
from calibrant.results import Array, Certified

Settings = Mapping[str, Any]
EPS = float(np.finfo(np.float64).eps)


class NoCertificateError(CalibrantError):
    """The measure cannot be bounded from what a sketch keeps."""


def no_certificate(name: str, reason: str = "") -> NoCertificateError:
    """Build the error for a measure, or an option of it, that a sketch cannot bound."""
    hint = "take the raw rows, or a measure that `calibrant measures` marks as certified on sketches"
    return NoCertificateError(sentence(f"measure {name!r}", "has no certificate on a sketch", reason, hint))


def rounding(forecasts: Forecasts) -> float:
    """Bound the rounding of sums over the records: that of n terms errs by at most n units in the last place.

    The order of summation does not matter, so it holds for every engine and every order of merging.
    """
    return 4 * EPS * (float(forecasts.weights @ forecasts.counts) + forecasts.levels + 16)


def widened(found: Certified, margin: float) -> Certified:
    """Return the value with both bounds moved out by `margin`."""
    return replace(found, lower=found.lower - margin, upper=found.upper + margin, exact=False)


def bracketed(found: Certified, lower: float, upper: float) -> Certified:
    """Return the value moved into proven bounds, when the sums of the cells know better than their means."""
    return replace(
        found, value=float(np.clip(found.value, lower, upper)), lower=lower, upper=upper, exact=False
    )


def reach(forecasts: Forecasts) -> Array:
    """Largest distance d from the mean of each cell to one of its predictions."""
    cells = cells_of(forecasts)
    return np.maximum(cells.high - forecasts.values, forecasts.values - cells.low)


def residual_mass(forecasts: Forecasts) -> Array:
    """Absolute residual mass A of each cell."""
    return cells_of(forecasts).over + cells_of(forecasts).under


def same(forecasts: Forecasts, found: Certified, _: Settings) -> Certified:
    """Certify a function of sums that the sketch keeps exactly."""
    return widened(found, rounding(forecasts))


def lipschitz_weights(forecasts: Forecasts, found: Certified, constant: float) -> Certified:
    """Certify a supremum of sum r_i x(v_i) over weight functions |x| <= 1 with this Lipschitz constant.

    Each x changes by at most sum |r_i| constant |v_i - mean| <= constant sum A d, so the supremum does too.
    """
    moved = float(residual_mass(forecasts) @ reach(forecasts))
    return widened(found, constant * moved + (1 + constant) * rounding(forecasts))


def smooth(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Weight functions of the smooth error have the Lipschitz constant that the user asked for, or 1."""
    return lipschitz_weights(forecasts, found, float(settings.get("lipschitz", 1.0)))


def earth_mover(forecasts: Forecasts, found: Certified, _: Settings) -> Certified:
    """Weight functions f(v, 1) - f(v, 0) of the earth mover's error have Lipschitz constant 2."""
    return lipschitz_weights(forecasts, found, 2.0)


def low_degree(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Markov: a polynomial of degree d bounded by 1 on [0, 1] has a slope of at most 2 d^2 there."""
    return lipschitz_weights(forecasts, found, 2.0 * int(settings.get("degree", 3)) ** 2)


def transport(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Certify the lower distance: 1-Lipschitz in the mean distance that predictions are moved.

    With another power, |u - v|^alpha is alpha-Lipschitz on [0, 1].
    """
    return widened(found, float(settings.get("alpha", 1.0)) * mean_move(forecasts))


def mean_move(forecasts: Forecasts) -> float:
    """Bound the mean distance E |v - mean| from the predictions to the means of their cells.

    On [low, high] with a given mean it is largest with all weight at the two ends:
    2 (mean - low)(high - mean) / (high - low), at most h / 2.
    """
    cells, h = cells_of(forecasts), forecasts.extents
    ends = (forecasts.values - cells.low) * (cells.high - forecasts.values)
    moved = np.divide(2 * ends, h, out=np.zeros_like(h), where=h > 0)
    # a mean that rounding shifted by e is compared with the true one at a cost of at most 2 e
    return float(forecasts.weights @ moved) + 2 * rounding(forecasts)


def kolmogorov_smirnov(forecasts: Forecasts, found: Certified, _: Settings) -> Certified:
    """At least the sketch's value; inside a cell the curve stays in its band."""
    lowest, highest = _band(forecasts)
    most = max(found.value, float(highest.max()), -float(lowest.min()))
    return replace(widened(found, rounding(forecasts)), upper=most + rounding(forecasts))


def kuiper(forecasts: Forecasts, found: Certified, _: Settings) -> Certified:
    """At least the sketch's value; at most the top of all bands minus the bottom of all."""
    lowest, highest = _band(forecasts)
    most = max(0.0, float(highest.max())) - min(0.0, float(lowest.min()))
    return replace(
        widened(found, rounding(forecasts)), upper=max(found.value, most) + 2 * rounding(forecasts)
    )


def two_bins(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Integrate the cost of the two bins over the band of the curve inside cells, exactly outside them.

    c^2 + (T - c)^2 and |c| + |T - c| are convex and symmetric about T / 2: the largest cost is at an end
    of the band, the smallest at its point nearest to T / 2.
    """
    cells, curve, total = cells_of(forecasts), forecasts.curve, float(forecasts.curve[-1])
    power = int(settings.get("norm", 2))

    def cost(c: Array) -> Array:
        return np.asarray(np.abs(c) ** power + np.abs(total - c) ** power)

    gaps = np.append(cells.low, 1.0) - np.insert(cells.high, 0, 0.0)
    outside = float(gaps @ cost(curve))
    lowest, highest = _band(forecasts)
    least = outside + float(forecasts.extents @ cost(np.clip(total / 2, lowest, highest)))
    most = outside + float(forecasts.extents @ np.maximum(cost(lowest), cost(highest)))
    slack = 8 * rounding(forecasts)  # the cost has a slope of at most 4 in c and 2 in T
    return bracketed(found, least - slack, most + slack)


def kernel(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Certify the norm of sum r_i phi(v_i), phi the feature map of the kernel, or its square."""
    name, bandwidth = settings.get("kernel", "laplace"), float(settings.get("bandwidth", 1.0))
    if name not in ("laplace", "gaussian"):
        raise no_certificate("kernel", "got a kernel of your own")
    distance = reach(forecasts) / bandwidth
    change = (_gaussian_change if name == "gaussian" else _laplace_change)(residual_mass(forecasts), distance)
    squared = bool(settings.get("squared", False))
    norm = float(np.sqrt(found.value)) if squared else found.value
    slack = 4 * rounding(forecasts)
    margin = change + slack / max(norm, float(np.sqrt(slack)))  # the norm is the root of a rounded sum
    if squared:
        return bracketed(found, max(0.0, norm - margin) ** 2 - slack, (norm + margin) ** 2 + slack)
    return widened(found, margin)


def _gaussian_change(mass: Array, distance: Array) -> float:
    """Feature maps of predictions d bandwidths apart differ by the root of 2 - 2 exp(-d^2)."""
    return float(mass @ np.sqrt(-2 * np.expm1(-(np.minimum(distance, 40.0) ** 2))))


def _laplace_change(mass: Array, distance: Array) -> float:
    """Bound the norm of the sum of the changes of all cells, whose feature maps differ by 2 - 2 exp(-d).

    One cell changes by at most A sqrt(2 - 2 exp(-d)). For s < t in two cells the kernel is a product,
    exp(s) exp(-t), so their changes have an inner product of at most A (e^d - 1) A' (e^d' - 1): nearly
    orthogonal, hence the root of a sum of squares and not the sum.
    """
    alone = mass * np.sqrt(-2 * np.expm1(-distance))
    crossed = float(mass @ np.expm1(np.minimum(distance, 300.0)))
    return min(float(alone.sum()), float(np.sqrt(alone @ alone + crossed**2)))


def convolved(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Gaussians of width s with centres d apart differ by at most d sqrt(2 / pi) / s in all.

    So cECE_s changes by at most M / s. Both the sketch's and the raw cECE_s fall with s: at the larger root
    L of s (lower - s) = M the raw one is at least lower - M / L = L, hence its fixed point is too; above
    `upper` the raw fixed point s is at most upper + M / s.
    """
    moved = float(np.sqrt(2 / np.pi)) * float(residual_mass(forecasts) @ reach(forecasts))
    slack, bandwidth = 2 * rounding(forecasts), settings.get("bandwidth")
    if bandwidth is not None:
        return widened(found, min(moved / float(bandwidth), 2.0) + slack)
    margin = 4 * moved
    lower = (found.lower + np.sqrt(found.lower**2 - margin)) / 2 if found.lower**2 >= margin else 0.0
    upper = (found.upper + np.sqrt(found.upper**2 + margin)) / 2
    return bracketed(found, float(lower) - slack, float(upper) + slack)


def brier(forecasts: Forecasts, found: Certified, _: Settings) -> Certified:
    """Exact: y (1 - v)^2 + (1 - y) v^2 = y (1 - v) + (1 - y) v - v (1 - v), and the three sums are kept."""
    cells = cells_of(forecasts)
    value = float((cells.over + cells.under - cells.spread).sum())
    return bracketed(found, value - rounding(forecasts), value + rounding(forecasts))


def log_loss(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Bound the loss of the ones and of the zeros of each cell by convexity, given their mean prediction."""
    cells, clip = cells_of(forecasts), float(settings.get("clip", EPS))
    ones, zeros = forecasts.outcomes, forecasts.weights - forecasts.outcomes
    # a one costs -log(v), a zero -log(1 - v): the same bound for both, in v and in 1 - v
    first = _log_bounds(ones, ones - cells.under, cells.low, cells.high, clip, forecasts)
    second = _log_bounds(zeros, zeros - cells.over, 1 - cells.high, 1 - cells.low, clip, forecasts)
    slack = 64 * rounding(forecasts)  # no loss exceeds -log(EPS) = 36 by default
    return bracketed(found, first[0] + second[0] - slack, first[1] + second[1] + slack)


def _log_bounds(
    mass: Array, moment: Array, low: Array, high: Array, clip: float, forecasts: Forecasts
) -> tuple[float, float]:
    """Bound sum of w (-log v) over records in [low, high] of given total weight and total w v.

    Below by Jensen, above by the chord; where clipping at the low end spoils convexity, by the ends.
    """
    kept = mass > 0
    mass, low, high = mass[kept], low[kept], high[kept]
    error = 4 * EPS * (forecasts.counts[kept] + 8) * forecasts.weights[kept] / mass
    mean = moment[kept] / mass
    least = -np.log(np.clip(np.clip(mean + error, low, high), clip, 1 - clip))
    at_low, at_high = (-np.log(np.clip(end, clip, 1 - clip)) for end in (low, high))
    share = np.divide(
        high - np.clip(mean - error, low, high), high - low, out=np.zeros_like(low), where=high > low
    )
    most = at_high + share * (at_low - at_high)
    least, most = np.where(low < clip, at_high, least), np.where(low < clip, at_low, most)
    return float(mass @ least), float(mass @ most)


def _band(forecasts: Forecasts) -> tuple[Array, Array]:
    """Return how low and how high the curve can be strictly inside each cell.

    On the way through a cell it has taken some part of the positive residuals (`under` in all) and some
    part of the negative ones (`over` in all). A cell of one prediction has no inside: its ends are C.
    """
    cells, before, after = cells_of(forecasts), forecasts.curve[:-1], forecasts.curve[1:]
    inside = forecasts.extents > 0
    lowest = np.where(inside, before - cells.over, np.minimum(before, after))
    return lowest, np.where(inside, before + cells.under, np.maximum(before, after))


def cells_of(forecasts: Forecasts) -> Cells:
    """Return what the sketch knows of its cells."""
    if forecasts.cells is None:
        raise TypeError("only a sketch needs a certificate")
    return forecasts.cells
