"""compare: which of several models is better calibrated on the same rows, and is the difference real?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.cores import for_each
from calibrant.forecasts import Forecasts
from calibrant.inference.adjusting import holm
from calibrant.inference.compare_cells import CellModel, on_cells, resampled_cells
from calibrant.inference.compare_rows import resampled_rows
from calibrant.inference.comparison import Comparison, Difference, error_of
from calibrant.inference.either_calibrated import allowing_for_calibration, calibration_pvalues
from calibrant.inference.interval import central, check_confidence, check_resampling
from calibrant.inference.paired_rows import complete_rows, models_given, named_models
from calibrant.inference.resample import seminorm_power
from calibrant.inference.score_interval import LOGISTIC, refuse_certain
from calibrant.measures.registry.lookup import find_measure
from calibrant.measures.registry.row import Measure
from calibrant.measures.scores import decompose
from calibrant.progress import Progress
from calibrant.records import Missing, check_records
from calibrant.results import Array
from calibrant.seeds import check_drawing, checked_draws, recorded_seed

DRAWS = 999
MOST_MORE = 10  # times the draws asked for


def compare(
    y_true: Any,
    *predictions: Any,
    measure: str = "atb",
    sample_weight: Any = None,
    names: list[str] | None = None,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: Sequence[str] | None = None,
    weight: str | None = None,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare the calibration of two or more models on the same rows, by resampling the rows in pairs.

    Pass the predictions one after the other, or one mapping from names to predictions, or a data frame with
    a column for each model. Or pass one frame, with `outcome`, several columns as `prediction`, and `weight`.
    `pos_label` is the label that counts as 1. ``missing="drop"`` leaves out a row for all models if it lacks
    a value for one. Measures with a sign are compared by their distance from the ideal. Intervals and
    p-values are approximate and agree: p is at most 1 - `confidence` where the interval leaves out 0.
    Every model's Brier score, miscalibration and discrimination stand beside (`scores`): calibration alone
    can rank a constant base rate first, so choose a model by "brier" or "log-loss".
    The default, ATB, is truthful: E[ATB(a, y)] - E[ATB(b, y)] = ATB(a, p) - ATB(b, p), so noise cannot
    change the order. From 16,384 distinct predictions of unweighted 0/1 rows on, ATB, l1-ATB, smooth and EMD
    are resampled on merged predictions, `cells` of them, which would widen the interval of each model by
    less than 1 %; `added` says what that adds at most to either side of a difference. While a model may be
    calibrated, a difference may be the error that the other has if it is: an interval reaches that far, and
    a model is worse only if the exact test by the measure rejects it (ATB, whose differences are not biased,
    needs no such care).

    Parameters
    ----------
    y_true
        Outcomes; or a frame, with `outcome` and `prediction`.
    *predictions
        Predictions of each model, a mapping from names to predictions, or a frame with one column per model.
    measure
        What to compare by; a name of the registry.
    sample_weight
        Non-negative weights, one per record.
    names
        Names of the models.
    missing
        "error", or "drop" to leave out rows that lack a value for any model.
    pos_label
        The label that counts as 1.
    outcome, prediction, weight
        Columns of a frame that is passed in place of `y_true`.
    confidence
        Of the intervals.
    draws, seed
        How many data sets are drawn, and what seeds them; the result records both. From 999 on there are as
        many as let a pair differ once p-values allow for all pairs, up to ten times what was asked for.
    threads, progress
        How many threads draw; `progress` is called with the share that is done.
    **options
        Options of the measure.

    Returns
    -------
    Comparison
        Values per model, and differences with intervals and p-values per pair.

    Examples
    --------
    >>> y, p = [0, 1, 1, 0, 1, 1] * 40, [0.2, 0.7, 0.8, 0.3, 0.6, 0.9] * 40
    >>> compare(y, p, [0.5 * x for x in p], names=["good", "halved"], seed=1).best
    'good'
    """
    y_true, predictions, sample_weight = models_given(
        y_true, predictions, sample_weight, outcome=outcome, prediction=prediction, weight=weight
    )
    named = named_models(predictions, names)
    check_confidence(confidence)
    check_drawing(draws, seed, threads)
    row, used = find_measure(measure), recorded_seed(seed)
    count = _enough(checked_draws(draws), math.comb(len(named), 2), confidence)
    settings = {**row.options, **options}
    rows = complete_rows(y_true, named, sample_weight, missing, pos_label)
    check_resampling(len(rows.outcomes))
    size = len(rows.outcomes)
    models = for_each(
        lambda p: Forecasts.of_checked(check_records(rows.outcomes, p, rows.weights)), rows.models, size=size
    )
    _refuse_ends(models, row)
    values = for_each(lambda one: float(row.function.core(one, **settings)), models, size=size)
    how: dict[str, Any] = {"draws": count, "seed": used, "threads": threads, "progress": progress}
    cells = on_cells(models, row, settings, values, confidence)
    if cells:
        drawn = resampled_cells(cells, rows.outcomes, list(rows.models.values()), row, settings, **how)
    else:
        drawn = resampled_rows(models, rows.in_order(), row, settings, **how)
    errors = _errors(models, row, settings, values, drawn, cells)
    pvalues = calibration_pvalues(models, cells, row, settings, draws=count, seed=used, threads=threads)
    pairs = _differences(list(models), errors, confidence)
    allowed = allowing_for_calibration(pairs, pvalues, rows, row, settings, confidence)
    return Comparison(
        measure=row.name,
        values=values,
        differences=_holm(_reachable(allowed, row.reachable(settings)[1])),
        confidence=confidence,
        fair=row.fair_with(options),
        n=size,
        draws=count,
        seed=used,
        dropped=rows.dropped,
        scores=for_each(decompose, models, size=size),
        cells=max((model.cells.levels for model in cells if model.merged), default=None),
        added=sum(sorted(model.widening for model in cells)[-2:]),
    )


def _enough(asked: int, pairs: int, confidence: float) -> int:
    """Return so many draws that no pair's least p-value exceeds 1 - confidence, times the number of pairs.

    Few draws are taken as asked, and so are those that would need many more; the result then says so.

    >>> [_enough(999, pairs, 0.95) for pairs in (3, 28, 1225)], _enough(39, 28, 0.95)
    ([999, 1119, 999], 39)
    """
    enough = math.ceil(2 * pairs / (1 - confidence) - 1e-9) - 1
    return max(asked, enough) if asked >= DRAWS and enough <= MOST_MORE * asked else asked


def _differences(names: list[str], errors: list[_Error], confidence: float) -> list[Difference]:
    """Return every two models, in order."""
    return [
        _difference(first, second, errors[i], errors[j], confidence)
        for (i, first), (j, second) in combinations(enumerate(names), 2)
    ]


def _errors(
    models: Mapping[str, Forecasts],
    row: Measure,
    settings: dict[str, Any],
    values: Mapping[str, float],
    drawn: Array,
    cells: Sequence[CellModel],
) -> list[_Error]:
    small = [model.cells for model in cells] or list(models.values())
    widenings = [model.widening for model in cells] or [0.0] * len(models)
    return [
        _Error(
            float(error_of(row, values[name])),
            error_of(row, column),
            _bias_factor(forecasts, row, settings),
            widening,
        )
        for name, forecasts, column, widening in zip(models, small, drawn.T, widenings, strict=True)
    ]


def _refuse_ends(models: Mapping[str, Forecasts], row: Measure) -> None:
    """Refuse predictions of 0 and 1 where logits are compared."""
    if row.name in LOGISTIC:
        for name, forecasts in models.items():
            refuse_certain(forecasts, row.name, f"model {name!r}")


@dataclass(frozen=True, slots=True, eq=False)
class _Error:
    """The error of one model, that of every resample, and the share of a resample's bias that is its own.

    `widening` is what merged levels may have changed of it.
    """

    value: float
    drawn: Array
    factor: float
    widening: float

    def without_bias(self, defined: npt.NDArray[np.bool_], most: float) -> float:
        """Return the value less the most that noise can have added to it; an error is never below 0.

        `most` is how far resampling moves the difference of two models on average. The mean of the draws of
        one model is uncertain by much more than that where the models are nearly the same.
        """
        added = float(self.drawn[defined].mean()) - self.value
        return max(0.0, self.value - self.factor * min(max(0.0, added), most))


def _bias_factor(forecasts: Forecasts, row: Measure, settings: dict[str, Any]) -> float:
    """Return how much larger the bias of an error can be than what resampling adds to it.

    Noise e turns a true residual t into t + e, and resampling into t + e + e*. Where t = 0, an error that
    grows as the k-th power has the bias E|e|^k, and resampling adds (2^(k/2) - 1) of that; where t is large
    neither adds anything. Mean scores have no bias.
    """
    if not (row.complete or row.signed):
        return 0.0
    power = 1 if row.signed else seminorm_power(forecasts, row, settings) or 1
    return float(1 / (2 ** (power / 2) - 1))


def _difference(first: str, second: str, one: _Error, other: _Error, confidence: float) -> Difference:
    """Join the intervals of the resamples that are right near calibration and far from it.

    Resampling adds noise once more, which biases errors: the reflection of the central interval allows for
    that. Where an error is near 0 all resamples lie to one side of it, and the central interval is right;
    where one error is near 0 and the other is not, noise has added more to the one than resampling shows, so
    that the bias of either may be anything between none and the most that it can be. The hull of the three
    holds the difference, and the p-value is the least level at which it leaves out 0.
    """
    difference, drawn = one.value - other.value, one.drawn - other.drawn
    central(drawn, confidence)  # refuses where most resamples have no value
    known = np.isfinite(drawn)
    defined = np.sort(drawn[known])
    rank = max(1, int((1 - confidence) / 2 * (len(defined) + 1) + 1e-9))  # so that interval and p-value agree
    low, high = float(defined[rank - 1]), float(defined[-rank])
    centre = float(defined.mean())
    moved = float(np.abs(defined - difference).mean())
    least, most = one.without_bias(known, moved) - other.value, one.value - other.without_bias(known, moved)
    wider = one.widening + other.widening
    lower = min(low, 2 * difference - high, least - (high - centre)) - wider
    upper = max(high, 2 * difference - low, most + (centre - low)) + wider
    slack = 1e-9 * abs(difference) + 1e-15 + wider

    def above(end: float) -> int:
        return int(np.count_nonzero(defined >= end - slack))

    def below(end: float) -> int:
        return int(np.count_nonzero(defined <= end + slack))

    # 0 is left out below (above) as soon as the rank is above every number in the first (second) bracket
    beyond = min(
        max(below(0.0), above(2 * difference), above(least + centre)),
        max(above(0.0), below(2 * difference), below(most + centre)),
    )
    pvalue = min(1.0, 2 * (1 + beyond) / (len(defined) + 1))
    return Difference(first, second, difference, lower, upper, pvalue, pvalue, beyond == 0)


def _reachable(pairs: Sequence[Difference], most: float) -> list[Difference]:
    """Keep intervals within what errors of at most this size can differ by."""
    return [replace(pair, lower=max(-most, pair.lower), upper=min(most, pair.upper)) for pair in pairs]


def _holm(pairs: list[Difference]) -> tuple[Difference, ...]:
    """Adjust the p-values for the number of pairs."""
    adjusted = holm([pair.pvalue for pair in pairs])
    return tuple(replace(pair, adjusted=p) for pair, p in zip(pairs, adjusted, strict=True))
