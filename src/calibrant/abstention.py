"""Abstain when unsure: risk against coverage, and a confidence threshold with a guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.formatting import confidence_text, percent, pluralize, pvalue_phrase
from calibrant.frames import resolve_inputs
from calibrant.inference.pvalues import LEVEL, exceedance
from calibrant.inputs import open_share
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.null_laws import simulated_extremes
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Missing, check_records
from calibrant.results import Array, Result, Table, number_cell, text_cell

COVERAGES_SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_ANSWERS = """\
y_true
    Whether the answer was right: 1 or 0. Or a data frame, with `outcome` and `prediction`.
y_prob
    The confidence: the predicted probability that the answer is right.
pos_label
    The label that counts as right.
missing
    Refuse rows with a missing value ("error"), or leave them out and count them ("drop").
outcome, prediction
    Columns of the frame.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RiskCoverage(Result):
    """Promised and realized risk of the most confident records, at every coverage.

    The arrays hold one number per distinct prediction, the most confident first: `coverage` is the share of
    records at least that confident, `promised` their mean of 1 - p, `realized` their share of errors.
    `overconfidence` is the largest realized minus promised number of errors per record over all coverages,
    `underconfidence` the largest promised minus realized one; both p-values are exact. If the model is
    calibrated, the realized risk stays within `band` / `coverage` of the promised risk at every coverage,
    with probability `confidence`. `aurc` is the area under the realized risk, `excess_aurc` what it loses
    to an order with all errors last.
    """

    HIDDEN: ClassVar = ("coverage", "promised", "realized", "threshold")
    DERIVED: ClassVar = ("sentence", "curve")

    coverage: Array
    promised: Array
    realized: Array
    threshold: Array
    aurc: float
    excess_aurc: float
    overconfidence: float
    overconfidence_pvalue: float
    underconfidence: float
    underconfidence_pvalue: float
    band: float
    confidence: float
    n: int
    dropped: int
    draws: int
    seed: int

    def at(self, coverage: float) -> tuple[float, float, float]:
        """Return coverage, promised and realized risk at the smallest coverage that reaches `coverage`."""
        place = self._place(coverage)
        return float(self.coverage[place]), float(self.promised[place]), float(self.realized[place])

    def _place(self, coverage: float) -> int:
        return min(int(np.searchsorted(self.coverage, coverage - 1e-12)), len(self.coverage) - 1)

    def __str__(self) -> str:
        _, promised_of_all, wrong_of_all = self.at(1.0)
        half, promised, realized = self.at(0.5)
        text = (
            f"Answering everything: {percent(wrong_of_all)} wrong of {pluralize(self.n, 'record')}, "
            f"{percent(promised_of_all)} promised. Answering the most confident {percent(half)}: "
            f"{percent(realized)} wrong, {percent(promised)} promised. "
        )
        worse = pvalue_phrase(self.overconfidence_pvalue, self.draws)
        better = pvalue_phrase(self.underconfidence_pvalue, self.draws)
        if self.overconfidence_pvalue <= LEVEL:
            return f"{text}More errors than promised ({worse})."
        if self.underconfidence_pvalue <= LEVEL:
            return f"{text}Fewer errors than promised ({better})."
        return f"{text}No difference beyond chance (more errors: {worse}; fewer: {better})."

    def sheet(self) -> Table:
        """Return the risk at a few coverages as a table."""
        lines = (
            (
                text_cell(percent(self.coverage[k])),
                number_cell(self.threshold[k], f"≥ {self.threshold[k]:.4g}"),
                *(number_cell(risk[k], percent(risk[k])) for risk in (self.promised, self.realized)),
            )
            for k in sorted(set(map(self._place, COVERAGES_SHOWN)))
        )
        return Table(("answered", "confidence", "promised wrong", "wrong"), tuple(lines))

    @property
    def curve(self) -> list[dict[str, float]]:
        """Coverage, promised and realized risk at a few coverages."""
        return [dict(zip(self.HIDDEN[:3], self.at(c), strict=True)) for c in COVERAGES_SHOWN]


@shares_parameters(_ANSWERS)
def risk_coverage(
    y_true: Any,
    y_prob: Any = None,
    *,
    pos_label: Any = None,
    missing: Missing = "error",
    outcome: str | None = None,
    prediction: str | None = None,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int | None = 0,
) -> RiskCoverage:
    """Compare promised with realized risk among the most confident records, at every coverage.

    A model that may abstain answers where its confidence p is high. Among the records it answers it promises
    an error rate of mean(1 - p) and realizes mean(1 - y). Records of equal confidence are answered together.
    The difference is a suffix sum of the residuals y - p, whose largest value has an exact test.

    Parameters
    ----------
    confidence
        Of the band that a calibrated model stays in.

    Examples
    --------
    >>> found = risk_coverage([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6])
    >>> found.coverage.tolist(), found.realized.round(3).tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.333, 0.25])
    """
    level, count, used = open_share("confidence", confidence), checked_draws(draws), recorded_seed(seed)
    y, p, ends, dropped = _most_confident_first(y_true, y_prob, pos_label, missing, outcome, prediction)
    n = len(y)
    gaps = np.cumsum(p - y)[ends] / n  # realized minus promised errors, per record
    null = simulated_extremes(p, ends, count, used)[:, ::-1] / n
    over, under = max(0.0, float(gaps.max())), max(0.0, float(-gaps.min()))
    promised, realized, answered = np.cumsum(1 - p)[ends], np.cumsum(1 - y)[ends], ends + 1.0
    aurc = _area(answered, realized)
    return RiskCoverage(
        coverage=answered / n,
        promised=promised / answered,
        realized=realized / answered,
        threshold=p[ends],
        aurc=aurc,
        excess_aurc=aurc - _area(np.array([y.sum(), n]), np.array([0.0, n - y.sum()])),
        overconfidence=over,
        overconfidence_pvalue=exceedance(over, null[:, 0]),
        underconfidence=under,
        underconfidence_pvalue=exceedance(under, null[:, 1]),
        band=float(np.quantile(null.max(axis=1), level, method="higher")),
        confidence=level,
        n=n,
        dropped=dropped,
        draws=count,
        seed=used,
    )


def _area(answered: Array, errors: Array) -> float:
    """Return the mean risk over the 1, 2, ..., n most confident records, ties in random order."""
    counts = np.arange(1.0, answered[-1] + 1)
    knots = np.append(0.0, answered), np.append(0.0, errors)  # inside a tie, expected errors grow evenly
    return float(np.mean(np.interp(counts, *knots) / counts))


def _most_confident_first(
    y_true: Any, y_prob: Any, pos_label: Any, missing: Missing, outcome: str | None, prediction: str | None
) -> tuple[Array, Array, Any, int]:
    """Return right or wrong, falling confidence, where ties end, and how many rows were dropped."""
    given = resolve_inputs(y_true, y_prob, outcome=outcome, prediction=prediction)
    checked = check_records(given.y_true, given.y_prob, missing=missing, kind="labels", pos_label=pos_label)
    if checked.censoring is not None:
        got = f"got {pluralize(checked.censoring.censored, 'censored record')}"
        hint = "use a horizon that all records were followed to"
        raise InvalidInputError("y_true", "must be known for every answer", got, hint)
    order = np.argsort(-checked.prediction, kind="stable")
    y, p = checked.outcome[order].astype(np.float64), checked.prediction[order]
    return y, p, np.flatnonzero(np.append(p[1:] != p[:-1], True)), checked.dropped


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AbstentionThreshold(Result):
    """Confidence above which a model may answer, with a guarantee on its risk.

    Answer where the confidence is strictly above `threshold`; None if no threshold has the guarantee.
    `coverage` is the share of records above it and `risk` their share of errors in these data; with
    probability `confidence` the true risk above the threshold is at most `target`. `more_labels` estimates
    how many more labeled records would be enough where there is none, at today's error rates; None if no
    number would.
    """

    DERIVED: ClassVar = ("sentence",)

    threshold: float | None
    coverage: float
    risk: float | None
    target: float
    confidence: float
    answered: int
    errors: int
    n: int
    dropped: int
    more_labels: int | None = None

    def __str__(self) -> str:
        sure, records = confidence_text(self.confidence), pluralize(self.n, "record")
        target = f"at most {percent(self.target)}"
        if self.threshold is None:
            more = "The error rate is too high even among the most confident: more labels would not help."
            if self.more_labels:
                labels = pluralize(self.more_labels, "more labeled record")
                more = f"About {labels} would be enough at these rates."
            return f"No threshold guarantees an error rate of {target} ({sure} confidence, {records}). {more}"
        where = f"Answer above a confidence of {self.threshold:.6g}"
        return (
            f"{where if self.answered < self.n else 'Answer everything'}: {percent(self.coverage)} of "
            f"{records}, {pluralize(self.errors, 'error')} here ({percent(self.risk or 0)}). The true error "
            f"rate is {target} with {sure} confidence, if rows are independent and errors are rarer at "
            "higher confidence."
        )


@shares_parameters(_ANSWERS)
def choose_threshold(
    y_true: Any,
    y_prob: Any = None,
    *,
    risk: float,
    confidence: float = 0.95,
    clusters: None = None,
    pos_label: Any = None,
    missing: Missing = "error",
    outcome: str | None = None,
    prediction: str | None = None,
) -> AbstentionThreshold:
    """Choose the largest coverage whose true risk is at most `risk`, with probability `confidence`.

    Sets of the most confident records are tested from small to large with exact binomial limits; ties enter
    together. The first start has log(share) / log(1 - risk) records, which can just pass without an error;
    `share` is what it gets of the allowed error 1 - confidence: all of it with few records (a start at 59 for
    0.05 and 0.95), half with many (72, from 288 on). The other half is split evenly over its doublings
    and all records. Each start walks on until a test fails and hands its share to the next one if it gets
    there (the fallback procedure of Wiens 2003). The guarantee is exact for thresholds fixed beforehand; with
    thresholds at observed predictions it is simulated, not proven, and presumes independent rows and fewer
    errors at higher confidence.

    Parameters
    ----------
    risk
        The largest error rate to accept among the answers.
    confidence
        Probability of keeping the promise.
    clusters
        Refused: with correlated rows the promise breaks twice as often as stated.

    Examples
    --------
    >>> found = choose_threshold([1] * 59 + [0], [0.9] * 59 + [0.4], risk=0.05)
    >>> found.threshold, round(found.coverage, 3), found.risk
    (0.4, 0.983, 0.0)
    >>> choose_threshold([1] * 58, [0.9] * 58, risk=0.05).threshold is None
    True
    """
    if clusters is not None:
        rule = "cannot be given: the guarantee needs independent rows"
        hint = "keep one record per cluster"
        raise InvalidInputError("clusters", rule, hint=hint)
    target, level = open_share("risk", risk), open_share("confidence", confidence)
    y, p, ends, dropped = _most_confident_first(y_true, y_prob, pos_label, missing, outcome, prediction)
    # a set is given by the next prediction, which is strictly below it; the last by 0, fixed beforehand
    below = np.append(p[ends[:-1] + 1], 0.0)
    ends, below = (ends, below) if p[-1] > 0 else (ends[:-1], below[:-1])
    answered, errors, n = ends + 1, np.cumsum(1 - y)[ends], len(y)
    best = _largest_promised(answered, errors, n, target, level)
    if best is None:
        more = _more_labels(answered, errors, n, target, level)
        return AbstentionThreshold(None, 0.0, None, target, level, 0, 0, n, dropped, more)
    k, wrong = int(answered[best]), int(errors[best])
    return AbstentionThreshold(float(below[best]), k / n, wrong / k, target, level, k, wrong, n, dropped)


def _smallest_promised(risk: float, alpha: float) -> int:
    """Return how many records without an error it takes, 59 for 0.05 and 0.05."""
    return math.ceil(math.log(alpha) / math.log(1 - risk) - 1e-9)


def _starts(n: int, risk: float, confidence: float) -> tuple[list[int], list[float]]:
    """Return the sizes of the sets that the procedure starts at, and their shares of 1 - confidence."""
    allowed = 1 - confidence
    first = _smallest_promised(risk, allowed)
    counts, shares = ([first], [allowed]) if n >= first else ([], [])
    first = _smallest_promised(risk, allowed / 2)
    more = int(math.log2(n / first)) - 1 if n >= 4 * first else 0  # starts after the first
    if more:
        # half for the first, so that more records seldom lose what fewer had
        shares = [allowed / 2, *[allowed / 2 / more] * more]
        least = _smallest_promised(risk, shares[1])  # above the first doubling at low confidence only
        counts = [first, *(max(least, first * 2**j) for j in range(1, more)), n]
    return counts, shares


def _largest_promised(answered: Any, errors: Array, n: int, risk: float, confidence: float) -> int | None:
    """Return the last set that passes, by the fallback procedure over starts that double."""
    from scipy.special import bdtr

    counts, shares = _starts(n, risk, confidence)
    if not counts or not len(answered) or answered[-1] < counts[0]:
        return None
    places = np.searchsorted(answered, np.minimum(counts, answered[-1]))
    segments = np.append(places, len(answered))
    best, alpha = None, 0.0
    for share, (start, stop) in zip(shares, pairwise(segments.tolist()), strict=True):
        alpha += share
        if start == stop:  # a tie that reaches the next start: tested there
            continue
        limits = bdtr(errors[start:stop], answered[start:stop], risk)
        failed = np.flatnonzero(limits > alpha * (1 + 1e-12))
        passed = int(failed[0]) if len(failed) else stop - start
        best = start + passed - 1 if passed else best
        alpha = alpha if passed == stop - start else 0.0
    return best


def _more_labels(answered: Any, errors: Array, n: int, risk: float, confidence: float) -> int | None:
    """Estimate how many more labels let some set pass at its error rate of today."""
    first = _smallest_promised(risk, 1 - confidence)
    if n < first and len(answered) and answered[-1] == n and errors[-1] == 0:
        return first - n
    shown = (errors < risk * answered) & (answered >= min(first, n) / 4)
    for factor in 1.1 ** np.arange(1, 100):
        grown = np.floor(answered[shown] * factor).astype(int)
        expected = np.ceil(errors[shown] * factor)
        if len(grown) and _largest_promised(grown, expected, int(n * factor), risk, confidence) is not None:
            return math.ceil(n * (float(factor) - 1))
    return None
