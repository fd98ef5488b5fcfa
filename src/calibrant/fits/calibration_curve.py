"""The calibration curve by a restricted cubic spline of the logit, with pointwise limits.

The spline is hardly penalized, so its limits are those of the true curve and not of a fitted family
(Harrell 2015, Regression Modeling Strategies, section 2.4.5; Austin and Steyerberg 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels, expit, logit
from calibrant.fits.logistic import Regressors, minimize_loss
from calibrant.results import Array

MIN_CLIP = 1e-4  # of predictions in the logit
KNOTS = (0.05, 0.35, 0.65, 0.95)  # quantiles of the predictions
WIDTH = 5.0  # of the prior of every coefficient, whose columns are standardized: keeps sparse data finite
TAIL = 0.02  # share of predictions at either end beyond which nothing but a rising curve is assumed


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """logit rate = logit p + X(logit p) beta, with the covariance of beta."""

    center: float
    scale: float
    knots: Array
    column_scales: Array
    beta: Array
    covariance: Array
    degrees: float
    ends: tuple[float, float]  # the quantiles TAIL and 1 - TAIL of the predictions
    clip: float

    def rates(self, p: Array) -> Array:
        return expit(self._logits(p)[0])

    def limits(self, p: Array, confidence: float) -> tuple[Array, Array]:
        """Return pointwise limits of the true rate at each prediction.

        Beyond the outer 2% of the predictions the spline is extrapolated, and only a rising curve is
        assumed: there the limit away from the center is 0 or 1.
        """
        from scipy.special import stdtrit

        low, high = self.ends
        eta, error = self._logits(np.append(p, self.ends))
        reach = float(stdtrit(self.degrees, (1.0 + confidence) / 2.0)) * error
        lower, upper = expit(eta - reach), expit(eta + reach)
        at_low, at_high = upper[-2], lower[-1]
        lower, upper = lower[:-2], upper[:-2]
        above, below = p > high, p < low
        lower[above], upper[above] = np.minimum(lower[above], at_high), 1.0
        upper[below], lower[below] = np.maximum(upper[below], at_low), 0.0
        return lower, upper

    def _logits(self, p: Array) -> tuple[Array, Array]:
        x = logit(p, self.clip)
        design = _basis((x - self.center) / self.scale, self.knots) / self.column_scales
        variance = np.einsum("ij,jk,ik->i", design, self.covariance, design)
        return x + design @ self.beta, np.sqrt(np.maximum(variance, 0.0))


def fit_calibration_curve(
    levels: Levels, clusters: npt.NDArray[np.int64] | None = None, *, single: bool = False
) -> CalibrationCurve:
    """Fit the curve to levels, or to single records whose clusters or unequal weights count (`single`)."""
    clip = _clip(levels.values)
    x = logit(levels.values, clip)
    share = levels.weights / levels.total
    center = float(share @ x)
    scale = float(np.sqrt(share @ (x - center) ** 2)) or 1.0
    z = (x - center) / scale
    knots = np.unique(_quantiles(z, share, KNOTS))
    design = _basis(z, knots)
    means = share @ design
    column_scales = np.sqrt(np.maximum(share @ (design - means) ** 2, 1e-24))
    column_scales[0] = 1.0
    design = design / column_scales
    size = design.shape[1]
    precision = np.full(size, WIDTH**-2)
    columns = Regressors(tuple(np.ascontiguousarray(design.T)), offset=x)
    fitted = minimize_loss(
        columns, levels.rates, levels.weights, center=np.zeros(size), precision=precision, tolerance=1e-12
    )
    covariance = np.asarray(np.linalg.inv(fitted.curvature), dtype=np.float64)
    ones = float(levels.ones.sum())
    degrees = min(ones, levels.total - ones)
    if single:
        surplus = levels.weights * (expit(columns.predictor(fitted.beta)) - levels.rates)
        scores = np.array([column * surplus for column in columns.columns])
        if clusters is not None:
            scores = np.array([np.bincount(clusters, row) for row in scores])
            degrees = min(degrees, float(len(np.unique(clusters))))
        # the sandwich covariance over clusters or weighted records, never below the plain one
        excess, vectors = np.linalg.eigh(covariance @ (scores @ scores.T) @ covariance - covariance)
        covariance = np.asarray(covariance + (vectors * np.maximum(excess, 0.0)) @ vectors.T)
    ends = _quantiles(levels.values, share, (TAIL, 1.0 - TAIL))
    return CalibrationCurve(
        center, scale, knots, column_scales, fitted.beta, covariance,
        max(degrees - size, 1.0), (float(ends[0]), float(ends[1])), clip,
    )  # fmt: skip


def _clip(values: Array) -> float:
    """Return the prediction that 0 is taken for.

    A rounded 0 stands for all predictions up to half of the next level, and so for a quarter of it on
    average. At a logit of -9 it would bend the spline for all others: for scores rounded to tenths the limits
    held the true curve in as few as 12% of samples.
    """
    inner = values[(values > 0.0) & (values < 1.0)]
    if len(inner) == 0 or (values[0] > 0.0 and values[-1] < 1.0):
        return MIN_CLIP
    return max(MIN_CLIP, float(min(inner[0], 1.0 - inner[-1])) / 4.0)


def _basis(z: Array, knots: Array) -> Array:
    columns = [np.ones_like(z), z]
    if len(knots) > 2:
        last, before, spread = knots[-1], knots[-2], (knots[-1] - knots[0]) ** 2
        tail = np.maximum(z - last, 0.0) ** 3
        near = np.maximum(z - before, 0.0) ** 3
        for knot in knots[:-2]:
            cubic = np.maximum(z - knot, 0.0) ** 3
            inside = near * (last - knot) - tail * (before - knot)
            columns.append((cubic - inside / (last - before)) / spread)
    return np.column_stack(columns)


def _quantiles(values: Array, share: Array, at: tuple[float, ...]) -> Array:
    middles = np.cumsum(share) - share / 2.0
    return np.asarray(np.interp(at, middles, values))
