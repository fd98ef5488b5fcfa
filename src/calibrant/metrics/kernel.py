"""Kernel calibration error: exact in O(m) for the Laplace kernel, blocked for any other; random binning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.errors import InvalidInputError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.inputs import positive_number, whole_number
from calibrant.kernels.cumulative import laplace_form, laplace_forms
from calibrant.metrics.bibliography import DISTANCE_PAPER, TRUTHFUL_PAPER
from calibrant.metrics.calling import accepts_rows, measure_function, numbers_of
from calibrant.metrics.certificates import bracketed, no_certificate, reach, residual_mass, rounding, widened
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import dot, recorded_seed
from calibrant.results import Array, Certified, Result, Witness

Kernel = Literal["laplace", "gaussian"] | Callable[[Array, Array], Array]

BLOCK = 2**20  # entries of the kernel matrix held at once


@measure_function
def kernel_calibration_error(
    forecasts: Forecasts, *, kernel: Kernel = "laplace", bandwidth: float = 1.0, squared: bool = False
) -> Certified:
    """Square root of E[(y - v) (y' - v') k(v, v')]; also called maximum mean calibration error (MMCE).

    The default, k(u, v) = exp(-|u - v| / bandwidth), is the Laplace kernel of the distance paper: within
    constants it lies between the distance from calibration and its square root. Its square, the value
    with ``squared=True``, is perfectly truthful. "gaussian" is exp(-(u - v)^2 / bandwidth^2), which is
    not sound: some far from calibrated predictors get a vanishing value. All but Laplace cost O(m^2) time.

    Parameters
    ----------
    kernel
        "laplace", "gaussian", or a function k(u, v) of two arrays that broadcast.
    squared
        Whether to leave out the root.

    Examples
    --------
    >>> kernel_calibration_error([0, 0, 0], [0.25, 0.25, 0.25], bandwidth=0.1)
    0.25
    """
    positive_number("bandwidth", bandwidth)
    if callable(kernel) and bandwidth != kernel_calibration_error.settings({})["bandwidth"]:
        rule = "must not be combined with a kernel of your own"
        raise InvalidInputError("bandwidth", rule, f"got {bandwidth}", "build it into the kernel")
    square, product = _square_and_product(forecasts, kernel, float(bandwidth))
    error = float(np.sqrt(square))
    meaning = "the function of norm 1 in the space of the kernel that attains the unsquared error"
    witness = Witness(forecasts.values, product / error if error > 0 else product, meaning)
    return Certified.point(square if squared else error, witness)


def _square_and_product(forecasts: Forecasts, kernel: Kernel, bandwidth: float) -> tuple[float, Array]:
    """Return b' K b and K b."""
    values, residuals = forecasts.values, forecasts.residuals
    if kernel == "laplace":
        return laplace_form(values, residuals, bandwidth)
    if not callable(kernel) and kernel != "gaussian":
        raise reject_name("kernel", str(kernel), ["laplace", "gaussian", "a callable"])

    def gaussian(u: Array, v: Array) -> Array:  # exp(-40^2) is 0 already, a larger square may overflow
        return np.asarray(np.exp(-(np.minimum(np.abs((u - v) / bandwidth), 40.0) ** 2)))

    product = _blocked_product(values, residuals, kernel if callable(kernel) else gaussian)
    square = dot(residuals, product)
    # named kernels are positive definite: below 0 is rounding
    if callable(kernel) and square < -1e-9 * float(np.sum(np.abs(residuals)) * np.sum(np.abs(product))):
        got = f"got a quadratic form of {square:.3g}"
        raise InvalidInputError("kernel", "must be positive definite", got)
    return max(square, 0.0), product


def _blocked_product(values: Array, residuals: Array, kernel: Callable[[Array, Array], Array]) -> Array:
    rows = max(1, BLOCK // len(values))
    product = np.empty(len(values))
    for start in range(0, len(values), rows):
        some = values[start : start + rows, None]
        block = np.asarray(kernel(some, values[None, :]), dtype=np.float64)
        if block.shape != (len(some), len(values)) or not np.all(np.isfinite(block)):
            rule = "must return one finite number for every pair of predictions"
            raise InvalidInputError("kernel", rule, f"got shape {block.shape}")
        product[start : start + rows] = block @ residuals
    return product


def _laplace(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    """Laplace kernel error, or its square; other kernels have no linear-time form."""
    if settings["kernel"] != "laplace":
        return None
    squares = laplace_forms(forecasts.values, residuals, float(settings["bandwidth"]))
    return squares if settings["squared"] else np.sqrt(squares)


def _kernel_mean(forecasts: Forecasts, settings: Settings) -> float | None:
    known = settings["kernel"] in ("laplace", "gaussian")  # with k(v, v) = 1
    return forecasts.null_variance if settings["squared"] and known else None


@kernel_calibration_error.certificate
def _kernel_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Certify the norm of sum r_i phi(v_i), phi the feature map of the kernel, or its square."""
    name, bandwidth = settings["kernel"], float(settings["bandwidth"])
    if name not in ("laplace", "gaussian"):
        raise no_certificate("kernel", "got a kernel of your own")
    distance = reach(forecasts) / bandwidth
    mass = residual_mass(forecasts)
    if name == "laplace":
        change = _laplace_change(mass, distance)
    else:  # feature maps of predictions d bandwidths apart differ by the root of 2 - 2 exp(-d^2)
        change = float(mass @ np.sqrt(-2 * np.expm1(-(np.minimum(distance, 40.0) ** 2))))
    squared = bool(settings["squared"])
    norm = float(np.sqrt(measured.value)) if squared else measured.value
    slack = 4 * rounding(forecasts)
    margin = change + slack / max(norm, float(np.sqrt(slack)))  # the norm is the root of a rounded sum
    if squared:
        return bracketed(measured, max(0.0, norm - margin) ** 2 - slack, (norm + margin) ** 2 + slack)
    return widened(measured, margin)


def _laplace_change(mass: Array, distance: Array) -> float:
    """Bound the norm of the sum of the changes of all cells, whose feature maps differ by 2 - 2 exp(-d)."""
    # One cell changes by at most A sqrt(2 - 2 exp(-d)). For s < t in two cells the kernel is a product,
    # exp(s) exp(-t), so their changes have an inner product of at most A (e^d - 1) A' (e^d' - 1): nearly
    # orthogonal, hence the root of a sum of squares and not the sum.
    alone = mass * np.sqrt(-2 * np.expm1(-distance))
    crossed = float(mass @ np.expm1(np.minimum(distance, 300.0)))
    return min(float(alone.sum()), float(np.sqrt(alone @ alone + crossed**2)))


MEASURES = (
    Measure(
        "kernel",
        kernel_calibration_error,
        family="kernel",
        meaning="residuals of neighboring predictions multiplied together, neighbors weighing most",
        continuous=True,
        sound=True,
        consistency=(0.5, 2.0),
        null=Null(_laplace, residuals_only=True, power=1),
        citation=DISTANCE_PAPER + ", section 8",
        variants=({"bandwidth": 0.05}, {"kernel": "gaussian"}),
    ),
    Measure(
        "kernel-squared",
        kernel_calibration_error,
        words="squared kernel error",
        options={"squared": True},
        family="truthful",
        meaning="square of the kernel error; fair for ranking models",
        continuous=True,
        sound=True,
        truthful="batch",
        decisive=("squared",),
        null=Null(_laplace, residuals_only=True, power=2, mean=_kernel_mean),
        citation=TRUTHFUL_PAPER + ", section 3 (a mixture of binned squared errors)",
    ),
)


@measure_function
def weighted_calibration_error(
    forecasts: Forecasts, *, weight_function: Callable[[Array], Array]
) -> Certified:
    """Absolute value of E[w(v) (y - v)] for a weight function w of your own, called on an array.

    Definition 3.1 of the survey for a class of one function. Calibration means 0 for every w.

    Parameters
    ----------
    weight_function
        A function from an array of predictions to a weight for each.

    Examples
    --------
    >>> weighted_calibration_error([0, 1], [0.5, 0.5], weight_function=lambda v: 1 - v)
    0.0
    """
    rule = "must return one finite number per prediction"
    weight = numbers_of(weight_function, forecasts.values, "weight_function", rule)
    signed = float(forecasts.residuals @ weight)
    return Certified.point(
        abs(signed), Witness(forecasts.values, weight, "the weight function given"), signed=signed
    )


@dataclass(frozen=True, slots=True, repr=False)
class RandomBinning(Result):
    """An estimate of the squared Laplace kernel error, its standard error, and how it was drawn."""

    square: float
    standard_error: float
    draws: int
    bandwidth: float
    seed: int


@accepts_rows
def random_binning_estimate(
    forecasts: Forecasts, *, bandwidth: float = 1.0, draws: int = 100, seed: int | None = 0
) -> RandomBinning:
    """Estimate the squared Laplace kernel error by binned squared errors with random bins.

    Bins of width Gamma(2, bandwidth) and uniform shift put u and v together with probability
    exp(-|u - v| / bandwidth), so the sum over bins of the squared residual sum is unbiased for
    ``kernel_calibration_error(..., squared=True)``. It needs neither a kernel nor an order, only
    bins, and so serves where records cannot be compared pair by pair; on one machine the exact value is
    cheaper.

    Examples
    --------
    >>> random_binning_estimate([0, 0, 1], [0.3, 0.3, 0.3], seed=0).square.__round__(9)
    0.001111111
    """
    positive_number("bandwidth", bandwidth)
    whole_number("draws", draws, 2)
    used = recorded_seed(seed)
    rng = np.random.default_rng(used)
    widths, shifts = rng.gamma(2.0, bandwidth, size=draws), rng.random(draws)
    squares = np.array([_binned_square(forecasts, *bins) for bins in zip(widths, shifts, strict=True)])
    error = float(squares.std(ddof=1) / np.sqrt(draws))
    return RandomBinning(float(squares.mean()), error, draws, bandwidth, used)


def _binned_square(forecasts: Forecasts, width: float, shift: float) -> float:
    """Return the sum over the bins [(k - shift) width, (k + 1 - shift) width) of the squared residual."""
    if width * forecasts.levels > 1.0:  # fewer bins than levels: read the curve where they end
        edges = np.arange(1.0 - shift, 1.0 / width, 1.0) * width
        ends = np.searchsorted(forecasts.values, edges)
    else:
        ends = np.flatnonzero(np.diff(np.floor(forecasts.values / width + shift))) + 1
    reached: Array = forecasts.curve[np.concatenate(([0], ends, [forecasts.levels]))]
    return float(np.sum(np.diff(reached) ** 2))
