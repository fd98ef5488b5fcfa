"""distinguish(): can anything tell the real outcomes from outcomes drawn with the predicted probabilities?

Outcome indistinguishability (Dwork et al. 2021; survey "lens of indistinguishability", section 1.4): a model
learns the residuals from one half of the records and is tested on the other half. A small regression tree
puts what it learned into words.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.columns import Column, Features, code_columns
from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.fits.forest import Forest, TreeParams
from calibrant.fits.trees import boosted_means
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
from calibrant.groups.rules import Rule, among, between, conjunction
from calibrant.groups.statistics import Variant
from calibrant.groups.subpopulations import Lists, everyone
from calibrant.inference.pvalues import LEVEL
from calibrant.inputs import open_share
from calibrant.kernels.groups import Index
from calibrant.parallel import checked_draws, recorded_seed
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
    """A group in words in which the distinguisher's opinion differs from elsewhere.

    `gap` is the mean residual, outcome minus prediction, and `carried` the part of the advantage that comes
    from its records. Groups are chosen with the outcomes in view: a gap here is a description, not a test.
    """

    rule: str
    size: int
    share: float
    gap: float
    carried: float

    def __str__(self) -> str:
        side = "too low" if self.gap > 0 else "too high"
        return (
            f"{self.rule}: {pluralize(self.size, 'row')}, predictions {side} by "
            f"{abs(self.gap):.3g} on average"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher(Result):
    """What tells real outcomes from draws with the predicted probabilities.

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
        """What follows, in words: the null is more than calibration, since it also speaks of covariates."""
        if self.pvalue <= LEVEL:
            return "these outcomes were not drawn with the predicted probabilities, given the covariates"
        return "no evidence that the covariates know more than the predictions"


Codes = npt.NDArray[np.int64]

CUTS_PER_COLUMN = 7  # cuts of a column that are tried for the sake of what follows


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A group: its members, and for each column that is restricted the codes that belong to it."""

    members: Index
    codes: Mapping[int, Codes] = field(default_factory=dict)
    depth: int = 0

    def rule(self, columns: Sequence[Column]) -> Rule:
        """Say in words who is meant."""
        return conjunction(
            among(columns[j], codes.tolist())
            if columns[j].nominal
            else between(columns[j], int(codes.min()), int(codes.max()) + 1)
            for j, codes in sorted(self.codes.items())
        )


class _Split(NamedTuple):
    gain: float
    column: int
    right: Codes  # codes of the records that go there


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """What the splits look at: the columns that may be used, the target and the weights."""

    columns: Sequence[Column]
    usable: Sequence[int]
    target: Array
    weight: Array
    smallest: int
    depth: int

    def best(self, leaf: Leaf) -> _Split | None:
        """Return the split that helps most, with the best splits of its two sides counted in.

        Without that look ahead an interaction of two columns, whose first split gains nothing, is missed.
        """
        left_over = self.depth - leaf.depth
        if left_over == 0:
            return None
        y, w = self.target[leaf.members], self.weight[leaf.members]
        floor = 1e-9 * float(w @ (y - (w @ y) / w.sum()) ** 2)
        splits = [split for j in self.usable for split in self._candidates(j, leaf.members)]
        if left_over > 1:
            splits = [split._replace(gain=split.gain + self._ahead(split, leaf.members)) for split in splits]
        best = max(splits, key=lambda split: split.gain, default=None)
        return best if best is not None and best.gain > floor else None

    def _candidates(self, j: int, members: Index) -> Iterator[_Split]:
        """Yield the best split of a column, and a few others in case they prepare better ones."""
        best = self._cut(j, members)
        if best is None:
            return
        yield best
        codes = self.columns[j].codes[members]
        if self.columns[j].nominal:
            count = np.bincount(codes)
            rights = [codes != c for c in np.argsort(-count, kind="stable")[:CUTS_PER_COLUMN] if count[c]]
        else:
            places = np.linspace(0, len(codes) - 1, CUTS_PER_COLUMN + 2).astype(np.int64)[1:-1]
            rights = [codes >= cut for cut in np.unique(np.sort(codes)[places])]
        y, w = self.target[members], self.weight[members]
        for right in rights:
            if self.smallest <= np.count_nonzero(right) <= len(codes) - self.smallest:
                parts = [(w[side], y[side]) for side in (~right, right)]
                gain = float(sum((a @ b) ** 2 / a.sum() for a, b in parts) - (w @ y) ** 2 / w.sum())
                yield _Split(gain, j, np.unique(codes[right]).astype(np.int64))

    def _ahead(self, split: _Split, members: Index) -> float:
        """Return what the best further split of both sides gains."""
        right = np.isin(self.columns[split.column].codes[members], split.right)
        return sum(
            max((cut.gain for j in self.usable if (cut := self._cut(j, side)) is not None), default=0.0)
            for side in (members[~right], members[right])
        )

    def _cut(self, j: int, members: Index) -> _Split | None:
        """Return the best cut of one column: categories are in the order of their means, which is optimal."""
        codes, y, w = self.columns[j].codes[members], self.target[members], self.weight[members]
        size = np.bincount(codes)
        present = np.flatnonzero(size)
        total, moment = np.bincount(codes, w)[present], np.bincount(codes, w * y)[present]
        if self.columns[j].nominal:
            order = np.argsort(moment / total, kind="stable")
            present, total, moment = present[order], total[order], moment[order]
        count = np.cumsum(size[present])
        left, sum_left = np.cumsum(total)[:-1], np.cumsum(moment)[:-1]
        right, sum_right = total.sum() - left, moment.sum() - sum_left
        allowed = (count[:-1] >= self.smallest) & (count[-1] - count[:-1] >= self.smallest)
        if not allowed.any():
            return None
        whole = moment.sum() ** 2 / total.sum()
        gain = np.where(allowed, sum_left**2 / left + sum_right**2 / right - whole, -np.inf)
        at = int(np.argmax(gain))
        return _Split(float(gain[at]), j, present[at + 1 :])

    def divide(self, leaf: Leaf, split: _Split) -> list[Leaf]:
        """Return the two sides; the codes of an ordered column meet half-way, at the first on the right."""
        column = self.columns[split.column]
        before = leaf.codes.get(split.column, np.arange(len(column.labels)))
        right = np.isin(before, split.right) if column.nominal else before >= split.right.min()
        sides = []
        for codes in (before[~right], before[right]):
            members = leaf.members[np.isin(column.codes[leaf.members], codes)]
            sides.append(Leaf(members, {**leaf.codes, split.column: codes}, leaf.depth + 1))
        return sides


def shallow_tree(
    columns: Sequence[Column],
    usable: Sequence[int],
    target: Array,
    weight: Array,
    *,
    depth: int,
    leaves: int,
    smallest: int,
) -> list[Leaf]:
    """Split everyone by one usable column at a time, where squared deviations of the target fall most."""
    tree = _Tree(columns, usable, target, weight, smallest, depth)
    grown = [Leaf(np.arange(len(target), dtype=np.int32))]
    splits = [tree.best(grown[0])]
    while len(grown) < leaves:
        k = int(np.argmax([0.0 if split is None else split.gain for split in splits]))
        split = splits[k]
        if split is None:
            break
        grown[k : k + 1] = pair = tree.divide(grown[k], split)
        splits[k : k + 1] = [tree.best(leaf) for leaf in pair]
    return grown


MIN_RECORDS = 20  # records
ROUNDING = 1e-10  # a simulated advantage this close below the observed one counts as equal to it
GROWTH = TreeParams(trees=100, learning_rate=0.05, leaves=8, smallest_leaf=20, ridge=10.0, scattered=True)
MAX_RULE_COLUMNS = 4  # columns that the rules may speak of

Places = npt.NDArray[np.int64]


def distinguish(
    y_true: Any,
    y_prob: Any,
    covariates: Any,
    *,
    model: Any = None,
    sample_weight: Any = None,
    draws: int = 999,
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
    y_true, y_prob, sample_weight, missing
        Outcomes (0 or 1), predictions and weights; rows with a gap are an "error", or "drop" and count them.
    covariates, nominal
        Columns of any frame, a dictionary of arrays, or a two-dimensional array; numbers named in `nominal`
        are categories.
    model
        Anything with fit(X, target) and predict(X), such as a scikit-learn regressor; X has one column per
        covariate and the prediction as its last, categories as codes and NaN where something is missing.
        Boosted trees of LightGBM when absent.
    draws, confidence, seed
        Simulated data sets for each p-value, level of the interval, and the seed that repeats everything.

    Returns
    -------
    Distinguisher

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
    work = _Work.of(records, columns, model, confidence, draws)
    half_seed, *seeds = np.random.SeedSequence(seed).spawn(3)
    side = np.random.default_rng(half_seed).permutation(len(records)) % 2 == 0
    pairs = [(~side, side), (side, ~side)]
    judged = [
        work.judge(np.flatnonzero(fit), np.flatnonzero(rest), np.random.default_rng(one))
        for (fit, rest), one in zip(pairs, seeds, strict=True)
    ]
    return _result(work, judged, draws, confidence, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """One half: what the model of the other half says of its records, and what each column carried."""

    half: HalfResult
    places: Places
    opinion: Array
    variance: float
    drops: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    records: Records
    columns: list[Column]  # covariates and, last, the prediction
    rows: Array
    categorical: tuple[int, ...]
    model: Any
    quantile: float
    draws: int

    @classmethod
    def of(cls, records: Records, columns: list[Column], model: Any, confidence: float, draws: int) -> _Work:
        from scipy.special import ndtri

        taken = {column.name for column in columns}
        name = next(one for one in ("prediction", "y_prob", "predicted probability") if one not in taken)
        (score,) = code_columns({name: records.prediction}, len(records), "y_prob")
        features = Features.of(columns)
        rows = np.column_stack((features.encode(columns).rows, records.prediction))
        quantile = float(ndtri(0.5 + confidence / 2.0))
        return cls(records, [*columns, score], rows, features.categorical, model, quantile, draws)

    def judge(self, fitted: Places, places: Places, rng: np.random.Generator) -> _Judged:
        """Fit the model to some records, and let it judge others."""
        predict = self._fit(fitted)
        records, rows = self.records.take(places.astype(np.int32)), self.rows[places]
        opinion = np.clip(predict(rows), -1.0, 1.0)
        share = records.weight / records.weight.sum()
        residual = records.outcome - records.prediction
        gain = share * residual
        advantage = float(gain @ opinion)
        simulated = null_sums(records.prediction, (share * opinion)[None, :], self.draws, rng)[0]
        least = advantage - ROUNDING * float(np.abs(share * opinion).sum())
        pvalue = (1.0 + np.count_nonzero(simulated >= least)) / (self.draws + 1.0)
        variance = float(np.sum((share * (opinion * residual - advantage)) ** 2))
        width = self.quantile * variance**0.5
        half = HalfResult(advantage, advantage - width, advantage + width, float(pvalue), len(places))
        return _Judged(half, places, opinion, variance, self._drops(predict, rows, gain, advantage, rng))

    def _fit(self, fitted: Places) -> Any:
        """Return a function of rows that predicts the residual."""
        records, rows = self.records.take(fitted.astype(np.int32)), self.rows[fitted]
        residual = records.outcome - records.prediction
        if self.model is None:
            growth = replace(GROWTH, categorical=self.categorical)
            forest: Forest = boosted_means(rows, residual, np.ascontiguousarray(records.weight), growth)
            return forest.predict
        model = copy.deepcopy(self.model)
        model.fit(rows, residual, **({"sample_weight": records.weight} if records.weighted else {}))
        return lambda given: _checked_opinion(model.predict(given), len(given))

    def _drops(
        self, predict: Any, rows: Array, gain: Array, advantage: float, rng: np.random.Generator
    ) -> Array:
        """Return how much advantage is lost when one column is shuffled among the records."""
        drops = np.zeros(rows.shape[1])
        for j in range(rows.shape[1]):
            shuffled = rows.copy()
            shuffled[:, j] = rng.permutation(rows[:, j])
            drops[j] = advantage - float(gain @ np.clip(predict(shuffled), -1.0, 1.0))
        return drops


def _checked_opinion(predicted: Any, rows: int) -> Array:
    """Refuse what is not one finite number per row: a comparison with NaN would count as evidence."""
    opinion = np.asarray(predicted, dtype=np.float64)
    if opinion.size != rows or not np.all(np.isfinite(opinion)):
        got = f"got shape {opinion.shape}" if opinion.size != rows else "got numbers that are not finite"
        raise InvalidInputError("model", "must predict one finite number per row", got)
    return opinion.reshape(rows)


def _result(work: _Work, judged: list[_Judged], draws: int, confidence: float, seed: int) -> Distinguisher:
    records = work.records
    opinion = np.empty(len(records))
    for one in judged:
        opinion[one.places] = one.opinion
    advantage = sum(one.half.advantage for one in judged) / 2.0
    width = work.quantile * sum(one.variance for one in judged) ** 0.5 / 2.0
    drops = np.maximum(np.mean([one.drops for one in judged], axis=0), 0.0)
    shares = drops / drops.sum() if drops.sum() > 0 else drops
    order = np.argsort(-shares, kind="stable")
    smallest, carriers = max(10, len(records) // 100), [int(j) for j in order[:MAX_RULE_COLUMNS]]
    grown = shallow_tree(
        work.columns, carriers, opinion, records.weight, depth=3, leaves=8, smallest=smallest
    )
    leaves = {leaf.rule(work.columns): leaf.members for leaf in grown if leaf.codes}
    return Distinguisher(
        advantage=advantage,
        lower=advantage - width,
        upper=advantage + width,
        pvalue=min(1.0, 2.0 * min(one.half.pvalue for one in judged)),
        halves=tuple(one.half for one in judged),
        importance={work.columns[j].name: float(shares[j]) for j in order},
        rules=_summaries(records, leaves, opinion),
        curves=_curves(records, leaves),
        n=len(records),
        dropped=records.dropped,
        draws=draws,
        confidence=confidence,
        seed=seed,
    )


def _summaries(records: Records, leaves: dict[Rule, Index], opinion: Array) -> tuple[RuleSummary, ...]:
    share = records.weight / records.weight.sum()
    gain = share * (records.outcome - records.prediction)
    collected = []
    for rule, inside in leaves.items():
        weight = float(share[inside].sum())
        gap, carried = float(gain[inside].sum()) / weight, float(gain[inside] @ opinion[inside])
        collected.append(RuleSummary(rule, len(inside), weight, gap, carried))
    return tuple(sorted(collected, key=lambda one: (-one.carried, one.rule)))


def _curves(records: Records, leaves: dict[Rule, Index]) -> tuple[GroupCurve, ...]:
    family = TestFamily(records, Variant().terms_of(records)[0], None, 1)
    family.take(everyone(len(records)), 1)
    family.take(Lists.of(list(leaves), list(leaves.values())), len(leaves))
    return family.curves()
