"""Compare groups at equal predictions, whatever the calibration curve: permutation within strata.

What the prediction still explains inside a stratum is taken out by a logistic recalibration. No variance is
borrowed from the predictions, so the tests hold when the model is wrong. They are exact if strata are ties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import expit, logit
from calibrant.fits.logistic import Regressors, minimize_loss
from calibrant.inference.odds_shift import (
    common_shift,
    conditional_estimate,
    event_logs,
    exact_interval,
    law_of_sum,
    tail,
)
from calibrant.inference.pvalues import MORE_DRAWS, could_flip
from calibrant.kernels.compile import compiled
from calibrant.parallel import in_blocks
from calibrant.results import Array

Codes = npt.NDArray[np.intp]

RIDGE = (1e-6, 0.5)  # on intercept and slope of the recalibration, whose regressor has unit variance
NEAR_CERTAIN = 1e-6  # predictions are kept this far from 0 and 1 before logits are taken
MAX_FITTED = 4_096  # points to which the recalibration is fitted: means of neighbors beyond
NULL_DIRECTION = 1e-9  # of the largest eigenvalue: below it a direction of the covariance carries nothing
ROUNDING = 1e-9  # a simulated statistic this close to the observed one counts as equal
MAX_EXACT_VARIANCE = 100.0  # of a group's events: beyond it the law of a pair is normal
MIN_SHUFFLES_COMPILED = 5_000_000  # records times draws
MIN_PVALUE = 1e-60  # laws are cut off there
MIN_SLOPE_RECORDS = 20  # of the rarer outcome in a group, below which its slope is not compared


def prediction_strata(prediction: Array) -> Codes:
    """Number about sqrt(n) strata of ascending predictions; ties share the stratum of their middle."""
    n = len(prediction)
    count = max(1, round(np.sqrt(n)))
    starts = np.flatnonzero(np.append(True, prediction[1:] != prediction[:-1]))
    ends = np.append(starts[1:], n)
    of_run = (starts + ends) * count // (2 * n)
    return np.repeat(np.unique(of_run, return_inverse=True)[1], ends - starts)


def recalibrated_logits(prediction: Array, outcome: Array, weight: Array) -> Array:
    """Return logits of the best logistic curve of ascending predictions, with a light ridge on its slope."""
    x = logit(prediction, NEAR_CERTAIN)
    x = (x - x.mean()) / max(float(x.std()), 1e-9)
    weight = weight / weight.mean()
    rate = float((weight @ outcome + 0.5) / (weight.sum() + 1))
    at, mass, events = x, weight, weight * outcome
    if len(x) > MAX_FITTED:  # neighbors share a point of the curve
        starts = np.arange(0, len(x), len(x) // MAX_FITTED + 1)
        mass, events, moment = (np.add.reduceat(one, starts) for one in (weight, events, weight * x))
        at = moment / mass
    constant = np.array([math.log(rate / (1 - rate)), 0.0])
    curve = Regressors((np.ones(len(at)), at))
    beta = minimize_loss(curve, events / mass, mass, center=constant, precision=np.array(RIDGE)).beta
    return np.asarray(beta[0] + beta[1] * x)


@dataclass(frozen=True, eq=False)
class StratifiedScores:
    """Records in strata of the prediction, and by how much each group exceeds its strata."""

    prediction: Array
    stratum: Codes
    group: Codes
    outcome: Array
    logits: Array
    weight: Array | None  # None where all are equal
    cluster: Codes | None  # of records that belong together; None where each is on its own
    n_groups: int

    @classmethod
    def of(
        cls,
        prediction: Array,
        outcome: Array,
        group: Codes,
        n_groups: int,
        weight: Array | None = None,
        cluster: Codes | None = None,
    ) -> StratifiedScores:
        """Sort the records, so that the order of the rows does not matter."""
        if weight is not None and np.ptp(weight) <= ROUNDING * weight.max():
            weight = None
        keys = (outcome, group, prediction)
        order = np.lexsort(keys if weight is None else (weight, *keys))
        p, y, mass = prediction[order], outcome[order], np.ones(len(order))
        if weight is not None:
            mass = weight[order] / weight[order].mean()
        return cls(
            p,
            prediction_strata(p),
            group[order],
            y,
            recalibrated_logits(p, y, mass),
            None if weight is None else mass,
            None if cluster is None else cluster[order],
            n_groups,
        )

    def rows(self, which: npt.NDArray[Any]) -> tuple[Array, Array, Array | None, Codes | None]:
        weight, cluster = (None if one is None else one[which] for one in (self.weight, self.cluster))
        return self.prediction[which], self.outcome[which], weight, cluster

    def among(self, groups: Sequence[int]) -> StratifiedScores:
        """Return the scores of some of the groups alone, numbered in the order given."""
        if len(groups) == self.n_groups:
            return self
        place = np.full(self.n_groups, -1)
        place[list(groups)] = np.arange(len(groups))
        which = place[self.group] >= 0
        p, y, weight, cluster = self.rows(which)
        cluster = None if cluster is None else np.unique(cluster, return_inverse=True)[1]
        return StratifiedScores.of(p, y, place[self.group[which]], len(groups), weight, cluster)

    @cached_property
    def mass(self) -> Array:
        return np.ones(len(self.outcome)) if self.weight is None else self.weight

    @cached_property
    def starts(self) -> Codes:
        """Where each stratum begins, and the end of the last."""
        edges = np.flatnonzero(np.diff(self.stratum, prepend=-1))
        return np.append(edges, len(self.stratum))

    @cached_property
    def shared_strata(self) -> Codes:
        """The strata with several groups and different outcomes; the others say nothing of differences."""
        several = np.count_nonzero(self.counts, axis=1) > 1
        low, high = (end.reduceat(self.outcome, self.starts[:-1]) for end in (np.minimum, np.maximum))
        return np.flatnonzero(several & (low < high))

    @cached_property
    def residual(self) -> Array:
        """Weight times outcome minus recalibrated prediction, centered within strata; 0 if not shared."""
        shared = np.isin(self.stratum, self.shared_strata)
        return np.where(shared, self.mass * self.centered(self.outcome - expit(self.logits)), 0.0)

    def centered(self, values: Array) -> Array:
        """Return values minus their mean in each stratum."""
        mean = np.bincount(self.stratum, self.mass * values) / np.bincount(self.stratum, self.mass)
        return np.asarray(values - mean[self.stratum])

    @cached_property
    def sums(self) -> Array:
        """By how much the outcomes of each group exceed those of the same strata."""
        return np.asarray(np.bincount(self.group, self.residual, self.n_groups), dtype=np.float64)

    @cached_property
    def counts(self) -> Array:
        """The weight of each group in each stratum, one row per stratum."""
        return self._table(self.mass)

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the sums if outcomes do not depend on the group."""
        if self.cluster is not None:
            by_cluster = self.cluster_sums
            return np.asarray(by_cluster.T @ by_cluster) * len(by_cluster) / max(len(by_cluster) - 1, 1)
        if self.weight is not None:
            squares = self._table(self.residual**2)
            covariance = _weighted_covariance(squares[None], self.counts[None], np.diff(self.starts))
            return np.asarray(covariance[0])
        size = np.diff(self.starts)
        mean = np.bincount(self.stratum, self.residual) / size
        around = np.bincount(self.stratum, (self.residual - mean[self.stratum]) ** 2)
        variance = np.where(size > 1, around / np.maximum(size - 1, 1), 0.0)
        shares = self.counts * np.divide(variance, self.counts.sum(axis=1))[:, None]
        return np.asarray(np.diag(variance @ self.counts) - shares.T @ self.counts)

    @cached_property
    def cluster_sums(self) -> Array:
        """What each cluster adds to the sums, one row per cluster."""
        assert self.cluster is not None
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        n = int(self.cluster.max()) + 1
        own = np.bincount(self.cluster * self.n_groups + self.group, self.residual, n * self.n_groups)
        by_stratum = np.zeros((n, self.n_groups))
        np.add.at(by_stratum, self.cluster, self.residual[:, None] * shares[self.stratum])
        return np.asarray(own.reshape(n, self.n_groups) - by_stratum)

    @cached_property
    def inverse(self) -> Array:
        return _pseudo_inverse(self.covariance)

    @cached_property
    def rank(self) -> int:
        """How many differences between groups the records show; 0 where none can be compared."""
        values = np.linalg.eigvalsh(self.covariance)
        return int(np.sum(values > max(NULL_DIRECTION * float(values.max()), 1e-300)))

    def _table(self, values: Array) -> Array:
        n_strata = len(self.starts) - 1
        place = self.stratum * self.n_groups + self.group
        table = np.bincount(place, values, n_strata * self.n_groups).astype(np.float64, copy=False)
        return table.reshape(n_strata, self.n_groups)

    @cached_property
    def statistic(self) -> float:
        """The squared distance of the sums from 0, in units of their covariance."""
        return float(self.sums @ self.inverse @ self.sums)

    def limit_pvalue(self) -> float:
        """Return the p-value of the chi-square law, right for many records in every group."""
        from scipy.special import chdtrc, fdtrc

        if self.rank == 0:
            return 1.0
        if self.cluster is None:
            return float(chdtrc(self.rank, self.statistic))
        free = len(self.cluster_sums) - self.rank
        return float(fdtrc(self.rank, free, self.statistic * free / (self.rank * (free + self.rank - 1))))

    def trend_statistic(self, place: Array) -> float:
        """Return the slope of the sums along places, in standard deviations."""
        variance = float(place @ self.covariance @ place)
        return float(place @ self.sums) / np.sqrt(variance) if variance > 0 else 0.0

    def draw(self, place: Array | None, draws: int, seed: int) -> Array:
        """Simulate the statistic, or that of a trend along places, under the null."""
        width = round(np.sqrt(len(self.group)))
        if self.weight is not None and self.cluster is None:
            work = partial(self._weighted_draws, place)
            return in_blocks(work, draws, width=width, seed=seed)
        if (draws, seed) not in self.known_sums:  # a trend and any difference are tested with the same draws
            work = partial(self._drawn_sums, len(self.group) * draws >= MIN_SHUFFLES_COMPILED)
            self.known_sums[draws, seed] = in_blocks(work, draws, width=width, seed=seed)
        drawn = self.known_sums[draws, seed]
        if place is not None:
            return _trends(drawn, self.covariance, place)
        return np.asarray(np.einsum("ij,jk,ik->i", drawn, self.inverse, drawn))

    @cached_property
    def known_sums(self) -> dict[tuple[int, int], Array]:
        """The sums that were drawn, by number of draws and seed."""
        return {}

    @cached_property
    def shared_parts(self) -> list[tuple[slice, Codes, Codes]]:
        """The rows of each shared stratum, the groups in it, and the place of each row among these."""
        parts = [slice(self.starts[k], self.starts[k + 1]) for k in self.shared_strata.tolist()]
        return [(part, *np.unique(self.group[part], return_inverse=True)) for part in parts]

    def _drawn_sums(self, many: bool, generator: np.random.Generator, rows: int) -> Array:
        """Give every cluster a random sign, or shuffle residuals within strata."""
        if self.cluster is not None:
            signs = 2.0 * generator.integers(0, 2, (rows, len(self.cluster_sums))) - 1.0
            return np.asarray(signs @ self.cluster_sums)
        total = np.zeros((rows, self.n_groups))
        for part, inside, code in self.shared_parts:
            if many:
                sums = np.zeros((rows, len(inside)))
                shuffled_sums.compile_now()
                shuffled_sums(generator.random((rows, len(code))), self.residual[part], code, sums)
            else:
                copies = np.broadcast_to(self.residual[part], (rows, len(code)))
                sums = generator.permuted(copies, axis=1) @ np.eye(len(inside))[code]
            total[:, inside] += sums
        return total

    def _weighted_draws(self, place: Array | None, generator: np.random.Generator, rows: int) -> Array:
        """Move labels against weights and residuals, and studentize every draw by its own covariance."""
        n_strata = len(self.starts) - 1
        sums = np.zeros((rows, self.n_groups))
        squares, counts = (np.zeros((rows, n_strata, self.n_groups)) for _ in range(2))
        each = np.arange(rows)[:, None] * self.n_groups
        for k in self.shared_strata.tolist():
            part = slice(self.starts[k], self.starts[k + 1])
            residual, mass = self.residual[part], self.mass[part]
            label = generator.permuted(np.broadcast_to(self.group[part], (rows, len(mass))), axis=1) + each
            for table, values in ((sums, residual), (squares[:, k], residual**2), (counts[:, k], mass)):
                spread = np.broadcast_to(values, label.shape).ravel()
                table += np.bincount(label.ravel(), spread, rows * self.n_groups).reshape(rows, -1)
        covariance = _weighted_covariance(squares, counts, np.diff(self.starts))
        if place is not None:
            return _trends(sums, covariance, place)
        return np.array([s @ _pseudo_inverse(c) @ s for s, c in zip(sums, covariance, strict=True)])


@compiled
def shuffled_sums(uniforms: Array, values: Array, group: Codes, sums: Array) -> None:
    """Add shuffled values (Fisher-Yates) to the groups of their new places."""
    for row in range(uniforms.shape[0]):
        left = values.copy()
        for last in range(len(values) - 1, -1, -1):
            chosen = int(uniforms[row, last] * (last + 1))
            sums[row, group[last]] += left[chosen]
            left[chosen] = left[last]


def _weighted_covariance(squares: Array, counts: Array, size: Codes) -> Array:
    """Return the covariance of weighted sums, for tables of (draw, stratum, group)."""
    squares = squares * (size / np.maximum(size - 1, 1))[:, None]
    shares = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-300)
    crossed = np.einsum("dkg,dkh->dgh", shares, squares)
    both = np.einsum("dkg,dkh,dk->dgh", shares, shares, squares.sum(axis=2), optimize=True)
    covariance = both - crossed - crossed.swapaxes(1, 2)
    diagonal = np.arange(counts.shape[2])
    covariance[:, diagonal, diagonal] += squares.sum(axis=1)
    return np.asarray(covariance)


def _pseudo_inverse(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    used = values > max(NULL_DIRECTION * float(values.max()), 1e-300)  # numpy's own overflows below that
    return np.asarray((vectors[:, used] / values[used]) @ vectors[:, used].T)


def _trends(sums: Array, covariance: Array, place: Array) -> Array:
    """Return absolute slopes along places in standard deviations, one per row of sums."""
    variance = np.maximum(np.asarray(place @ covariance @ place), 1e-300)
    return np.asarray(np.abs(sums @ place) / np.sqrt(variance))


def difference_test(
    scores: StratifiedScores, draws: int, seed: int, confidence: float = 0.95, place: Array | None = None
) -> tuple[float, int]:
    """Return the p-value of any difference between groups, or of a trend along places, and the draws."""
    from scipy.special import ndtr

    if place is None:
        observed, limit = scores.statistic, scores.limit_pvalue()
    else:
        observed = abs(scores.trend_statistic(place))
        limit = min(1.0, 2 * float(ndtr(-observed)))
    pvalue, simulated = limit, np.empty(0)
    # studentized draws reject too often where few records carry most of the weight
    least = limit if scores.weight is not None or scores.cluster is not None else 0.0
    if draws and scores.rank:
        for block, more in enumerate((draws, (MORE_DRAWS - 1) * draws)):
            simulated = np.append(simulated, scores.draw(place, more, seed + block))
            reached = int(np.count_nonzero(simulated >= observed * (1 - ROUNDING)))
            pvalue = max((1 + reached) / (1 + len(simulated)), least)
            if not could_flip(pvalue, draws, 1 - confidence):
                break
    return pvalue, len(simulated)


class PairDifference(NamedTuple):
    """The log odds ratio of two groups at equal predictions, with interval and p-value, which agree."""

    shift: float
    lower: float
    upper: float
    pvalue: float


def compare_pair(scores: StratifiedScores, confidence: float) -> PairDifference:
    """Compare the odds of groups 0 and 1 at equal predictions, exactly for few unweighted binary records."""
    if scores.rank == 0:
        return PairDifference(float("nan"), float("-inf"), float("inf"), 1.0)
    binary = bool(np.all((scores.outcome == 0) | (scores.outcome == 1)))
    plain = binary and scores.weight is None and scores.cluster is None
    if plain and scores.covariance[0, 0] <= MAX_EXACT_VARIANCE:
        return _exact_pair(scores, confidence)
    return _normal_pair(scores, confidence)


class OverallCurve:
    """What ascending predictions are worth overall, to compare a group with others at equal predictions."""

    def __init__(
        self,
        prediction: Array,
        outcome: Array,
        weight: Array | None = None,
        cluster: Codes | None = None,
        *,
        rates: bool = True,
    ) -> None:
        self._plain, self._rates = weight is None and cluster is None, rates
        weight = None if weight is None else weight / weight.mean()
        mass = np.ones(len(outcome)) if weight is None else weight
        stratum = prediction_strata(prediction)
        logits = recalibrated_logits(prediction, outcome, mass) if rates else np.zeros(len(outcome))
        none = np.zeros_like(stratum)
        self._all = StratifiedScores(prediction, stratum, none, outcome, logits, weight, cluster, 2)
        self._binary = rates and bool(np.all((outcome == 0) | (outcome == 1)))
        self._size = np.bincount(stratum, mass)
        error = outcome - (expit(logits) if rates else prediction)
        self._level = self._centered(error)
        self._slope = self._centered(error * (prediction - float(mass @ prediction) / float(mass.sum())))

    def _centered(self, values: Array) -> tuple[Array, Array]:
        """Return weighted values minus the mean of their stratum, and their variance in each stratum."""
        centered, stratum = self._all.mass * self._all.centered(values), self._all.stratum
        return centered, np.bincount(stratum, centered**2) / np.maximum(np.bincount(stratum) - 1, 1)

    def pvalue(self, members: npt.NDArray[Any]) -> float:
        """Return the p-value of some records against all others, in level or in slope."""
        level = self.level_pvalue(members)
        y = self._all.outcome[members]
        rarer = min(float(y.sum()), float((1 - y).sum())) if self._rates else len(y) / 2
        if rarer < MIN_SLOPE_RECORDS:
            return level
        return min(1.0, 2 * min(level, self._normal_pvalue(self._slope, members)))

    def level_pvalue(self, members: npt.NDArray[Any]) -> float:
        """Return the p-value of the mean difference between some records and all others."""
        if not (self._plain and self._binary and self._variance(self._level, members) <= MAX_EXACT_VARIANCE):
            return self._normal_pvalue(self._level, members)
        group = np.ones(len(self._all.stratum), dtype=np.intp)
        group[members] = 0
        return compare_pair(replace(self._all, group=group), 0.95).pvalue

    def _variance(self, values: tuple[Array, Array], members: npt.NDArray[Any]) -> float:
        count = np.bincount(self._all.stratum[members], minlength=len(self._size))
        return float(values[1] @ (count * (1 - count / self._size)))

    def _normal_pvalue(self, values: tuple[Array, Array], members: npt.NDArray[Any]) -> float:
        from scipy.special import ndtr, stdtr

        if self._plain:
            variance = self._variance(values, members)
            z = float(values[0][members].sum()) / np.sqrt(variance) if variance > 0 else 0.0
            return max(MIN_PVALUE, 2 * float(ndtr(-abs(z))))
        stratum, mass = self._all.stratum, self._all.mass
        terms = -np.bincount(stratum[members], mass[members], len(self._size))[stratum] / self._size[stratum]
        terms[members] += 1
        terms *= values[0]
        if self._all.cluster is not None:
            terms = np.asarray(np.bincount(self._all.cluster, terms), dtype=np.float64)
            free = len(terms) - 1.0
        else:
            own = mass[members]
            free = float(own.sum() ** 2 / (own @ own)) - 1
        spread = float(terms @ terms)
        z = float(terms.sum()) / np.sqrt(spread) if spread > 0 else 0.0
        return max(MIN_PVALUE, 2 * float(stdtr(max(free, 1.0), -abs(z))))


def _exact_pair(scores: StratifiedScores, confidence: float) -> PairDifference:
    """Add up the laws of the first group's events, given all events of each stratum."""
    law, events = (0, np.ones(1)), 0
    for k in scores.shared_strata.tolist():
        part = slice(scores.starts[k], scores.starts[k + 1])
        first = scores.group[part] == 0
        logits, outcome = scores.logits[part], scores.outcome[part]
        total = int(outcome.sum())
        rates = expit(logits + common_shift(logits, total))
        counts = np.arange(max(0, total - int(np.count_nonzero(~first))), min(total, int(first.sum())) + 1)
        logs = event_logs(rates[first], counts) + event_logs(rates[~first], total - counts)
        masses = np.exp(logs - logs.max())
        law = law_of_sum(law, (int(counts[0]), masses / masses.sum()))
        events += int(outcome[first].sum())
    counts = law[0] + np.arange(len(law[1]))
    with np.errstate(divide="ignore"):
        logs = np.log(law[1])
    tails = [tail(logs, counts, events, above) for above in (True, False)]
    low, high = exact_interval(logs, counts, events, confidence)
    shift = conditional_estimate(logs, counts, events)
    return PairDifference(shift, low, high, max(MIN_PVALUE, min(1.0, 2 * min(tails))))


def _normal_pair(scores: StratifiedScores, confidence: float) -> PairDifference:
    from scipy.special import stdtr, stdtrit

    if scores.cluster is not None:
        free = max(len(scores.cluster_sums) - 1.0, 1.0)
    else:
        kish = [float(w.sum() ** 2 / (w @ w)) for w in (scores.mass[scores.group == g] for g in (0, 1))]
        free = max(min(kish) - 1.0, 1.0)
    place = np.array([1.0, 0.0])
    z = scores.trend_statistic(place)
    shift = log_odds_slope(scores, place)
    if z != 0:
        deviation = abs(shift / z)
    else:
        share = (scores.counts / scores.counts.sum(axis=1, keepdims=True))[scores.stratum, 0]
        rate = expit(scores.logits)
        information = float((scores.mass * rate * (1 - rate)) @ ((scores.group == 0) - share) ** 2)
        deviation = np.sqrt(scores.covariance[0, 0]) / information
    half = deviation * float(stdtrit(free, (1 + confidence) / 2))
    return PairDifference(shift, shift - half, shift + half, min(1.0, 2 * float(stdtr(free, -abs(z)))))


def log_odds_slope(scores: StratifiedScores, place: Array) -> float:
    """Return the change of the log odds per unit of place, at equal predictions."""
    at, slope = scores.centered(place[scores.group]), 0.0
    for _ in range(50):
        rate = expit(scores.logits + slope * at)
        spread = float((scores.mass * rate * (1 - rate)) @ at**2)
        step = float((scores.mass * (scores.outcome - rate)) @ at) / max(spread, 1e-9)
        slope += float(np.clip(step, -1.0, 1.0))
        if abs(step) < 1e-10 or abs(slope) > 50:
            break
    return slope
