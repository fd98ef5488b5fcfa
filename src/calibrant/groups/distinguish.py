"""distinguish(): can anything tell the real outcomes from outcomes drawn with the predicted probabilities?

Outcome indistinguishability (Dwork et al. 2021; survey "lens of indistinguishability", section 1.4): a model
learns the residuals from one half of the records and is put to the test on the other half.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.fits.forest import Forest
from calibrant.fits.growth import Growth
from calibrant.fits.trees import boosted_means
from calibrant.groups.batches import Lists
from calibrant.groups.coding import code_columns
from calibrant.groups.column_codes import Column
from calibrant.groups.distinguisher import Distinguisher, Half, Telltale
from calibrant.groups.family import Family
from calibrant.groups.features import Features
from calibrant.groups.group import GroupCurve
from calibrant.groups.null_sums import null_sums
from calibrant.groups.shallow_tree import Leaf, shallow_tree
from calibrant.groups.subpopulations import everyone
from calibrant.groups.variants import Variant
from calibrant.options import open_share
from calibrant.records import Records, check_records
from calibrant.results import Array
from calibrant.seeds import checked_draws, recorded_seed

FEWEST = 20  # records
ROUNDING = 1e-10  # a simulated advantage this close below the observed one counts as equal to it
GROWTH = Growth(trees=100, learning_rate=0.05, leaves=8, smallest_leaf=20, ridge=10.0, scattered=True)
CARRIERS = 4  # columns that the rules may speak of
TELLTALES = {"depth": 3, "leaves": 8}

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
    seed: int | None = None,
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
        Boosted trees when absent (LightGBM if installed, else scikit-learn).
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
        raise InvalidInputError(sentence("model", "must have fit and predict", f"got {model!r}"))
    checked = check_records(y_true, y_prob, sample_weight, missing, kind="labels")
    columns = code_columns(covariates, checked.length, "covariates", nominal, checked.labels)
    records = Records.of(checked, [column.codes for column in columns])
    if len(records) < FEWEST:
        got = f"got {len(records):,}"
        raise TooFewRecordsError(sentence("a distinguisher", f"needs at least {FEWEST} rows", got))
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

    half: Half
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
        half = Half(advantage, advantage - width, advantage + width, float(pvalue), len(places))
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
        weighted = records.weighted
        model.fit(rows, residual, **({"sample_weight": records.weight} if weighted else {}))
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
        raise InvalidInputError(sentence("model", "must predict one finite number per row", got))
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
    names = [column.name for column in work.columns]
    order = np.argsort(-shares, kind="stable")
    leaves = _leaves(work, opinion, [int(j) for j in order[:CARRIERS]])
    return Distinguisher(
        advantage=advantage,
        lower=advantage - width,
        upper=advantage + width,
        pvalue=min(1.0, 2.0 * min(one.half.pvalue for one in judged)),
        halves=tuple(one.half for one in judged),
        importance={names[j]: float(shares[j]) for j in order},
        rules=_telltales(work, leaves, opinion),
        curves=_curves(work, leaves),
        n=len(records),
        dropped=records.dropped,
        draws=draws,
        confidence=confidence,
        seed=seed,
    )


def _leaves(work: _Work, opinion: Array, carriers: list[int]) -> list[Leaf]:
    """Return a few groups in words, by the columns that carry most, in which the opinion differs most."""
    smallest = max(10, len(opinion) // 100)
    weight = work.records.weight
    grown = shallow_tree(work.columns, carriers, opinion, weight, smallest=smallest, **TELLTALES)
    return [leaf for leaf in grown if leaf.codes]


def _telltales(work: _Work, leaves: list[Leaf], opinion: Array) -> tuple[Telltale, ...]:
    records = work.records
    share = records.weight / records.weight.sum()
    residual = records.outcome - records.prediction
    collected = []
    for leaf in leaves:
        inside = leaf.members
        weight = float(share[inside].sum())
        gap = float(share[inside] @ residual[inside]) / weight
        carried = float((share * opinion * residual)[inside].sum())
        collected.append(Telltale(leaf.rule(work.columns), len(inside), weight, gap, carried))
    return tuple(sorted(collected, key=lambda one: (-one.carried, one.rule)))


def _curves(work: _Work, leaves: list[Leaf]) -> tuple[GroupCurve, ...]:
    """Return the cumulative curves of these groups, for a chart."""
    records = work.records
    terms = Variant().terms(records.prediction, records.outcome, records.weight)
    family = Family(records, terms, None, 1)
    family.take(everyone(len(records)), 1)
    family.take(Lists.of([leaf.rule(work.columns) for leaf in leaves], [leaf.members for leaf in leaves]), 99)
    return family.curves()
