"""spline: a smooth shift of the logit, shrunk toward none."""

from __future__ import annotations

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits import spline as fits
from calibrant.fits.logistic import Clip, LogisticFit
from calibrant.recalibration.maps.logistic import LogisticMap
from calibrant.recalibration.maps.piecewise import SplineMap
from calibrant.recalibration.methods.logistic import logistic_notes
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Sample

FEW = "The predictions have too few distinct logits for a spline: the map is a shrunk Platt map."


def spline(sample: Sample, *, seed: int, knots: int = fits.KNOTS, clip: Clip = "auto") -> Fitted:
    """Fit a linear spline of the logit, with penalties by evidence."""
    if isinstance(knots, bool) or not isinstance(knots, int) or not fits.FEWEST <= knots <= 512:
        rule = f"must be a whole number from {fits.FEWEST} to 512"
        raise InvalidInputError(sentence("knots", rule, f"got {knots!r}"))
    fit = fits.spline(sample.levels, knots=knots, clip=clip)
    if isinstance(fit, LogisticFit):
        return Fitted(LogisticMap.of(fit), (FEW, *logistic_notes(sample, fit)), {"clip": fit.clip})
    details = {"clip": fit.clip, "level_width": fit.level_width, "bend_width": fit.bend_width}
    return Fitted(SplineMap(fit.knots, fit.shifts, fit.clip), (), details)
