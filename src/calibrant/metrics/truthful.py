"""Truthful measures: in expectation, no forecast scores better than the true probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.inputs import whole_number
from calibrant.kernels.cumulative import two_bin_integrals
from calibrant.metrics.bibliography import TRUTHFUL_PAPER
from calibrant.metrics.binned import Bins, bin_starts, expected_binned_square, residual_ranges, touched_bins
from calibrant.metrics.calling import accepts_rows, check_choice, measure_function
from calibrant.metrics.certificates import band, bracketed, cells_of, no_certificate, rounding
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import chunked_sum, dot, recorded_seed
from calibrant.results import Array, Certified, Result


@measure_function
def averaged_two_bin_error(forecasts: Forecasts, *, norm: Literal[1, 2] = 2) -> Certified:
    """Averaged two-bin calibration error: two bins cut at t, averaged over all t in [0, 1].

    ATB of the truthfulness paper, the integral of C(t)^2 + (C_m - C(t))^2. It is perfectly truthful and
    quadratically related to the distance from calibration. With `norm=1` (l1-ATB) absolute values replace
    the squares: a constant-factor approximation of the distance itself, but no longer truthful.

    Parameters
    ----------
    norm
        2 for squares (truthful), 1 for absolute values.

    Examples
    --------
    >>> averaged_two_bin_error([0, 1], [0.25, 0.75])
    0.015625
    """
    if norm not in (1, 2):
        raise reject_name("norm", str(norm), ["1", "2"])
    cuts, curve = np.concatenate(([0.0], forecasts.values, [1.0])), forecasts.curve

    def areas(part: slice) -> Array:
        left, right = curve[part], curve[-1] - curve[part]
        bins = left**2 + right**2 if norm == 2 else np.abs(left) + np.abs(right)
        return np.asarray((cuts[part.start + 1 : part.stop + 1] - cuts[part]) * bins)

    return Certified.point(chunked_sum(areas, len(curve)))


@measure_function
def binned_squared_error(
    forecasts: Forecasts,
    *,
    bins: Bins | None = None,
    strategy: Literal["quantile", "uniform"] = "quantile",
    ties: Literal["together", "random"] = "together",
    partition: Callable[[Array], npt.ArrayLike] | None = None,
) -> Certified:
    """Unnormalized binned squared error: the sum over bins of the squared residual sum.

    UBSE of the truthfulness paper, perfectly truthful for every partition that depends on the predictions
    only. Equal predictions share a bin (a level goes where the middle of its weight falls), unless
    ``ties="random"`` makes bins of equally many records. The paper leaves open where these end when their
    number does not divide n: here bin b ends with record floor((b + 1) n / bins).

    Parameters
    ----------
    bins
        How many bins, or their edges; n^(1/3) if absent.
    strategy
        Bins of about equal weight ("quantile") or of equal width ("uniform").
    ties
        "together": equal predictions share a bin; "random": the exact mean over all ways to break ties.
    partition
        A function from an array of predictions to a label for each, in place of `bins`; or to a matrix of
        labels, whose rows are equally likely partitions: the value is the mean over them.

    Examples
    --------
    >>> binned_squared_error([0, 1], [0.25, 0.75], bins=1)
    0.0
    """
    check_choice("ties", ties, ("together", "random"))
    count = _bins_of(forecasts, bins)
    if partition is not None:
        if bins is not None or ties == "random" or strategy != "quantile":
            got = "got bins, strategy or ties as well"
            raise InvalidInputError("partition", "must be given alone", got)
        if not callable(partition):
            raise InvalidInputError("partition", "must be a function", f"got {partition!r}")
        residual = _sums_by_label(forecasts, np.asarray(partition(forecasts.values)))
    elif ties == "random":
        if not isinstance(count, (int, np.integer)) or count < 1 or strategy != "quantile":
            raise InvalidInputError("ties", '"random" needs a number of quantile bins')
        return Certified.point(expected_binned_square(forecasts, int(count)), bins=int(count))
    else:
        residual = np.add.reduceat(forecasts.residuals, bin_starts(forecasts, count, strategy))
    return Certified.point(float(residual @ residual), bins=len(residual))


def _sums_by_label(forecasts: Forecasts, labels: npt.NDArray[Any]) -> Array:
    """Return the residual of each bin; those of several partitions (rows) have squares that add to a mean."""
    rows = labels.reshape(1, -1) if labels.ndim == 1 else labels
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != forecasts.levels:
        got = f"got shape {labels.shape} for {forecasts.levels:,} predictions"
        raise InvalidInputError("partition", "must return one label per prediction", got)
    bins = [np.bincount(np.unique(row, return_inverse=True)[1], forecasts.residuals) for row in rows]
    return np.asarray(np.concatenate(bins) / np.sqrt(len(rows)))


@dataclass(frozen=True, slots=True, repr=False)
class PartitionError(Result):
    """The mean error over random partitions into bins, its standard error, and how they were drawn."""

    value: float
    standard_error: float
    draws: int
    seed: int


RandomPartition = Callable[[Array, np.random.Generator], npt.ArrayLike]
PARTITIONS: dict[str, RandomPartition] = {
    "two-bin": lambda predictions, generator: predictions >= generator.random(),
    "laplace": lambda predictions, generator: np.floor(
        predictions / generator.gamma(2.0) + generator.random()
    ),
}


@accepts_rows
def random_partition_error(
    forecasts: Forecasts, *, partition: str | RandomPartition, draws: int = 100, seed: int | None = 0
) -> PartitionError:
    """Estimate the truthful error of a random partition of the predictions into bins, of any law.

    The mean over partitions of the sum over bins of the squared residual sum: the family of Definition 3.1
    in the truthfulness paper. Every member is perfectly truthful. With given draws that holds exactly, not
    only on average: outcomes of probability p add the same variance whatever is reported (Lemma 3.3).

    Parameters
    ----------
    partition : {"two-bin", "laplace"} or function
        A function of the predictions and a generator that returns a label for each: equal labels share a
        bin. "two-bin" cuts at a uniform point, with the mean averaged_two_bin_error; "laplace" has bins of
        random width and start, with the mean ``kernel_calibration_error(..., squared=True)``.

    Examples
    --------
    >>> def thirds_or_halves(predictions, generator):
    ...     return np.floor(predictions * generator.integers(2, 4))
    >>> round(random_partition_error([0, 1, 1], [0.2, 0.4, 0.8], partition=thirds_or_halves).value, 3)
    0.037
    """
    whole_number("draws", draws, 2)
    if isinstance(partition, str) and partition not in PARTITIONS:
        raise reject_name("partition", partition, [*PARTITIONS, "a function"])
    drawn = PARTITIONS[partition] if isinstance(partition, str) else partition
    used = recorded_seed(seed)
    rng = np.random.default_rng(used)
    try:
        labels = [np.asarray(drawn(forecasts.values, rng)) for _ in range(draws)]
    except TypeError as error:
        rule = "must be a name, or a function of predictions and a generator"
        raise InvalidInputError("partition", rule, f"got {partition!r}: {error}") from None
    sums = [_sums_by_label(forecasts, row) for row in labels]
    errors = np.array([residual @ residual for residual in sums])
    return PartitionError(float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(draws)), draws, used)


def _bins_of(forecasts: Forecasts, bins: Bins | None) -> Bins:
    return max(1, round(forecasts.n ** (1 / 3))) if bins is None else bins


def _two_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """ATB and l1-ATB: the integral of |C|^norm + |C_m - C|^norm."""
    return two_bin_integrals(residuals, forecasts.values, settings["norm"])


@averaged_two_bin_error.certificate
def _two_bin_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Integrate the cost of the two bins over the band of the curve inside cells, exactly outside them."""
    # c^2 + (T - c)^2 and |c| + |T - c| are convex and symmetric about T / 2: the largest cost is at an end of
    # the band, the smallest at its point nearest to T / 2.
    cells, curve, total = cells_of(forecasts), forecasts.curve, float(forecasts.curve[-1])
    power = int(settings["norm"])

    def cost(c: Array) -> Array:
        return np.asarray(np.abs(c) ** power + np.abs(total - c) ** power)

    gaps = np.append(cells.low, 1.0) - np.insert(cells.high, 0, 0.0)
    outside = dot(gaps, cost(curve))
    lowest, highest = band(forecasts)
    least = outside + dot(forecasts.extents, cost(np.clip(total / 2, lowest, highest)))
    most = outside + dot(forecasts.extents, np.maximum(cost(lowest), cost(highest)))
    slack = 8 * rounding(forecasts)  # the cost has a slope of at most 4 in c and 2 in T
    return bracketed(measured, least - slack, most + slack)


def _squared_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    """UBSE: sum over bins of the squared residual; other partitions are simulated one by one."""
    if settings["ties"] == "random" or settings["partition"] is not None:
        return None
    starts = bin_starts(forecasts, _bins_of(forecasts, settings["bins"]), settings["strategy"])
    sums = np.add.reduceat(residuals, starts, axis=1)
    return np.asarray(np.square(sums, out=sums).sum(axis=1))


def _residual_variance(forecasts: Forecasts, settings: Settings) -> float | None:
    """Mean of every binned squared error (ATB, UBSE): Lemma 3.3 of the truthfulness paper with r = p."""
    return forecasts.null_variance if settings.get("norm", 2) == 2 else None


@binned_squared_error.certificate
def _squared_bin_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    for option, usual in (("ties", "together"), ("partition", None)):
        if settings[option] != usual:
            raise no_certificate("ubse", f"got {option}={settings[option]!r}")
    touched = touched_bins(forecasts, _bins_of(forecasts, settings["bins"]), settings["strategy"])
    residual, slack = residual_ranges(forecasts, touched), 4 * rounding(forecasts)
    least = np.maximum(0.0, residual.least - slack)
    most = residual.most + slack
    return bracketed(measured, float(least @ least) - slack, float(most @ most) + slack)


MEASURES = (
    Measure(
        "atb",
        averaged_two_bin_error,
        words="averaged two-bin error",
        family="truthful",
        headline=True,
        meaning="squared residual of two bins, averaged over where they are cut; fair for ranking models",
        continuous=True,
        sound=True,
        truthful="batch",
        decisive=("norm",),
        consistency=(1.0, 4.0),
        lipschitz=6.0,
        null=Null(_two_bins, residuals_only=True, power=2, mean=_residual_variance),
        valid="1/sqrt(T)",
        citation=TRUTHFUL_PAPER + ", Definition 1.2",
    ),
    Measure(
        "l1-atb",
        averaged_two_bin_error,
        words="absolute two-bin error",
        options={"norm": 1},
        family="truthful",
        meaning="absolute residual of two bins, averaged over where they are cut; scale of the distance",
        continuous=True,
        sound=True,
        truthful="approximate",
        consistency=(1.0, 2.0),
        lipschitz=3.0,
        null=Null(_two_bins, residuals_only=True, power=1),
        valid="1/sqrt(T)",
        citation=TRUTHFUL_PAPER + ", section 4",
    ),
    Measure(
        "ubse",
        binned_squared_error,
        family="truthful",
        meaning="sum over bins of the squared residual; truthful for any bins of the predictions alone",
        symmetric=False,
        truthful="batch",
        null=Null(_squared_bins, power=2, mean=_residual_variance),
        cost="O(m + bins)",
        citation=TRUTHFUL_PAPER + ", section 3",
        law_options={"bins": 5},
        variants=({"bins": 3, "strategy": "uniform"},),
    ),
)
