"""Net benefit across thresholds: the decision curve that clinicians expect, and what calibration adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.errors import reject_rows
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, pluralize
from calibrant.inputs import numeric_vector, to_array
from calibrant.metrics.calling import accepts_rows
from calibrant.results import Array, Result, html_paragraphs

ROUNDING = 1e-12  # of sums of shares; false positives count up to 1 / (1 - threshold) times


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecisionCurve(Result):
    """Net benefit at each threshold, in true positives per record (Vickers & Elkin 2006).

    `model`: treat where the prediction reaches the threshold. `treat_all`; treating none has 0.
    `recalibrated`: treat where the outcome rate behind the prediction reaches the threshold; its excess
    over `model` is the threshold loss divided by 1 - threshold. Like every number read off level sets it
    flatters where predictions hardly repeat.
    """

    thresholds: Array
    model: Array
    treat_all: Array
    recalibrated: Array

    @property
    def useful(self) -> npt.NDArray[np.bool_]:
        """Where the model beats both treating all and treating none, by more than rounding."""
        gain = self.model - np.maximum(self.treat_all, 0.0)
        return np.asarray(gain > ROUNDING / (1 - self.thresholds))

    def __str__(self) -> str:
        useful = np.flatnonzero(self.useful)
        count = f"{len(useful)} of {pluralize(len(self.thresholds), 'threshold')}"
        if len(useful) == 0:
            return f"The model beats treating all and treating none at {count}."
        gain = self.model - np.maximum(self.treat_all, 0.0)
        most = int(np.argmax(gain))
        ends = f"{self.thresholds[useful].min():g} to {self.thresholds[useful].max():g}"
        return (
            f"The model beats treating all and treating none at {count} (from {ends}), most at "
            f"{self.thresholds[most]:g}: {format_value(1000 * float(gain[most]))} more net true "
            "positives per 1,000 "
            "records."
        )

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self))


@accepts_rows
def net_benefit(forecasts: Forecasts, *, thresholds: npt.ArrayLike | None = None) -> DecisionCurve:
    """Return the decision curve: true positives less false positives at the odds of the threshold.

    NB(t) = TP / n - FP / n * t / (1 - t). Thresholds are 0.01, 0.02, ..., 0.99 unless given.
    `net_benefits` has several models, intervals, a frame and a chart.

    Parameters
    ----------
    thresholds
        Predictions from which one acts.

    Returns
    -------
    DecisionCurve
        Net benefit of the model, of treating all and of the recalibrated model, per threshold.

    Examples
    --------
    >>> net_benefit([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.6], thresholds=[0.5]).model.tolist()
    [0.0]
    """
    asked = checked_thresholds(thresholds)
    odds = asked / (1 - asked)
    rate = forecasts.base_rate
    return DecisionCurve(
        asked,
        _benefit(forecasts, forecasts.values, asked, odds),
        rate - (1 - rate) * odds,
        _benefit(forecasts, forecasts.outcomes / forecasts.weights, asked, odds),
    )


def checked_thresholds(thresholds: npt.ArrayLike | None) -> Array:
    """Return the thresholds asked for, or 0.01, 0.02, ..., 0.99."""
    if thresholds is None:
        return np.asarray(np.arange(1, 100) / 100)
    asked = numeric_vector(np.atleast_1d(to_array(thresholds, "thresholds")), "thresholds").astype(np.float64)
    reject_rows("thresholds", "must lie in [0, 1)", asked, ~((asked >= 0) & (asked < 1)))
    return asked


def _benefit(forecasts: Forecasts, predictions: Array, thresholds: Array, odds: Array) -> Array:
    """Return TP - FP odds when the records with prediction >= threshold are treated."""
    order = np.argsort(predictions, kind="stable")
    first = np.searchsorted(predictions[order], thresholds)
    ones = _from(forecasts.outcomes[order])[first]
    zeros = _from((forecasts.weights - forecasts.outcomes)[order])[first]
    return np.asarray(ones - zeros * odds)


def _from(masses: Array) -> Array:
    """Return the sum of the masses from each place to the end; one place more than there are masses."""
    return np.append(np.cumsum(masses[::-1])[::-1], 0.0)
