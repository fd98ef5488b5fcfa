"""compare: which of several models is better calibrated on the same rows, and is the difference real?

docs/interval-proofs.md has why its intervals hold near calibration and far from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.inference.bootstrap import (
    MAX_UNMERGED_LEVELS,
    SIMULATED_CELLS,
    Resamples,
    cell_starts,
    levels_to_simulate,
    seminorm_power,
    values_of_resamples,
)
from calibrant.inference.compare_outcomes import OutcomeComparison, compare_outcomes
from calibrant.inference.compare_result import Comparison, Difference, error_of, may_flip
from calibrant.inference.intervals import central, check_resampling
from calibrant.inference.inversion import LOGISTIC, refuse_certain
from calibrant.inference.null import (
    Drawing,
    batched,
    has_equal_weights,
    measured,
    values_of_residuals,
    with_options,
)
from calibrant.inference.paired_rows import PairedRows, paired_models
from calibrant.inference.pvalues import MORE_DRAWS, draw_until_decided, holm, is_rejected
from calibrant.inference.testing import run_test
from calibrant.inputs import open_share
from calibrant.kernels.resampling import CountedCodes, resampled_tallies, tally_picked, tally_poisson
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.lookup import find_measure
from calibrant.metrics.registry import Measure
from calibrant.metrics.scores import decompose
from calibrant.parallel import BLOCK, DRAWS, Progress, map_threads, map_threads_named
from calibrant.records import Missing, check_records
from calibrant.results import Array


def resampled_rows(
    forecasts: Mapping[str, Forecasts], paired: PairedRows, entry: Measure, drawing: Drawing
) -> Array:
    """Return the measure of every model (columns) on resampled rows, the same rows for all models."""
    models = list(forecasts.values())
    level_of = [np.searchsorted(f.values, paired.models[name]) for name, f in forecasts.items()]
    first, tables = models[0], entry.null.tables
    quick = entry.null.residuals_only and batched(first, entry)
    tabled = tables and tables(first, first.outcomes[None], first.weights[None], entry.options)
    sums_suffice = quick or tabled is not None

    def work(generator: np.random.Generator, rows: int) -> Array:
        times, weight = paired.draw(generator, rows)
        mass = times * weight
        total = mass.sum(axis=1, keepdims=True)
        total[total == 0] = np.nan  # only censored rows were drawn
        mass = mass / total  # in place it would normalize the counts as well
        events = mass * paired.outcomes
        columns = []
        for model, levels in zip(models, level_of, strict=True):
            places = (levels + model.levels * np.arange(rows)[:, None]).ravel()

            def summed(terms: Array, places: Any = places, size: int = model.levels) -> Array:
                return np.asarray(np.bincount(places, terms.ravel(), rows * size).reshape(rows, size))

            drawn = Resamples(summed(mass), summed(events))
            if not sums_suffice:
                squares = mass * weight / total  # a record drawn twice is two records
                order = np.argsort(levels, kind="stable")
                records = (times, mass, events) if model.record_outcomes is not None else ()
                sums = drawn.weights, drawn.outcomes, summed(squares), summed(times)
                drawn = Resamples(*sums, *(part[:, order] for part in records))
            columns.append(values_of_resamples(model, entry, drawn, quick))
        return np.stack(columns, axis=1)

    return drawing.run(work, len(paired.outcomes) * len(models), alone=not quick)


RESAMPLES_PER_PASS = 16  # resamples that share one pass over the rows


@dataclass(frozen=True, slots=True, eq=False)
class CellModel:
    cells: Forecasts  # its levels, or these merged
    starts: Array  # the smallest prediction of each cell
    merged: bool
    shift: float  # its error on the levels minus its error on the cells

    def codes(self, outcomes: Array, predictions: Array) -> npt.NDArray[np.int64]:
        cell = np.searchsorted(self.starts, predictions, side="right") - 1
        return np.asarray(2 * cell + (outcomes > 0), dtype=np.int64)

    def values(self, counts: npt.NDArray[np.int32], n: int, entry: Measure) -> Array:
        """Return the measure of resamples, from how often each code was drawn (one column per resample)."""
        zeros, ones = counts[: 2 * self.cells.levels].reshape(self.cells.levels, 2, -1).transpose(1, 2, 0)
        residuals = (ones - (zeros + ones) * self.cells.values) / n
        return values_of_residuals(self.cells, entry, residuals) + self.shift


def on_cells(
    forecasts: Mapping[str, Forecasts], entry: Measure, values: Mapping[str, float]
) -> list[CellModel]:
    """Return the models on levels (few) or merged levels (many); none unless all can be counted there."""

    def made(name: str) -> CellModel | None:
        model = forecasts[name]
        counted = model.binary and model.record_outcomes is None and has_equal_weights(model)
        countable = counted and entry.null.residuals_only and batched(model, entry)
        if model.n < MAX_UNMERGED_LEVELS or not countable:
            return None
        cells = levels_to_simulate(model, entry)
        starts = model.values if cells is model else model.values[cell_starts(model, SIMULATED_CELLS)]
        return CellModel(cells, starts, cells is not model, values[name] - measured(cells, entry))

    models = map_threads(made, forecasts, size=min(f.levels for f in forecasts.values()))
    possible = [model for model in models if model is not None]
    return possible if len(possible) == len(models) else []


def resampled_cells(models: Sequence[CellModel], rows: PairedRows, entry: Measure, drawing: Drawing) -> Array:
    """Return the measure of every model (columns) on resampled rows, moved to the scale of the levels."""
    n, size = len(rows.outcomes), 2 * max(model.cells.levels for model in models)
    pairs = zip(models, rows.models.values(), strict=True)
    codes = CountedCodes.of(
        map_threads(lambda pair: pair[0].codes(rows.outcomes, pair[1]), pairs, size=n), size
    )
    tally_poisson.compile_now()
    tally_picked.compile_now()

    def work(generator: np.random.Generator, resamples: int) -> Array:
        counts = resampled_tallies(generator, codes, resamples)
        return np.stack([model.values(counts[j], n, entry) for j, model in enumerate(models)], axis=1)

    return drawing.run(work, BLOCK // RESAMPLES_PER_PASS)


def calibration_pvalues(
    models: Mapping[str, Forecasts], entry: Measure, drawing: Drawing
) -> dict[str, float]:
    """Test each model by the measure; 0 where it has no test, or needs no such care."""
    # mean scores have no bias, and differences of squares are linear in the noise that two models share
    if not (entry.complete or entry.signed) or seminorm_power(next(iter(models.values())), entry) == 2:
        return dict.fromkeys(models, 0.0)
    silent = replace(drawing, progress=None)
    return {
        name: run_test(forecasts, entry, silent, level=None).pvalue if forecasts.binary else 0.0
        for name, forecasts in models.items()
    }


def widen_if_calibrated(
    pair: Difference, pvalues: Mapping[str, float], rows: PairedRows, entry: Measure, confidence: float
) -> Difference:
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)

    def error_if(calibrated: str, other: str) -> float:
        checked = check_records(rows.models[calibrated], rows.models[other], rows.weights)
        value = float(entry.function.core(Forecasts.of_checked(checked), **entry.options))
        # how much an error of one against the other varies with the rows that came, at most
        gap = rows.models[calibrated] - rows.models[other]
        terms = gap / len(gap) if rows.weights is None else rows.weights * gap / rows.weights.sum()
        terms = terms if rows.clusters is None else rows.clusters.total(terms)
        return float(error_of(entry, value)) + quantile * float(np.linalg.norm(terms))

    lower, upper = pair.lower, pair.upper
    if not is_rejected(pvalues[pair.first], confidence):
        lower = min(lower, -error_if(pair.first, pair.second))
    if not is_rejected(pvalues[pair.second], confidence):
        upper = max(upper, error_if(pair.second, pair.first))
    most = entry.reachable()[1]  # errors of at most this size differ by no more
    pvalue = max(pair.pvalue, pvalues[pair.better[1]])
    bound = pair.pvalue_is_bound and pvalue == pair.pvalue
    lower, upper = max(-most, lower), min(most, upper)
    return replace(pair, lower=lower, upper=upper, pvalue=pvalue, adjusted=pvalue, pvalue_is_bound=bound)


@overload
def compare(*, outcomes: Any, predictions: Any, **options: Any) -> OutcomeComparison: ...
@overload
def compare(y_true: Any, *y_prob: Any, **options: Any) -> Comparison: ...
@shares_parameters("")
def compare(
    y_true: Any = None,
    *y_prob: Any,
    predictions: Any = None,
    outcomes: Any = None,
    clusters: Any = None,
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
    seed: int | None = 0,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison | OutcomeComparison:
    """Compare the calibration of two or more models on the same rows, by resampling the rows in pairs.

    Models that have outcomes of their own, such as language models that are right on different questions, are
    compared by ``compare(outcomes={"a": y_a, "b": y_b}, predictions={"a": p_a, "b": p_b})``: row i of each is
    the same question, and accuracy, calibration, Brier score and risk-coverage are compared at once.

    Intervals and p-values are approximate and agree: p is at most 1 - `confidence` where the interval leaves
    out 0. Measures with a sign are compared by their distance from the ideal. Every model's Brier score,
    miscalibration and discrimination are in `scores`: calibration alone can rank a constant base rate first,
    so choose a model by "brier" or "log-loss". The default, ATB, is truthful:
    E[ATB(a, y)] - E[ATB(b, y)] = ATB(a, p) - ATB(b, p), so noise cannot change the order. By another error, a
    model is worse only if the exact test rejects it. From 16,384 unweighted 0/1 rows on, errors of more than
    1,024 distinct predictions are resampled on `cells` of merged ones.

    Parameters
    ----------
    y_true
        Outcomes; or a frame, with `outcome` and several columns as `prediction`.
    *y_prob
        Predictions of each model, a mapping from names to predictions, or a frame with one column per model.
    predictions, outcomes
        Mappings from names to the predictions and to the own outcomes of each model.
    clusters
        Labels of rows that belong together (questions on one passage), or the name of their column: whole
        clusters are resampled.
    measure
        What to compare by; a name of the registry.
    sample_weight, names
        Non-negative weights, one per record; names of the models.
    missing
        "error", or "drop" to leave out rows that lack a value for any model.
    pos_label, outcome, prediction, weight
        The label that counts as 1; columns of a frame that is passed in place of `y_true`.
    draws
        Number of resamples. From 999 on there are as many as all pairs need, and ten times what was asked for
        where another seed might change a verdict; what is still too close then is `undecided`.
    **options
        Options of the measure.

    Returns
    -------
    Comparison
        Or OutcomeComparison, for models with outcomes of their own.

    Examples
    --------
    >>> y, p = [0, 1, 1, 0, 1, 1] * 40, [0.2, 0.7, 0.8, 0.3, 0.6, 0.9] * 40
    >>> compare(y, p, [0.5 * x for x in p], names=["good", "halved"], seed=1).best
    'good'
    """
    if outcomes is not None:
        given = {"y_true": y_true, "y_prob": y_prob or None, "sample_weight": sample_weight, "names": names}
        for name, value in given.items():
            if value is not None:
                rule, hint = "does not apply to models with outcomes of their own", "leave it out"
                raise InvalidInputError(name, rule, hint=hint)
        settings: dict[str, Any] = {"missing": missing, "pos_label": pos_label, "confidence": confidence}
        return compare_outcomes(outcomes, predictions, clusters=clusters, **settings)
    models_asked = y_prob if predictions is None else (predictions, *y_prob)
    open_share("confidence", confidence)
    drawing = Drawing.checked(draws, seed, threads, progress)
    row = with_options(find_measure(measure), options)
    columns = {"outcome": outcome, "prediction": prediction, "weight": weight}
    rows = paired_models(y_true, models_asked, sample_weight, clusters, names, columns, missing, pos_label)
    named = list(rows.models)
    rows = rows if rows.clusters is None else rows.in_order()
    size = len(rows.outcomes)
    check_resampling(size)
    models = map_threads_named(lambda p: _forecasts(rows, p), rows.models, size=size)
    related = rows.cluster_summary()
    if row.name in LOGISTIC:
        for name, forecasts in models.items():
            refuse_certain(forecasts, row.name, f"model {name!r}")
    values = map_threads_named(lambda one: float(row.function.core(one, **row.options)), models, size=size)
    # draws follow the contents of the models: whichever is named first, the same rows are resampled
    order = sorted(models, key=lambda name: (values[name], models[name].values.tobytes()))
    models = {name: models[name] for name in order}
    rows = replace(rows, models={name: rows.models[name] for name in order})
    cells = [] if related else on_cells(models, row, values)
    rows = rows if cells else rows.in_order()  # cells are counted, in whatever order
    factors = [_bias_factor(one, row) for one in models.values()]

    def differences(count: int) -> tuple[list[Difference], int]:
        counted = replace(drawing, draws=count)
        if cells:
            drawn = resampled_cells(cells, rows, row, counted)
        else:
            drawn = resampled_rows(models, rows, row, counted)
        if related:
            center = np.nanmean(drawn, axis=0)
            drawn = center + related.widening(confidence) * (drawn - center)
        errors = {
            name: _Error(name, float(error_of(row, values[name])), error_of(row, column), factor)
            for name, column, factor in zip(models, drawn.T, factors, strict=True)
        }
        pvalues = calibration_pvalues(models, row, counted)
        plain = [_difference(errors[one], errors[other], confidence) for one, other in combinations(named, 2)]
        pairs = [widen_if_calibrated(pair, pvalues, rows, row, confidence) for pair in plain]
        adjusted = holm([pair.pvalue for pair in pairs])
        return [replace(pair, adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)], count

    def is_close(found: tuple[list[Difference], int], count: int) -> bool:
        return any(may_flip(pair, count, confidence) for pair in found[0])

    enough = _enough(drawing.draws, math.comb(len(named), 2), confidence)
    pairs, count = draw_until_decided(differences, is_close, enough)
    return Comparison(
        measure=row.name,
        values=values,
        differences=tuple(pairs),
        confidence=confidence,
        fair=find_measure(measure).fair_with(options),
        n=size,
        draws=count,
        seed=drawing.seed,
        dropped=rows.dropped,
        scores=map_threads_named(decompose, {name: models[name] for name in named}, size=size),
        cells=max((model.cells.levels for model in cells if model.merged), default=None),
        clusters=related,
    )


def _forecasts(rows: PairedRows, predictions: Array) -> Forecasts:
    checked = check_records(rows.outcomes, predictions, rows.weights)
    if rows.censored is not None:
        checked = replace(checked, censoring=rows.censored.censoring)
    made = Forecasts.of_checked(checked)
    return made if rows.clusters is None else made.with_clusters({rows.clusters.name: rows.clusters.codes})


def _enough(asked: int, pairs: int, confidence: float) -> int:
    """Return the draws that let one of many pairs differ, unless few were asked for or very many needed."""
    enough = math.ceil(2 * pairs / (1 - confidence) - 1e-9) - 1
    return max(asked, enough) if asked >= DRAWS and enough <= MORE_DRAWS * asked else asked


@dataclass(frozen=True, slots=True, eq=False)
class _Error:
    name: str
    value: float
    drawn: Array  # of every resample
    factor: float  # how much larger the bias can be than what resampling adds

    def without_bias(self, defined: npt.NDArray[np.bool_], most: float) -> float:
        """Return the value less the most that noise can have added: `most`, where models are alike."""
        added = float(self.drawn[defined].mean()) - self.value
        return max(0.0, self.value - self.factor * min(max(0.0, added), most))


def _bias_factor(forecasts: Forecasts, entry: Measure) -> float:
    if not (entry.complete or entry.signed):  # mean scores have no bias
        return 0.0
    # calibrated, noise e biases the k-th power of an error by E|e|^k; resampling adds 2^(k/2) - 1 times that
    power = 1 if entry.signed else seminorm_power(forecasts, entry) or 1
    return float(1 / (2 ** (power / 2) - 1))


def _difference(one: _Error, other: _Error, confidence: float) -> Difference:
    """Join the intervals that are right near calibration and far from it; p is that of the joint one."""
    difference, drawn = one.value - other.value, one.drawn - other.drawn
    central(drawn, confidence)  # refuses where most resamples have no value
    known = np.isfinite(drawn)
    defined = np.sort(drawn[known])
    rank = max(1, int((1 - confidence) / 2 * (len(defined) + 1) + 1e-9))  # so that interval and p-value agree
    low, high = float(defined[rank - 1]), float(defined[-rank])
    center = float(defined.mean())
    moved = float(np.abs(defined - difference).mean())
    least, most = one.without_bias(known, moved) - other.value, one.value - other.without_bias(known, moved)
    lower = min(low, 2 * difference - high, least - (high - center))
    upper = max(high, 2 * difference - low, most + (center - low))
    slack = 1e-9 * abs(difference) + 1e-15

    def above(end: float) -> int:
        return int(np.count_nonzero(defined >= end - slack))

    def below(end: float) -> int:
        return int(np.count_nonzero(defined <= end + slack))

    # 0 is left out below (above) as soon as the rank is above every number in the first (second) bracket
    beyond = min(
        max(below(0.0), above(2 * difference), above(least + center)),
        max(above(0.0), below(2 * difference), below(most + center)),
    )
    pvalue = min(1.0, 2 * (1 + beyond) / (len(defined) + 1))
    return Difference(one.name, other.name, difference, lower, upper, pvalue, pvalue, beyond == 0)
