"""weight_family(): the largest E[w(v, x) (y - v)] over functions of your own, and whether it is chance."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.errors import InvalidInputError, reject_rows
from calibrant.formatting import dropped_note, pluralize, pvalue_phrase
from calibrant.groups.family import null_sums
from calibrant.groups.statistics import ROWS
from calibrant.inference.pvalues import adjusted_pvalues
from calibrant.inputs import check_aligned
from calibrant.metrics.calling import shares_parameters
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Records, check_records
from calibrant.results import Array, Result

WeightFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Weighting:
    """One function of a family: E[w (y - v)] with its sign, and its p-value adjusted for the family."""

    name: str
    value: float
    pvalue: float


@dataclass(frozen=True, slots=True, eq=False)
class WeightFamily(Result):
    """CE_W, the largest |E[w (y - v)]| over a family of functions with values in [-1, 1].

    `argmax` is the name of the function that attains `value`. `pvalue` is the chance of so large a value,
    over the whole family, if every outcome were 1 with its predicted probability. `members` has every
    function, largest first, with step-down p-values: the chance to accuse any function wrongly is at most
    the level.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)
    approximate: ClassVar[tuple[str, ...]] = ()  # the null is simulated exactly

    value: float
    argmax: str
    pvalue: float
    members: tuple[Weighting, ...]
    n: int
    dropped: int
    draws: int
    seed: int

    def __repr__(self) -> str:
        return (
            f"WeightFamily({self.value:.6g} by {self.argmax!r}, {pvalue_phrase(self.pvalue, self.draws)}, "
            f"{len(self.members):,} functions, n = {self.n:,})"
        )

    def __str__(self) -> str:
        head = (
            f"{len(self.members):,} weight functions on "
            f"{pluralize(self.n, 'row')}{dropped_note(self.dropped)} "
            f"({pluralize(self.draws, 'draw')}, seed {self.seed})"
        )
        rows = [
            f"  {one.value:+.6f}  {pvalue_phrase(one.pvalue, self.draws)}  {one.name}" for one in self.members
        ]
        return "\n".join([head, *rows])


@shares_parameters(ROWS)
def weight_family(
    y_true: Any,
    y_prob: Any,
    functions: Mapping[str, WeightFunction],
    *,
    covariates: Any = None,
    sample_weight: Any = None,
    draws: int = DRAWS,
    seed: int | None = 0,
    missing: Literal["error", "drop"] = "error",
) -> WeightFamily:
    """Measure the largest |E[w(v, x) (y - v)]| over a finite family of functions, and test it.

    Calibration means 0 for every function of v; no information left in x means 0 for every function of both
    (Definition 3.1 and Lemma 3.3 of the survey "lens of indistinguishability").

    Parameters
    ----------
    functions
        Names and functions. Each is called once: with the array of all predictions, or, where it takes two
        arguments, with that array and `covariates` as they were given. It returns one number per row, or one
        number for all, in [-1, 1].
    covariates
        Whatever the functions want to read: a frame, a dictionary of arrays, an array.

    Examples
    --------
    >>> y, p = [0, 0, 1, 1, 1, 1], [0.1, 0.3, 0.4, 0.5, 0.6, 0.7]
    >>> family = {"mean": lambda v: 1.0, "slope": lambda v: 2 * v - 1}
    >>> found = weight_family(y, p, family, seed=1)
    >>> found.argmax, round(found.value, 4)
    ('mean', 0.2333)
    """
    draws, seed = checked_draws(draws), recorded_seed(seed)
    if not isinstance(functions, Mapping):
        rule, got = "must be a mapping of names to functions", f"got {type(functions).__name__}"
        raise InvalidInputError("functions", rule, got, 'pass {"name": function, ...}')
    if not functions:
        raise InvalidInputError("functions", "must have a member", "got none")
    checked = check_records(y_true, y_prob, sample_weight, missing, kind="labels")
    check_aligned(covariates, checked.labels, ("covariates", "y_prob"))
    prediction = np.full(checked.length, np.nan)  # of dropped rows; what is returned there is not looked at
    prediction[checked.rows] = checked.prediction
    values = {str(k): _called(str(k), f, prediction, covariates, checked.rows) for k, f in functions.items()}
    keys = [np.ascontiguousarray(one).view(np.uint64) for one in values.values()]
    records = Records.of(checked, keys)
    weight = records.weight / records.weight.sum()
    loads = np.array([one[records.rows] for one in values.values()]) * weight
    signed = loads @ (records.outcome - records.prediction)
    simulated = np.abs(null_sums(records.prediction, loads, draws, np.random.default_rng(seed)))
    pvalues = adjusted_pvalues(np.abs(signed), simulated)
    order = np.argsort(-np.abs(signed), kind="stable")
    names = list(values)
    members = tuple(Weighting(names[k], float(signed[k]), float(pvalues[k])) for k in order)
    first = members[0]
    return WeightFamily(
        abs(first.value), first.name, first.pvalue, members, len(records), records.dropped, draws, seed
    )


def _called(name: str, function: WeightFunction, prediction: Array, covariates: Any, rows: Any) -> Array:
    """Return the weights that a function gives to all rows, checked where rows are kept."""
    subject = f"functions[{name!r}]"
    if not callable(function):
        raise InvalidInputError(subject, "must be callable", f"got {type(function).__name__}")
    given = (prediction,) if not _reads_features(function) else (prediction, covariates)
    if len(given) == 2 and covariates is None:
        rule, hint = "takes features as its second argument", "pass covariates="
        raise InvalidInputError(subject, rule, "got no covariates", hint)
    with np.errstate(invalid="ignore"):
        returned = np.asarray(function(*given))
    if returned.dtype.kind not in "biuf":
        raise InvalidInputError(subject, "must return numbers", f"got dtype {returned.dtype}")
    if returned.shape not in ((), prediction.shape):
        got = f"got shape {returned.shape} for {pluralize(len(prediction), 'row')}"
        raise InvalidInputError(subject, "must return one number per row", got)
    weights = np.broadcast_to(returned.astype(np.float64), prediction.shape) + 0.0
    inside = np.zeros(len(weights), dtype=bool)
    inside[rows] = True
    bad = inside & ~(np.abs(weights) <= 1.0)
    reject_rows(subject, "must return values in [-1, 1]", weights, bad, "divide by the largest value")
    return weights


def _reads_features(function: WeightFunction) -> bool:
    """Return whether a function needs two arguments; what does not say (a ufunc) takes the prediction."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in positional and one.default is inspect.Parameter.empty]
    return len(needed) > 1
