"""Kernel calibration error: exact in O(m) for the Laplace kernel, blocked for any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.kernels.laplace import laplace_form
from calibrant.measures.registry.calling import public
from calibrant.results import Array, Certified, Witness

Kernel = Literal["laplace", "gaussian"] | Callable[[Array, Array], Array]

BLOCK = 2**20  # entries of the kernel matrix held at once


@public
def kernel_calibration_error(
    forecasts: Forecasts, *, kernel: Kernel = "laplace", bandwidth: float = 1.0, squared: bool = False
) -> Certified:
    """Square root of E[(y - v) (y' - v') k(v, v')]; also called maximum mean calibration error (MMCE).

    The default, k(u, v) = exp(-|u - v| / bandwidth), is the Laplace kernel of the distance paper: within
    constants it lies between the distance from calibration and its square root. Its square, the value
    with ``squared=True``, is perfectly truthful. "gaussian" is exp(-(u - v)^2 / bandwidth^2), which is
    not sound: some far from calibrated predictors get a vanishing value. A callable k(u, v) of two
    arrays that broadcast is taken as it is. All but Laplace cost O(m^2) time, in bounded memory.

    >>> kernel_calibration_error([0, 0, 0], [0.25, 0.25, 0.25], bandwidth=0.1)
    0.25
    """
    check_bandwidth(bandwidth)
    square, product = _square_and_product(forecasts, kernel, float(bandwidth))
    error = float(np.sqrt(square))
    meaning = "the function of norm 1 in the space of the kernel that attains the unsquared error"
    witness = Witness(forecasts.values, product / error if error > 0 else product, meaning)
    return Certified.point(square if squared else error, witness)


def check_bandwidth(bandwidth: float) -> None:
    """Refuse a bandwidth that is not positive."""
    if not bandwidth > 0 or np.isinf(bandwidth):
        raise InvalidInputError(sentence("bandwidth", "must be positive and finite", f"got {bandwidth}"))


def _square_and_product(forecasts: Forecasts, kernel: Kernel, bandwidth: float) -> tuple[float, Array]:
    """Return b' K b and K b."""
    values, residuals = forecasts.values, forecasts.residuals
    if kernel == "laplace":
        return laplace_form(values, residuals, bandwidth)
    if callable(kernel):
        product = _blocked_product(values, residuals, kernel)
    elif kernel == "gaussian":
        product = _blocked_product(values, residuals, lambda u, v: _gaussian((u - v) / bandwidth))
    else:
        raise reject_name("kernel", str(kernel), ["laplace", "gaussian", "a callable"])
    square = float(residuals @ product)
    if square < -1e-9 * float(np.sum(np.abs(residuals)) * np.sum(np.abs(product))):
        raise InvalidInputError(
            sentence("kernel", "must be positive definite", f"got a quadratic form of {square:.3g}")
        )
    return max(square, 0.0), product


def _gaussian(apart: Array) -> Array:
    reach = np.minimum(np.abs(apart), 40.0)  # exp(-40^2) is 0 already, a larger square may overflow
    return np.asarray(np.exp(-(reach**2)))


def _blocked_product(values: Array, residuals: Array, kernel: Callable[[Array, Array], Array]) -> Array:
    rows = max(1, BLOCK // len(values))
    product = np.empty(len(values))
    for start in range(0, len(values), rows):
        some = values[start : start + rows, None]
        block = np.asarray(kernel(some, values[None, :]), dtype=np.float64)
        if block.shape != (len(some), len(values)) or not np.all(np.isfinite(block)):
            rule = "must return one finite number for every pair of predictions"
            raise InvalidInputError(sentence("kernel", rule, f"got shape {block.shape}"))
        product[start : start + rows] = block @ residuals
    return product
