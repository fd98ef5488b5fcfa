"""Intervals by inverting tests: which true errors would give the value seen? Why: docs/interval-proofs.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.errors import Hint, InvalidInputError
from calibrant.fits.levels import expit
from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.inference.bootstrap import Resampler, lower_quantile, upper_quantile, values_of_resamples
from calibrant.inference.null import (
    Drawing,
    NullDraws,
    NullOutcomes,
    SignNull,
    cluster_summary,
    is_clustered,
    measured,
    null_values,
    record_clusters,
    record_outcomes,
    record_weights,
)
from calibrant.inference.odds_shift import common_shift
from calibrant.inference.testing import by_signs
from calibrant.metrics.cox import MAX_LOGIT, logits
from calibrant.metrics.registry import Measure
from calibrant.metrics.scores import isotonic_curve
from calibrant.parallel import dot
from calibrant.results import Array

MIN_DRAWS = 99
PREDICTION_RESAMPLES = 49  # resampled predictions, for a standard deviation
STEPS = (0.4, 0.8, 1.2, 1.8, 2.7, 4.0, 6.0, 10.0, 16.0, 30.0)  # of the error that was seen


def inverted(
    forecasts: Forecasts, entry: Measure, drawing: Drawing, value: float, confidence: float
) -> tuple[float, float]:
    """Return the widest interval over the directions in which calibration can fail."""
    if entry.name == "upper-distance" and by_signs(forecasts):  # signs draw outcomes that it cannot take
        hint = Hint("take that of {}", measure="lower-distance")
        rule = "of the upper distance needs independent outcomes of 0 and 1"
        raise InvalidInputError("an interval", rule, hint=hint)
    draws = min(drawing.draws, max(MIN_DRAWS, drawing.draws // 4))
    drawing = Drawing(draws, drawing.seed, threads=1)
    share = (1 - confidence) / 2

    def simulate(rates: Array) -> Array:  # always by the same numbers
        return null_values(forecasts, entry, _outcomes_around(forecasts, rates), drawing)

    def ends(drawn: Array) -> tuple[float, float]:
        return lower_quantile(drawn, share), upper_quantile(drawn, 1 - share)

    null = simulate(forecasts.values)
    # below what chance gives, a value promises no more than the middle of chance
    seen = max(value, float(np.median(null)))
    normals = np.random.default_rng([drawing.seed, 2]).normal(size=draws)
    normals = (normals - normals.mean()) / (normals.std() or 1.0)
    varied = _spread_of_truth(forecasts, entry, drawing.seed) * normals
    fitted = isotonic_curve(forecasts) - forecasts.values
    size = dot(forecasts.weights, np.abs(fitted))
    size = max(size, np.sqrt(forecasts.null_variance), float(forecasts.squared_weights.sum()))
    to_one_half = np.full(forecasts.levels, size if forecasts.mean_prediction < 0.5 else -size)
    lower, upper = np.inf, 0.0
    for direction in (fitted, to_one_half):
        truths, lows, highs = [0.0], *([end] for end in ends(null))
        rates = forecasts.values
        for step in STEPS:
            last, rates = rates, np.clip(forecasts.values + step * direction, 0.0, 1.0)
            if lows[-1] > seen or np.array_equal(rates, last):
                break
            truths.append(measured(forecasts.with_outcomes(forecasts.weights * rates), entry))
            low, high = ends(simulate(rates) + truths[-1] * varied)
            lows.append(low)
            highs.append(high)
        # the truths at which growing quantiles reach what was seen
        lower = min(lower, float(np.interp(value, np.maximum.accumulate(highs), truths)))
        upper = max(upper, float(np.interp(seen, np.maximum.accumulate(lows), truths)))
    return lower, max(lower, upper)


def _spread_of_truth(forecasts: Forecasts, entry: Measure, seed: int) -> float:
    """Return the relative deviation of the true error over predictions like these, at the isotonic fit."""
    fit = isotonic_curve(forecasts)
    truth = measured(forecasts.with_outcomes(forecasts.weights * fit), entry)
    if not truth > 0:
        return 0.0
    resampler = Resampler(forecasts)

    def work(generator: np.random.Generator, rows: int) -> Array:
        drawn = resampler.draw(generator, rows)
        events = drawn.record_weights
        events = None if events is None else events * np.repeat(fit, forecasts.counts)
        drawn = replace(drawn, outcomes=drawn.weights * fit, record_outcomes=events)
        return values_of_resamples(forecasts, entry, drawn, quick=False)

    values = Drawing(PREDICTION_RESAMPLES, seed + 1, threads=1).run(work, resampler.width)
    return float(np.nanstd(values)) / truth


def _outcomes_around(forecasts: Forecasts, rates: Array) -> NullDraws:
    if not by_signs(forecasts):
        return NullOutcomes(forecasts, rates)
    if forecasts.record_outcomes is None and not forecasts.binary:
        hint = "leave out the rows with fractional outcomes, or take confidence_interval of all rows"
        rule = "is not taken of merged predictions where outcomes are fractions"
        raise InvalidInputError("this interval", rule, hint=hint)
    return SignNull(forecasts, None if rates is forecasts.values else rates)


LOGISTIC = ("slope", "intercept")
BY_SCORE = (*LOGISTIC, "o/e", "c-statistic")
MAX_DOUBLINGS = 6  # of the half-width of the usual interval; an end beyond is infinite
ROUNDING = 1e-13  # of a sum, relative to its terms
MIN_SQUARED_WEIGHT = 1e-290  # squares of weights below this may underflow


@dataclass(frozen=True, slots=True, eq=False)
class _Powers:
    """Sums over the records of each level; as if these weighed the same where they are not known."""

    two: Array  # w^2
    three: Array  # w^3
    outcome: Array  # w^2 y
    outcome_squared: Array  # w^2 y^2
    other_squared: Array  # w^2 (1 - y)^2

    @classmethod
    def of(cls, forecasts: Forecasts) -> _Powers:
        squares, outcomes = forecasts.squared_weights, forecasts.record_outcomes
        if outcomes is None:
            ones = squares * (forecasts.outcomes / forecasts.weights)
            return cls(squares, squares**2 / forecasts.weights, ones, ones, squares - ones)
        each, starts = record_weights(forecasts), np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
        terms = (each**3, each**2 * outcomes, (each * outcomes) ** 2, (each * (1 - outcomes)) ** 2)
        return cls(squares, *(np.add.reduceat(term, starts) for term in terms))

    def shown(self, rates: Array) -> Array:
        """Return the sums of w^2 (y - rate)^2."""
        return self.outcome_squared - 2 * rates * self.outcome + rates**2 * self.two


def score_interval(
    forecasts: Forecasts, name: str, *, value: float, confidence: float
) -> tuple[float, float]:
    from scipy.special import stdtrit

    if name in LOGISTIC:
        refuse_certain(forecasts, name)
    records = 1 / float(forecasts.squared_weights.sum())  # as many as weigh the same are as noisy
    if is_clustered(forecasts):
        records = cluster_summary(forecasts, checked=True).effective
    if name == "c-statistic":
        return _concordance_interval(forecasts, value, confidence, records)
    free = max(1.0, records - (2 if name == "slope" else 1))
    reach = float(stdtrit(free, (1 + confidence) / 2))
    if name == "slope":
        score, unit = _slope_score(forecasts, value, reach, records / free)
    else:
        score, unit = _sum_score(forecasts, name, value)
    if name == "o/e" and score(0.0) < reach:  # no ratio is negative; an interval of all of them says nothing
        upper = _end(score, value, unit * reach, -reach)
        return (0.0 if math.isfinite(upper) else -math.inf), upper
    return _end(score, value, -unit * reach, reach), _end(score, value, unit * reach, -reach)


def _concordance_interval(
    forecasts: Forecasts, value: float, confidence: float, records: float
) -> tuple[float, float]:
    from scipy.special import stdtrit

    events, others = forecasts.outcomes, forecasts.weights - forecasts.outcomes
    rate, rest = float(events.sum()), float(others.sum())  # 1 - rate may round to 0
    value = value if ROUNDING < value < 1 - ROUNDING else float(round(value))
    one = (np.cumsum(others) - others / 2) / rest - value  # what an event adds to the mean over pairs
    zero = (rate - np.cumsum(events) + events / 2) / rate - value
    # of equal predictions, or of outcomes that these separate, rounding is all that is left
    one, zero = (np.where(np.abs(part) > ROUNDING, part, 0.0) for part in (one, zero))
    one, zero = one / rate, zero / rest
    powers = _Powers.of(forecasts)
    mixed = powers.outcome - powers.outcome_squared
    squares = powers.outcome_squared, powers.other_squared
    totals = [float(part.sum()) for part in squares]
    if min(totals) < MIN_SQUARED_WEIGHT:
        return 0.0, 1.0  # one kind has next to no weight
    sizes = [share**2 / total for share, total in zip((rate, rest), totals, strict=True)]
    sizes = [max(1.0, size * min(1.0, records * float(forecasts.squared_weights.sum()))) for size in sizes]
    shown = sum(
        dot(part, along**2) * size / max(size - 1, 0.5)
        for part, along, size in zip(squares, (one, zero), sizes, strict=True)
    )
    shown = (shown + 2 * dot(mixed, one * zero)) * _cluster_effect(forecasts, zero, one)
    usual = hanley_mcneil(value, *sizes)
    more = shown / usual if usual > 0 and shown > 0 else 1.0
    reach = float(stdtrit(max(1.0, min(sizes) - 1), (1 + confidence) / 2))

    def beyond(c: float) -> float:
        return (value - c) ** 2 - reach**2 * more * hanley_mcneil(c, *sizes)

    inside = min(max(value, 1e-9), 1 - 1e-9)
    if beyond(inside) >= 0:  # the interval is a point: there are too many pairs for another value
        return value, value
    lower, upper = (value if value == end else root(beyond, inside, end, 1e-9) for end in (0.0, 1.0))
    return lower, upper


def hanley_mcneil(c: float, events: float, others: float) -> float:
    """Return the variance of a c-statistic, with Newcombe's average of both sizes."""
    pairs = max(0.0, (events + others) / 2 - 1)
    c = min(max(c, 0.0), 1.0)
    return c * (1 - c) * (1 + pairs * ((1 - c) / (2 - c) + c / (1 + c))) / (events * others)


def refuse_certain(forecasts: Forecasts, name: str, whose: str = "the predictions") -> None:
    """Refuse predictions within 1e-12 of 0 and 1: no sample bounds what they do to the slope."""
    certain = int(forecasts.counts[np.abs(logits(forecasts)) >= MAX_LOGIT].sum())
    if certain:
        rule = f"must lie between 0 and 1 for an interval of the {name}"
        hint = "leave these rows out and say how many they are, or look at another measure"
        raise InvalidInputError(whose, rule, f"{certain:,} are 0 or 1", hint)


def _end(score: Callable[[float], float], value: float, step: float, level: float) -> float:
    """Walk from the value until the score, which falls, reaches this level; infinite if it never does."""
    inner, outer = value, value + step
    for _ in range(MAX_DOUBLINGS + 1):
        reached = score(outer)
        if (reached >= level) if level > 0 else (reached <= level):
            return root(lambda at: score(at) - level, inner, outer, 1e-6 * abs(step) + 1e-12)
        inner, outer = outer, value + 2 * (outer - value)
    return float(np.copysign(np.inf, -level))


Score = tuple[Callable[[float], float], float]


def _slope_score(forecasts: Forecasts, value: float, reach: float, small: float) -> Score:
    """Return the standardized score and its standard error; `small` corrects for few records."""
    weights, powers = forecasts.weights, _Powers.of(forecasts)
    logit = logits(forecasts) - dot(weights, logits(forecasts))
    others = float((weights - forecasts.outcomes).sum())

    def parts(slope: float) -> tuple[Array, Array, float]:
        scaled = slope * logit
        rates = expit(scaled + common_shift(scaled, forecasts.base_rate, weights, others))
        spread = weights * rates * (1 - rates)
        total = float(spread.sum())
        away = logit - dot(spread, logit) / total if total > 0 else logit
        return rates, away, dot(powers.two * rates * (1 - rates), away**2)

    rates, away, implied = parts(value)
    shown = dot(powers.shown(rates), away**2) * small
    shown *= _cluster_effect(forecasts, -rates * away, (1 - rates) * away)
    more = max(1.0, shown / implied) if implied > 0 else 1.0
    information = dot(weights * rates * (1 - rates), away**2)

    def score(slope: float) -> float:
        rates, away, implied = parts(slope)
        if not implied > (ROUNDING * dot(weights, np.abs(away))) ** 2:
            return 0.0  # all rates are 0 or 1: what is left of the score is rounding
        reached = dot(forecasts.outcomes - weights * rates, away) / np.sqrt(more * implied)
        third = dot(powers.three * rates * (1 - rates) * (1 - 2 * rates), away**3)
        skewed = third / implied / np.sqrt(implied)  # not third / implied**1.5, which may underflow
        return _without_skewness(float(reached), float((reach**2 - 1) / 6 * skewed))

    return score, float(np.sqrt(implied)) / information if information > 0 else 1.0


def _without_skewness(score: float, skewed: float) -> float:
    return score if score * skewed <= 0 else float(np.copysign(max(0.0, abs(score) - abs(skewed)), score))


def _sum_score(forecasts: Forecasts, name: str, value: float) -> Score:
    weights, powers, logit = forecasts.weights, _Powers.of(forecasts), logits(forecasts)

    def rates_at(shift: float) -> Array:
        return np.asarray(expit(logit + shift) if name == "intercept" else shift * forecasts.values)

    def implied(rates: Array) -> float:
        if rates.max() > 1:  # what a ratio would add beyond that is expected of the other records
            inside = np.minimum(rates, 1.0)
            left = dot(weights, 1 - inside)
            more = min(1.0, dot(weights, rates - inside) / left) if left > 0 else 0.0
            rates = inside + more * (1 - inside)
        return dot(powers.two, rates * (1 - rates))

    fitted = rates_at(value)
    effect = max(1.0, _cluster_effect(forecasts, -fitted, 1 - fitted))

    def score(at: float) -> float:
        rates = rates_at(at)
        deviation = np.sqrt(effect * max(float(powers.shown(rates).sum()), implied(rates)))
        total = float((forecasts.outcomes - weights * rates).sum())
        return total / float(deviation) if deviation > 0 else 0.0

    if name == "intercept":
        information = dot(weights, fitted * (1 - fitted))
        return score, math.sqrt(implied(fitted)) / information if information > 0 else 1.0
    least = float(powers.two.max())  # the variance of one event, where there is none
    return score, math.sqrt(max(dot(powers.two, fitted), least)) / forecasts.mean_prediction


def _cluster_effect(forecasts: Forecasts, zero: Array, one: Array) -> float:
    """Return the variance by clusters over that by records of a sum of `zero` or `one` per outcome."""
    if not is_clustered(forecasts):
        return 1.0
    level_of = np.repeat(np.arange(forecasts.levels), forecasts.counts)
    terms = zero[level_of] + record_outcomes(forecasts) * (one - zero)[level_of]
    terms *= record_weights(forecasts)
    squares, sums = dot(terms, terms), record_clusters(forecasts).total(terms)
    return dot(sums, sums) / squares if squares > 0 else 1.0
