"""distinguish(): do any covariates separate real outcomes from outcomes drawn as predicted?

Outcome indistinguishability: Dwork et al. 2021; survey "lens of indistinguishability", section 1.4.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from calibrant.columns import Column, EncodedColumns, code_columns
from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.fits.trees import TreeParams, grown_trees
from calibrant.formatting import (
    at_floor,
    confidence_text,
    dropped_note,
    pluralize,
    pvalue_phrase,
    pvalue_text,
)
from calibrant.groups.audit_result import GroupCurve
from calibrant.groups.family import TestFamily, null_sums
from calibrant.groups.rules import Condition, Rule, among, between, conjunction
from calibrant.groups.statistics import ROWS, Variant
from calibrant.groups.subpopulations import Lists, everyone
from calibrant.inference.pvalues import LEVEL
from calibrant.inputs import open_share
from calibrant.kernels.groups import Index
from calibrant.metrics.calling import shares_parameters
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Records, check_records
from calibrant.results import Array, Result

MAX_RULES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class HalfResult:
    """The advantage on one half of a model that was fitted to the other."""

    advantage: float
    lower: float
    upper: float
    pvalue: float
    n: int


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """A group in words in which the distinguisher's opinion differs from elsewhere."""

    rule: str
    size: int
    share: float
    gap: float  # mean residual; no test, because groups are chosen with the outcomes in view
    carried: float  # part of the advantage that comes from its records

    def __str__(self) -> str:
        side = "too low" if self.gap > 0 else "too high"
        return (
            f"{self.rule}: {pluralize(self.size, 'row')}, predictions {side} by "
            f"{abs(self.gap):.3g} on average"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher(Result):
    """What separates real outcomes from draws with the predicted probabilities.

    `advantage` is E[w (y - v)] of the learned w, the mean over two halves each judged by a model of the
    other, with an interval. `pvalue` is twice the smaller of the two exact p-values. `importance` is each
    column's share of the advantage that is lost when the column is shuffled, `rules` are groups in words
    that describe w, those that carry most first, and `curves` the cumulative curves of the worst of them.
    """

    HIDDEN: ClassVar[tuple[str, ...]] = ("curves",)
    DERIVED: ClassVar[tuple[str, ...]] = ("pvalue_is_bound", "approximate")
    approximate: ClassVar[tuple[str, ...]] = ("lower", "upper")  # the p-value is exact

    advantage: float
    lower: float
    upper: float
    pvalue: float
    halves: tuple[HalfResult, ...]
    importance: Mapping[str, float]
    rules: tuple[RuleSummary, ...]
    curves: tuple[GroupCurve, ...]
    n: int
    dropped: int
    draws: int
    confidence: float
    seed: int

    @property
    def pvalue_is_bound(self) -> bool:
        """Whether no draw came so far in the deciding half, so that the p-value is this or less."""
        return at_floor(self.pvalue / 2.0, self.draws)

    def __repr__(self) -> str:
        p = pvalue_phrase(self.pvalue, self.draws, bound=self.pvalue_is_bound)
        return f"Distinguisher(advantage = {self.advantage:.4g}, {p}, n = {self.n:,})"

    def __str__(self) -> str:
        lines = [
            f"Learned auditor of {pluralize(self.n, 'row')}{dropped_note(self.dropped)}",
            f"  advantage  {self.advantage:.4g}   ({confidence_text(self.confidence)} interval "
            f"{self.lower:.4g} to {self.upper:.4g}, approximate)",
            f"  p-value    {pvalue_text(self.pvalue, floor=self.pvalue_is_bound)}   (both halves, "
            f"{pluralize(self.draws, 'draw')} each, seed {self.seed})",
            f"  verdict    {self.verdict}",
        ]
        carried = [f"{name} {share:.0%}" for name, share in self.importance.items() if share >= 0.005]
        if carried:
            lines.append(f"  carried by {', '.join(carried[:MAX_RULES_SHOWN])}")
        if self.rules and self.pvalue > LEVEL:
            lines.append("  what it learned, none of it beyond chance:")
        return "\n".join(lines + [f"    {rule}" for rule in self.rules[:MAX_RULES_SHOWN]])

    @property
    def verdict(self) -> str:
        """What follows, in words; the null is more than calibration, because it also concerns covariates."""
        if self.pvalue <= LEVEL:
            return "these outcomes were not drawn with the predicted probabilities, given the covariates"
        return "no evidence that the covariates know more than the predictions"


Codes = npt.NDArray[np.int64]

MAX_DEPTH = 3  # conditions of a rule
CUTS_AHEAD = 7  # cuts of a column that are tried, next to the best one, for the sake of what follows


def shallow_tree(
    columns: Sequence[Column], usable: Sequence[int], target: Array, weight: Array, depth: int, smallest: int
) -> dict[Rule, Index]:
    """Return the leaves of a tree that splits by columns where squared deviations of the target fall most."""

    def splits(members: Index, more: bool) -> Iterator[tuple[float, int, Codes]]:
        """Yield the best cut of every column, and a few more: the gain, and the codes on its right."""
        y, w = target[members], weight[members]
        for j in usable:
            codes = columns[j].codes[members]
            size, total, moment = np.bincount(codes), np.bincount(codes, w), np.bincount(codes, w * y)
            present = np.flatnonzero(size)
            if columns[j].nominal:  # in the order of their means, the best cut is the best of all
                present = present[np.argsort(moment[present] / total[present], kind="stable")]
            count, left, sums = (np.cumsum(one[present]) for one in (size, total, moment))
            allowed = np.minimum(count, count[-1] - count)[:-1] >= smallest
            if not allowed.any():
                continue
            right, rest = left[-1] - left[:-1], sums[-1] - sums[:-1]
            gain = sums[:-1] ** 2 / left[:-1] + rest**2 / right - sums[-1] ** 2 / left[-1]
            cuts = {int(np.argmax(np.where(allowed, gain, -np.inf)))}
            if more:
                even = np.linspace(0, count[-1] - 1, CUTS_AHEAD + 2).astype(np.int64)[1:-1]
                cuts |= set(np.searchsorted(count, even, side="right").tolist())
            for cut in sorted(cuts):
                if cut < len(allowed) and allowed[cut]:
                    yield float(gain[cut]), j, present[cut + 1 :]

    def grow(members: Index, known: dict[int, Codes], depth: int) -> Iterator[tuple[Rule, Index]]:
        """Yield the leaves below these members, whose columns are restricted to the known codes."""
        y, w = target[members], weight[members]
        best, most = None, 1e-9 * float(w @ (y - (w @ y) / w.sum()) ** 2)
        for gain, j, right in splits(members, more=depth > 1) if depth else ():
            # look one split ahead: the first split of an interaction gains nothing by itself
            if depth > 1:
                inside = np.isin(columns[j].codes[members], right)
                for side in (members[~inside], members[inside]):
                    gain += max((ahead[0] for ahead in splits(side, more=False)), default=0.0)
            if gain > most:
                best, most = (j, right), gain
        if best is None:
            yield conjunction(_restriction(columns[j], known[j]) for j in sorted(known)), members
            return
        j, right = best
        before = known.get(j, np.arange(len(columns[j].labels)))
        # the codes of an ordered column meet at the first on the right
        inside = np.isin(before, right) if columns[j].nominal else before >= right.min()
        for codes in (before[~inside], before[inside]):
            side = members[np.isin(columns[j].codes[members], codes)]
            yield from grow(side, {**known, j: codes}, depth - 1)

    return dict(grow(np.arange(len(target), dtype=np.int32), {}, depth))


def _restriction(column: Column, codes: Codes) -> Condition | None:
    if column.nominal:
        return among(column, codes.tolist())
    return between(column, int(codes.min()), int(codes.max()) + 1)


MIN_RECORDS = 20  # records
ROUNDING = 1e-10  # a simulated advantage this close below the observed one counts as equal to it
TREES = TreeParams(trees=100, learning_rate=0.05, leaves=8, smallest_leaf=20, ridge=10.0, scattered=True)
MAX_RULE_COLUMNS = 4  # columns that the rules may speak of


@shares_parameters(ROWS)
def distinguish(
    y_true: Any,
    y_prob: Any,
    covariates: Any,
    *,
    model: Any = None,
    sample_weight: Any = None,
    draws: int = DRAWS,
    confidence: float = 0.95,
    nominal: Sequence[str] = (),
    missing: Literal["error", "drop"] = "error",
    seed: int | None = 0,
) -> Distinguisher:
    """Test whether anything in the covariates tells outcomes from draws with the predicted probabilities.

    A model of y - v given (x, v) is fitted to one half of the records; its prediction, clipped to [-1, 1],
    is the distinguisher w. On the other half its advantage is E[w (y - v)]. Given the fit, the outcomes
    there are independent draws under the null, so the p-value by simulation is exact whatever the model and
    at any n. The halves then change places; twice the smaller p-value is valid for both, and a little
    conservative.

    The null is y ~ Bernoulli(v) given x, which is more than calibration: v = 1/2 for everyone is calibrated
    if half of the outcomes are 1, and is rightly rejected where x says which half.

    Parameters
    ----------
    covariates, nominal
        Columns of any frame, a dictionary of arrays, or a two-dimensional array; numbers named in `nominal`
        are categories.
    model
        Anything with fit(X, target) and predict(X), such as a scikit-learn regressor; X has one column per
        covariate and the prediction as its last, categories as codes and NaN where something is missing.
        Boosted trees of LightGBM when absent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.choice([-1, 1], (2, 2000))
    >>> y = rng.random(2000) < 0.5 + 0.2 * a * b
    >>> found = distinguish(y, np.full(2000, 0.5), {"a": a, "b": b}, seed=1)
    >>> found.pvalue <= 0.01, found.lower > 0
    (True, True)
    """
    draws, seed = checked_draws(draws), recorded_seed(seed)
    open_share("confidence", confidence)
    if model is not None and not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InvalidInputError("model", "must have fit and predict", f"got {model!r}")
    checked = check_records(y_true, y_prob, sample_weight, missing, kind="labels")
    columns = code_columns(covariates, checked.length, "covariates", nominal, checked.labels)
    records = Records.of(checked, [column.codes for column in columns])
    if len(records) < MIN_RECORDS:
        got = f"got {len(records):,}"
        raise TooFewRecordsError("a distinguisher", f"needs at least {MIN_RECORDS} rows", got)
    columns = [column.take(records.rows) for column in columns]
    encoded = EncodedColumns.of(columns)
    rows = np.column_stack((encoded.rows, records.prediction))
    half_seed, *seeds = np.random.SeedSequence(seed).spawn(3)
    side = np.random.default_rng(half_seed).permutation(len(records)) % 2 == 0
    halves, drops, opinion = [], np.zeros(rows.shape[1]), np.empty(len(records))
    for inside, one in zip((side, ~side), seeds, strict=True):
        fitted, judged = (np.flatnonzero(some).astype(np.int32) for some in (~inside, inside))
        predict = _fit(model, rows[fitted], records.take(fitted), encoded.categorical)
        half, opinion[judged], lost = _judge(
            predict, rows[judged], records.take(judged), draws, confidence, np.random.default_rng(one)
        )
        halves.append(half)
        drops += lost / 2
    taken = {column.name for column in columns}
    name = next(one for one in ("prediction", "y_prob", "predicted probability") if one not in taken)
    columns += code_columns({name: records.prediction}, len(records), "y_prob")
    drops = np.maximum(drops, 0.0)
    shares = drops / drops.sum() if drops.sum() > 0 else drops
    order = np.argsort(-shares, kind="stable").tolist()
    smallest = max(10, len(records) // 100)
    leaves = shallow_tree(columns, order[:MAX_RULE_COLUMNS], opinion, records.weight, MAX_DEPTH, smallest)
    leaves.pop(Rule(), None)  # a tree that is not split has nothing to say
    family = TestFamily(records, Variant().terms_of(records)[0], None, 1)
    family.take(everyone(len(records)), 1)
    family.take(Lists.of(list(leaves), list(leaves.values())), len(leaves))
    advantage = sum(half.advantage for half in halves) / 2.0
    width = math.hypot(*(half.upper - half.advantage for half in halves)) / 2.0
    return Distinguisher(
        advantage=advantage,
        lower=advantage - width,
        upper=advantage + width,
        pvalue=min(1.0, 2.0 * min(half.pvalue for half in halves)),
        halves=tuple(halves),
        importance={columns[j].name: float(shares[j]) for j in order},
        rules=_summaries(records, leaves, opinion),
        curves=family.curves(),
        n=len(records),
        dropped=records.dropped,
        draws=draws,
        confidence=confidence,
        seed=seed,
    )


def _fit(model: Any, rows: Array, records: Records, categorical: tuple[int, ...]) -> Callable[[Array], Array]:
    residual = records.outcome - records.prediction
    if model is None:
        growth = replace(TREES, categorical=categorical)
        return grown_trees(rows, residual, np.ascontiguousarray(records.weight), growth).predict
    model = copy.deepcopy(model)
    model.fit(rows, residual, **({"sample_weight": records.weight} if records.weighted else {}))

    def predict(given: Array) -> Array:
        """Refuse what is not one finite number per row: a comparison with NaN would count as evidence."""
        opinion = np.asarray(model.predict(given), dtype=np.float64)
        if opinion.size != len(given) or not np.all(np.isfinite(opinion)):
            one_each = opinion.size == len(given)
            got = "got numbers that are not finite" if one_each else f"got shape {opinion.shape}"
            raise InvalidInputError("model", "must predict one finite number per row", got)
        return opinion.reshape(len(given))

    return predict


def _judge(
    predict: Callable[[Array], Array],
    rows: Array,
    records: Records,
    draws: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[HalfResult, Array, Array]:
    from scipy.special import ndtri

    opinion = np.clip(predict(rows), -1.0, 1.0)
    share, residual = records.weight / records.weight.sum(), records.outcome - records.prediction
    gain = share * residual
    advantage = float(gain @ opinion)
    simulated = null_sums(records.prediction, (share * opinion)[None, :], draws, rng)[0]
    least = advantage - ROUNDING * float(np.abs(share * opinion).sum())
    pvalue = (1.0 + np.count_nonzero(simulated >= least)) / (draws + 1.0)
    variance = float(np.sum((share * (opinion * residual - advantage)) ** 2))
    width = float(ndtri(0.5 + confidence / 2.0)) * variance**0.5
    lost = np.zeros(rows.shape[1])
    for j in range(rows.shape[1]):
        shuffled = rows.copy()
        shuffled[:, j] = rng.permutation(rows[:, j])
        lost[j] = advantage - float(gain @ np.clip(predict(shuffled), -1.0, 1.0))
    half = HalfResult(advantage, advantage - width, advantage + width, float(pvalue), len(rows))
    return half, opinion, lost


def _summaries(records: Records, leaves: dict[Rule, Index], opinion: Array) -> tuple[RuleSummary, ...]:
    share = records.weight / records.weight.sum()
    gain = share * (records.outcome - records.prediction)
    collected = []
    for rule, inside in leaves.items():
        weight = float(share[inside].sum())
        gap, carried = float(gain[inside].sum()) / weight, float(gain[inside] @ opinion[inside])
        collected.append(RuleSummary(rule, len(inside), weight, gap, carried))
    return tuple(sorted(collected, key=lambda one: (-one.carried, one.rule)))
