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
from calibrant.parallel import dot
from calibrant.results import Array

MIN_CLIP = 1e-4  # of predictions in the logit
FEWEST_KNOTS = (0.05, 0.35, 0.65, 0.95)  # quantiles of the predictions
MAX_KNOTS = 12
KNOTS_OF_100, GROWTH = 4.5, 0.2  # knots for 100 of the rarer outcome, and the power with which they grow
OUTER_KNOT = 0.02  # quantile, from five knots on
WIDTH = 5.0  # of the prior, in logits, of every orthogonal part of the curve: keeps sparse data finite
MIN_PART = 1e-8  # of the largest one, below which a part is left out
TAIL = 0.02  # share of predictions at either end beyond which nothing but a rising curve is assumed


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """logit rate = logit p + X(logit p) beta, with the covariance of beta."""

    center: float
    scale: float
    knots: Array
    parts: Array  # turns the columns of the spline into orthogonal ones
    beta: Array
    covariance: Array
    degrees: float
    ends: tuple[float, float]  # the quantiles TAIL and 1 - TAIL of the predictions
    clip: float

    def rates(self, p: Array) -> Array:
        return expit(self._logits(p)[0])

    def limits(self, p: Array, confidence: float) -> tuple[Array, Array]:
        """Return pointwise limits of the true rate at each prediction."""
        from scipy.special import stdtrit

        low, high = self.ends
        eta, error = self._logits(np.append(p, self.ends))
        reach = float(stdtrit(self.degrees, (1.0 + confidence) / 2.0)) * error
        lower, upper = expit(eta - reach), expit(eta + reach)
        at_low, at_high = upper[-2], lower[-1]
        lower, upper = lower[:-2], upper[:-2]
        above, below = p > high, p < low  # beyond them the spline is extrapolated (see TAIL)
        lower[above], upper[above] = np.minimum(lower[above], at_high), 1.0
        upper[below], lower[below] = np.maximum(upper[below], at_low), 0.0
        return lower, upper

    def _logits(self, p: Array) -> tuple[Array, Array]:
        x = logit(p, self.clip)
        design = _basis((x - self.center) / self.scale, self.knots) @ self.parts
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
    ones = float(levels.ones.sum())
    degrees = min(ones, levels.total - ones)
    if clusters is not None:  # those with a record of the rarer outcome
        holding = (np.unique(clusters[rates > 0]) for rates in (levels.rates, 1.0 - levels.rates))
        degrees = min(degrees, *(float(len(labels)) for labels in holding))
    knots = np.unique(_quantiles(z, share, _knot_shares(degrees)))
    if single:  # one record carries more than another
        degrees *= levels.total / (len(levels.weights) * dot(levels.weights, share))
    design = _basis(z, knots)
    parts = _orthogonal(design, share)
    design = design @ parts
    size = design.shape[1]
    precision = np.full(size, WIDTH**-2)
    columns = Regressors(tuple(np.ascontiguousarray(design.T)), offset=x)
    fitted = minimize_loss(
        columns, levels.rates, levels.weights, center=np.zeros(size), precision=precision, tolerance=1e-12
    )
    covariance = np.asarray(np.linalg.inv(fitted.curvature), dtype=np.float64)
    if single:
        surplus = levels.weights * (expit(columns.predictor(fitted.beta)) - levels.rates)
        scores = np.array([column * surplus for column in columns.columns])
        if clusters is not None:
            scores = np.array([np.bincount(clusters, row) for row in scores])
        # the sandwich covariance over clusters or weighted records, never below the plain one
        excess, vectors = np.linalg.eigh(covariance @ (scores @ scores.T) @ covariance - covariance)
        covariance = np.asarray(covariance + (vectors * np.maximum(excess, 0.0)) @ vectors.T)
    ends = _quantiles(levels.values, share, np.array([TAIL, 1.0 - TAIL]))
    return CalibrationCurve(
        center, scale, knots, parts, fitted.beta, covariance,
        max(degrees - size, 1.0), (float(ends[0]), float(ends[1])), clip,
    )  # fmt: skip


def _knot_shares(rarer: float) -> Array:
    """Return the quantiles of the knots, whose number grows with the records of the rarer outcome."""
    from scipy.special import ndtr, ndtri

    # four knots for any n are too stiff: at 5,000 the limits missed a curve that bends in 13% of samples
    # beyond the outer knots, and a curve that winds everywhere
    count = min(MAX_KNOTS, round(KNOTS_OF_100 * (rarer / 100.0) ** GROWTH))
    if count <= len(FEWEST_KNOTS):
        return np.array(FEWEST_KNOTS)
    even = np.linspace(OUTER_KNOT, 1.0 - OUTER_KNOT, count)
    end = float(ndtri(OUTER_KNOT))
    return np.asarray((even + ndtr(np.linspace(end, -end, count))) / 2.0)  # somewhat closer at the ends


def _orthogonal(design: Array, share: Array) -> Array:
    """Return the matrix that makes columns orthogonal, with mean square 1, and leaves out what others say."""
    corner = np.linalg.qr(np.sqrt(share)[:, None] * design, mode="r")
    _, sizes, directions = np.linalg.svd(corner, full_matrices=False)
    kept = sizes > MIN_PART * sizes[0]
    return np.asarray(directions[kept].T / sizes[kept])


def _clip(values: Array) -> float:
    """Return the prediction that 0 is taken for."""
    inner = values[(values > 0.0) & (values < 1.0)]
    if len(inner) == 0 or (values[0] > 0.0 and values[-1] < 1.0):
        return MIN_CLIP
    # A rounded 0 stands for predictions up to half of the next level, a quarter of it on average. A logit of
    # -9 would bend the whole spline: for tenths the limits held the true curve in as few as 12% of samples.
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


def _quantiles(values: Array, share: Array, at: Array) -> Array:
    middles = np.cumsum(share) - share / 2.0
    return np.asarray(np.interp(at, middles, values))
