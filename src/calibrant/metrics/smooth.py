"""Smooth calibration error and earth mover's error: exact, with the weight function that proves them."""

from __future__ import annotations

from dataclasses import replace

from calibrant.forecasts import Forecasts
from calibrant.inputs import positive_number
from calibrant.kernels.smooth import (
    denoised,
    denoising_cost,
    lipschitz_witness,
    one_kernel_serves,
    smooth_values,
    steepest_steps,
)
from calibrant.metrics.bibliography import DISTANCE_PAPER, SURVEY
from calibrant.metrics.calling import measure_function
from calibrant.metrics.certificates import lipschitz_weights
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import dot
from calibrant.results import Array, Certified, Witness


@measure_function
def smooth_calibration_error(forecasts: Forecasts, *, lipschitz: float = 1.0) -> Certified:
    """Largest |E[w(v) (y - v)]| over weight functions w that are 1-Lipschitz and bounded by 1.

    smCE of the distance paper, also called weak calibration error; within a factor 2 of the lower distance
    to calibration, either way. Not to be confused with the "smooth ECE" of Błasiok and Nakkiran, which
    smooths the data with a Gaussian: that is `convolved_calibration_error`. `lipschitz` sets another
    constant; as it grows the value rises to the expected calibration error.

    The optimal w is the witness of ``measure(forecasts, "smooth")``; `lower` is what it attains, `upper`
    the cost of the dual solution. They agree to rounding.

    Parameters
    ----------
    lipschitz
        How steep the weight function may be.

    Examples
    --------
    >>> smooth_calibration_error([0, 0, 0, 0], [0.3, 0.3, 0.3, 0.3])
    0.3
    """
    return _largest_weighted_residual(forecasts, positive_number("lipschitz", lipschitz))


@smooth_calibration_error.fast_path
def _smooth_value(forecasts: Forecasts, *, lipschitz: float) -> float:
    slope = positive_number("lipschitz", lipschitz)
    if one_kernel_serves(forecasts.levels):
        return float(smooth_values(forecasts.values, forecasts.residuals[None], slope)[0])
    gaps = steepest_steps(forecasts.values, slope)
    return denoising_cost(denoised(forecasts.curve, gaps), forecasts.curve, gaps)


@measure_function
def earth_mover_error(forecasts: Forecasts) -> Certified:
    """Earth mover's distance between (v, y) as observed and (v, y) as predicted, y ~ Bernoulli(v).

    EMD(J*, J^p) of the survey, under the metric |v - v'| + |y - y'|. By duality it is the smooth error
    with Lipschitz constant 2: w(v) = f(v, 1) - f(v, 0) for f 1-Lipschitz on [0, 1] x {0, 1}. Hence it lies
    between the smooth error and twice that.

    Examples
    --------
    >>> round(earth_mover_error([0, 1], [0.5, 0.6]), 12)
    0.09
    """
    return _largest_weighted_residual(forecasts, 2.0)


def _largest_weighted_residual(forecasts: Forecasts, lipschitz: float) -> Certified:
    gaps = steepest_steps(forecasts.values, lipschitz)
    path = denoised(forecasts.curve, gaps)
    upper = denoising_cost(path, forecasts.curve, gaps)
    weights = lipschitz_witness(path, forecasts.curve, gaps)
    lower = dot(forecasts.residuals, weights)
    meaning = f"the weight function, {lipschitz:g}-Lipschitz and bounded by 1, that attains the error"
    found = Certified.point(upper, Witness(forecasts.values, weights, meaning), lipschitz=lipschitz)
    return replace(found, lower=min(lower, upper))  # they may cross by a rounding error


def _smooth(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    return smooth_values(forecasts.values, residuals, _steepest(settings))


@smooth_calibration_error.certificate
@earth_mover_error.certificate
def _smooth_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    return lipschitz_weights(forecasts, measured, _steepest(settings))


def _steepest(settings: Settings) -> float:
    """Return the Lipschitz constant asked for; that of the earth mover's f(v, 1) - f(v, 0) is 2."""
    return float(settings.get("lipschitz", 2.0))


MEASURES = (
    Measure(
        "smooth",
        smooth_calibration_error,
        family="distances",
        headline=True,
        meaning="worst residual against a smooth weight function; within a factor 2 of the distance",
        continuous=True,
        sound=True,
        truthful="approximate",
        consistency=(1.0, 2.0),
        lipschitz=2.0,
        decision=(
            "who acts on a threshold blurred by uniform noise of width w regrets at most 2 max(1, 1/w) times "
            "this value, plus w/16, against any other threshold with the same noise"
        ),
        null=Null(_smooth, residuals_only=True, power=1),
        valid="1/sqrt(T)",
        cost="O(m log m)",
        citation=DISTANCE_PAPER + ", section 7",
        variants=({"lipschitz": 0.5},),
    ),
    Measure(
        "emd",
        earth_mover_error,
        words="earth mover's error",
        family="distances",
        meaning="probability mass times the way it must move to make the outcomes as predicted",
        continuous=True,
        sound=True,
        truthful="approximate",
        consistency=(1.0, 2.0),
        lipschitz=3.0,
        null=Null(_smooth, residuals_only=True, power=1),
        cost="O(m log m)",
        citation=SURVEY + ", Lemma 3.4",
    ),
)
