"""Expected calibration error: the distance between prediction and outcome rate, level by level."""

from __future__ import annotations

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.level_sets import warn_if_singletons
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.null import Null, Settings
from calibrant.measures.registry.papers import DISTANCE_PAPER
from calibrant.measures.registry.row import Measure
from calibrant.options import number
from calibrant.results import Array, Certified, Witness


@public
def expected_calibration_error(forecasts: Forecasts, *, norm: float = 1, root: bool = False) -> Certified:
    """Expected calibration error over the distinct predictions, E |E[y|v] - v|^norm.

    Also called ECE or l1-calibration error; the total variation of the cumulative curve. With `norm=2`
    it is the l2 error without the root, as in the truthfulness paper; `root=True` takes the 1/norm root,
    as in the survey's ECE_q. `norm=math.inf` is the maximum calibration error. Nothing is binned: for
    the popular estimate with bins see binned_calibration_error.

    Parameters
    ----------
    norm
        The power of the gaps; math.inf for the largest.
    root
        Whether to take the root of that power at the end.

    Returns
    -------
    float
        The error; 0 if every level is calibrated.

    Examples
    --------
    >>> expected_calibration_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    """
    if not number("norm", norm) > 0:
        raise InvalidInputError(sentence("norm", "must be positive", f"got {norm}"))
    warn_if_singletons(forecasts, "expected_calibration_error")
    gap = np.abs(forecasts.residuals) / forecasts.weights
    if np.isinf(norm):
        return Certified.point(float(gap.max()), prediction=float(forecasts.values[gap.argmax()]))
    witness = None
    if norm == 1:
        meaning = "+1 where the outcomes exceed the prediction, -1 where they fall short"
        witness = Witness(forecasts.values, np.sign(forecasts.residuals), meaning)
    return Certified.point(float(mean_power(gap, forecasts.weights, float(norm), root)), witness)


def mean_power(gaps: Array, weights: Array, norm: float, root: bool) -> Array:
    """Return the weighted mean of gap^norm over the last axis, or its root, for one row of gaps or many.

    The root is taken in units of the largest gap: high powers of small gaps vanish, their roots do not.
    """
    if not root:
        return np.asarray(gaps**norm @ weights)
    largest = gaps.max(axis=-1)
    share = gaps / np.where(largest > 0, largest, 1.0)[..., None]
    return np.asarray(largest * (share**norm @ weights) ** (1 / norm))


def _level_gaps(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """ECE: E |gap|^norm over the levels."""
    norm, weight = settings["norm"], forecasts.weights
    gap = np.abs(residuals)
    if norm == 1:
        return np.asarray(gap.sum(axis=1))
    gap /= weight
    if np.isinf(norm):
        return np.asarray(gap.max(axis=1))
    return mean_power(gap, weight, float(norm), bool(settings["root"]))


ROWS = (
    Measure(
        "ece",
        expected_calibration_error,
        words="expected calibration error",
        largest=1.0,
        family="levels",
        meaning="mean gap between each distinct prediction and the outcome rate behind it",
        complete=True,
        sound=True,
        needs_level_sets=True,
        symmetric=True,
        null=Null(_level_gaps, power=1),
        cost="O(m)",
        citation=DISTANCE_PAPER + ", section 1",
        variants=({"norm": 2}, {"norm": 3, "root": True}, {"norm": float("inf")}),
    ),
)
