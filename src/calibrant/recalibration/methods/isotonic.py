"""isotonic, centered-isotonic, bounded-slope, venn-abers: maps that need the order of predictions only."""

from __future__ import annotations

from typing import Literal

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.fits import bounded_slope as bounded
from calibrant.fits import isotonic as fits
from calibrant.fits import venn_abers as pairs
from calibrant.recalibration.maps.pairs import PairMap
from calibrant.recalibration.maps.piecewise import PiecewiseMap
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Sample

Ends = Literal["kt", "raw"]


def isotonic(sample: Sample, *, seed: int, ends: Ends = "kt") -> Fitted:
    """Fit the best non-decreasing rates."""
    knots = fits.isotonic(sample.levels, honest_ends=_honest(ends))
    return Fitted(PiecewiseMap.of(knots.values, knots.rates))


def centered_isotonic(sample: Sample, *, seed: int, ends: Ends = "kt") -> Fitted:
    """Fit the best non-decreasing rates, one knot per block."""
    knots = fits.centered_isotonic(sample.levels, honest_ends=_honest(ends))
    return Fitted(PiecewiseMap.of(knots.values, knots.rates))


def bounded_slope(sample: Sample, *, seed: int, slope: float = 2.0, ends: Ends = "raw") -> Fitted:
    """Fit the best rates whose slope lies between 0 and a bound."""
    if isinstance(slope, bool) or not isinstance(slope, (int, float)) or not 0 <= slope < float("inf"):
        raise InvalidInputError(sentence("slope", "must be a number from 0", f"got {slope!r}"))
    knots = bounded.bounded_slope(sample.levels, slope=float(slope), honest_ends=_honest(ends))
    return Fitted(PiecewiseMap.of(knots.values, knots.rates))


def venn_abers(sample: Sample, *, seed: int, merge: Literal["log", "brier"] = "log") -> Fitted:
    """Find the isotonic values of a new record under either outcome."""
    if merge not in ("log", "brier"):
        raise reject_name("merge", str(merge), ["log", "brier"])
    fit = pairs.venn_abers(sample.levels)
    void = sample.weighted or not sample.binary
    reason = "The guarantee of Venn-Abers pairs is for 0/1 records of equal weight; these are not."
    return Fitted(PairMap.of(fit.values, fit.if_zero, fit.if_one, merge), (reason,) if void else ())


def _honest(ends: str) -> bool:
    if ends not in ("kt", "raw"):
        raise reject_name("ends", str(ends), ["kt", "raw"])
    return ends == "kt"
