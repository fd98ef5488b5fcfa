"""Recalibration: the fitted value. It predicts, tells whether it helped, has a band, and exports."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.columns import columns_of
from calibrant.errors import InvalidInputError, reject_rows
from calibrant.files import atomic_write
from calibrant.fits.calibration_curve import fit_calibration_curve
from calibrant.fits.isotonic import Knot
from calibrant.formatting import format_value, pluralize
from calibrant.inputs import check_unit_interval, open_share, positive_column, to_array
from calibrant.metrics.multiclass import check_column_order, columns_named
from calibrant.recalibration.assess import Assessment, Assessor, Folds
from calibrant.recalibration.maps.base import Interval, Map, MapBins, PrevalenceMap
from calibrant.recalibration.registry import reporting
from calibrant.recalibration.samples import (
    ForecastSample,
    RowSample,
    Sample,
    checked_table,
    probabilities_of_logits,
)
from calibrant.recalibration.storage import FitFacts, as_dict, stored_fields
from calibrant.results import NOTHING, Array, Result, html_paragraphs

NO_RECORDS = "the records were not kept"


class RecalibrationWarning(UserWarning):
    """Something about the records or the new predictions that the user should look at."""


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A fitted recalibration; made by `recalibrate` or `load_recalibration`.

    `method` is what was asked for, `chosen` what it came to (they differ for auto), `options` its options,
    `notes` what the user should know of the fit, `fit` what it was fitted to, `details` what else was found.
    """

    method: str
    chosen: str
    options: Mapping[str, Any]
    map: Map
    fit: FitFacts
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    sample: Sample | None = field(default=None, repr=False)
    assessor: Assessor | None = field(default=None, repr=False)
    columns: int | None = None  # of several classes
    classes: tuple[str, ...] = ()  # what these columns were called, where they had names

    def __repr__(self) -> str:
        came_to = "" if self.chosen == self.method else f" -> {self.chosen}"
        return f"Recalibration({self.method}{came_to}, n = {self.fit.n:,})"

    def __str__(self) -> str:
        came_to = "" if self.chosen == self.method else f" (chosen by {self.method})"
        fitted = f"fitted to {pluralize(self.fit.n, 'record')}"
        warmth = "" if self.temperature is None else f", T = {format_value(self.temperature)}"
        parts = (f"Recalibration by {self.chosen}{came_to}{warmth}, {fitted}.", self.clip_note, self._finding)
        return " ".join(part for part in parts if part)

    @property
    def clip_note(self) -> str:
        """Which predictions near 0 and 1 become one value; empty if none do."""
        return str(self.details.get("clip_note", ""))

    @property
    def _finding(self) -> str:
        if not self.is_assessed:
            return "Not assessed yet: `.assessment` tells whether it helps."
        found = self.assessment
        if found is None:
            return f"Not assessed: {self.why_not_assessed}." if self.why_not_assessed else ""
        limits = f"{format_value(found.lower)} to {format_value(found.upper)}"
        gain = f"log loss gain {format_value(found.gain)} ({limits} at confidence {found.confidence:g})"
        return f"On held-out folds: {found.finding}; {gain}."

    @property
    def temperature(self) -> float | None:
        """What logits are divided by, if the map does nothing else; above 1: less certain predictions."""
        return self.details.get("temperature") if self.chosen == "temperature" else None

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self), *self.notes)

    def predict(self, p: Any = None, covariates: Any = None, *, logits: Any = None) -> Array:
        """Return recalibrated predictions.

        Parameters
        ----------
        p : array
            Predictions in [0, 1], or pairs of columns whose rows sum to 1. For several classes, their columns
            in the order of the fit, also in a frame.
        covariates : mapping of columns or frame, optional
            For methods that need them.
        logits : array, optional
            Logits or log-probabilities in place of `p`.

        Returns
        -------
        ndarray of the shape that was given.

        Examples
        --------
        >>> from calibrant import recalibrate
        >>> fitted = recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="isotonic")
        >>> fitted.predict([0.2, 0.5]).tolist()
        [0.25, 0.5]
        """
        if (p is None) == (logits is None):
            rule = "needs p or logits"
            raise InvalidInputError("predict", rule, "got none" if p is None else "got both")
        if logits is not None:
            p = probabilities_of_logits(logits)
        if self.columns is not None:
            table = checked_table(p)
            if table.shape[1] != self.columns:
                got = f"got {table.shape[1]}"
                raise InvalidInputError("y_prob", f"must have {self.columns} columns", got)
            check_column_order(columns_named(p), self.classes, "columns of y_prob")
            return self.map.predict(table)
        (column, pair), columns = one_column(p), None
        if self.map.needs_covariates:
            if covariates is None:
                subject = f"method {self.chosen!r}"
                raise InvalidInputError(subject, "needs covariates", "got none", "pass covariates=")
            columns = columns_of(covariates, len(column))
        rates = self.map.predict(column, columns)
        for text in self.map.remarks(column, columns) if columns is not None else ():
            warnings.warn(text, RecalibrationWarning, stacklevel=2)
        return np.column_stack([1.0 - rates, rates]) if pair else rates

    def interval(self, p: Any) -> Interval:
        """Return limits per prediction: a Venn-Abers pair, or the simultaneous limits of its bin."""
        return self.map.interval(one_column(p)[0])

    @property
    def knots(self) -> Knot | None:
        """The points between which the map is linear; None for formulas, steps and pairs."""
        return self.map.knots

    @property
    def guarantee(self) -> str:
        """What holds in finite samples, if anything does."""
        return str(self.details.get("guarantee", ""))

    @property
    def is_assessed(self) -> bool:
        """Whether the assessment has been computed, or was read from a file."""
        return "_assessed" in self.__dict__

    @property
    def assessment(self) -> Assessment | None:
        """Whether it helped; computed on first access, None if the records cannot be split into folds."""
        return self.assess()

    def assess(self, progress: Callable[..., object] | None = None) -> Assessment | None:
        """Compute the assessment if it is not known yet, reporting the share of the work that is done."""
        if self.assessor is None:
            self.__dict__.setdefault("_assessed", NO_RECORDS)
        elif not self.is_assessed:
            with reporting(progress) as report:
                self.with_assessment(self.assessor.assess(report))
        assessed = self.__dict__["_assessed"]
        return assessed if isinstance(assessed, Assessment) else None

    @property
    def why_not_assessed(self) -> str:
        """Why there is no assessment; empty if there is one."""
        return "" if self.assess() else str(self.__dict__["_assessed"])

    @property
    def folds(self) -> Folds | str:
        """The first split of the assessment, or why there is none."""
        return NO_RECORDS if self.assessor is None else self.assessor.folds

    def band(self, p: Any, confidence: float = 0.95) -> MapBand:
        """Return limits of the true calibration curve at each prediction, widened to contain the map.

        Nothing is refitted. The band needs the records, which a file does not hold, and a map of one column.

        Parameters
        ----------
        p : array
            Predictions at which the limits are computed.
        confidence : float
            Of each pair of limits individually.

        Returns
        -------
        MapBand

        Examples
        --------
        >>> import numpy as np
        >>> from calibrant import recalibrate
        >>> p = np.linspace(0.05, 0.95, 200)
        >>> fitted = recalibrate(np.arange(200) % 3 == 0, p, method="shift", seed=0)
        >>> band = fitted.band([0.5])
        >>> bool(band.lower[0] < fitted.predict([0.5])[0] < band.upper[0])
        True
        """
        open_share("confidence", confidence)
        if self.map.needs_covariates or self.map.multiclass:
            rule = "needs a map of one column"
            raise InvalidInputError("the band of a map", rule, "it maps more than one column")
        if self.sample is None:
            raise InvalidInputError("the band of a map", "needs the records", NO_RECORDS)
        return map_band(self.sample, self.map, one_column(p)[0], confidence)

    @property
    def bins(self) -> MapBins | None:
        """The bins of a histogram, each with its rate and limits; None for maps without bins."""
        return self.map.bins

    def to_sql(self, column: str | Sequence[str], dialect: str = "duckdb", tolerance: float = 0.0) -> str:
        """Return the map as one SQL expression of a column.

        NULL, NaN and values outside [0, 1] become NULL. A tolerance above 0 drops knots as long as the map
        nowhere changes by more. For several classes pass the names of all columns: the result is a list for
        SELECT, with the probability of each class as NAME_recalibrated.

        Examples
        --------
        >>> from calibrant import recalibrate
        >>> fitted = recalibrate([0, 1], [0.2, 0.8], method="isotonic", ends="raw")
        >>> "CASE WHEN" in fitted.to_sql("score")
        True
        """
        from calibrant.recalibration.sql import class_sql, sql_of

        if self.columns is None:
            return sql_of(self.map, column, dialect, tolerance)  # type: ignore[arg-type]  # checked there
        check_column_order(column, self.classes, "columns")
        return class_sql(self.map, column, self.columns, dialect)

    def apply(self, frame: Any, *, prediction: str, into: str = "p_recalibrated") -> Any:
        """Return the frame with a column of recalibrated predictions; lazy frames stay lazy.

        Several classes are not columns of one prediction: use `predict` for them.

        Rows whose prediction is missing or outside [0, 1] get null. For frames in memory such rows, rows
        outside the range seen, and covariates unlike those of the fit are counted in warnings.
        """
        from calibrant.recalibration.apply import checked_frame, eagerly, lazily

        if self.columns is not None:
            raise InvalidInputError("apply", "takes two classes only", hint="use predict")
        table = checked_frame(frame, prediction, into)
        if not hasattr(table, "__len__"):
            return lazily(table, self.map, prediction, into)
        columns = columns_of(frame, len(table)) if self.map.needs_covariates else None
        out, p, remarks = eagerly(table, self.map, prediction, into, columns)
        texts: list[str] = []
        with np.errstate(invalid="ignore"):
            usable = (p >= 0) & (p <= 1)
            outside = int(np.count_nonzero(((p < self.fit.low) | (p > self.fit.high)) & usable))
        if unusable := int(np.count_nonzero(~usable)):
            have = pluralize(unusable, "row has", "rows have")
            texts.append(f"{have} no prediction in [0, 1], and no value.")
        if outside:
            seen = f"[{self.fit.low:g}, {self.fit.high:g}]"
            lie = pluralize(outside, "row lies", "rows lie")
            texts.append(f"{lie} outside {seen}, the range of the predictions it was fitted to.")
        for text in (*texts, *remarks):
            warnings.warn(text, RecalibrationWarning, stacklevel=2)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Rebuild a recalibration from `to_dict`; unknown formats are refused."""
        fields, assessed = stored_fields(stored)
        return cls(**fields).with_assessment(assessed)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the records, ready for JSON; the assessment only if it has been computed."""
        return as_dict(self)

    def save(self, path: str | Path) -> None:
        """Write a JSON file of numbers, with the assessment if it has been computed.

        Saving never computes it: access `assessment` first if the file should contain it.
        """
        text = json.dumps(as_dict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        atomic_write(Path(path), text)

    def with_assessment(self, assessed: Assessment | str) -> Self:
        """Return self with an assessment that is already known."""
        self.__dict__["_assessed"] = assessed
        return self


def one_column(p: Any) -> tuple[Array, bool]:
    """Return predictions as one checked column, and whether they came as pairs of columns."""
    array = to_array(p, "y_prob")
    pair = array.ndim == 2 and array.shape[1] == 2
    if array.shape in ((0,), (0, 1), (0, 2)):  # as with scikit-learn, an empty batch has no predictions
        return np.empty(0), pair
    column = positive_column(array, "y_prob")
    reject_rows("y_prob", "must not be missing", column, np.isnan(column))
    check_unit_interval(column, "y_prob")
    return column.astype(np.float64, copy=False) + 0.0, pair


BAND_METHOD = (
    "limits of the true calibration curve at each prediction, by a restricted cubic spline of the logit"
    " whose knots grow with the data, widened to contain the map"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapBand(Result):
    """Limits of the true calibration curve at `confidence`, for each prediction alone, not all at once."""

    lower: Array
    upper: Array
    confidence: float
    how: str = BAND_METHOD

    approximate: ClassVar[tuple[str, ...]] = ("lower", "upper")
    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)


def map_band(sample: Sample, fitted: Map, p: Array, confidence: float) -> MapBand:
    rows = sample
    if isinstance(sample, ForecastSample) and sample.weighted and not sample.why_not_splittable:
        rows = sample.rows
    if isinstance(rows, RowSample) and (rows.weighted or rows.clusters is not None):
        curve = fit_calibration_curve(rows.unmerged, rows.clusters, single=True)
    else:
        curve = fit_calibration_curve(sample.levels)
    lower, upper = curve.limits(p, confidence)
    if isinstance(fitted, PrevalenceMap):
        lower, upper = fitted.shifted(lower), fitted.shifted(upper)
    own = fitted.predict(p)
    return MapBand(np.minimum(lower, own), np.maximum(upper, own), confidence)
