"""dominance: the most that any user loses by using one model instead of another, or instead of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np

from calibrant.errors import Hint, InvalidInputError, TooFewRecordsError
from calibrant.fits.crossfit import Responses
from calibrant.formatting import confidence_text
from calibrant.inference.intervals import check_resampling
from calibrant.inference.net_benefits import critical_value, difference
from calibrant.inference.paired_rows import PairedRows, complete_rows
from calibrant.inference.pvalues import bonferroni
from calibrant.inputs import open_share
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.decisions.worst_case import (
    ThresholdLossCurve,
    WorstTask,
    certified_worst,
    curve_of,
    worst_task_of,
)
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result

UNNAMED = ("the first model", "the second model")


@dataclass(frozen=True, slots=True, eq=False)
class DominanceOver(Result):
    """The most that any user with payoffs in [0, 1] loses by using a model instead of one of several others.

    `each` holds the comparison with every one; their intervals hold all at once (Bonferroni). [`lower`,
    `upper`] holds the largest loss in the population with at least the `confidence`.
    """

    each: Mapping[str, Dominance]
    confidence: float

    DERIVED: ClassVar[tuple[str, ...]] = ("loss", "worst", "lower", "upper", "dominates", "approximate")

    @property
    def model(self) -> str:
        """What the model is called that is compared with them."""
        name = next(iter(self.each.values())).names[0]
        return "the model" if name == UNNAMED[0] else name

    @property
    def worst(self) -> str:
        """The baseline with the largest loss."""
        return max(self.each, key=lambda name: self.each[name].loss)

    @property
    def loss(self) -> float:
        """What they lose: the omniprediction gap against all baselines."""
        return self.each[self.worst].loss

    @property
    def lower(self) -> float | None:
        """The lower limit of the largest loss; None without draws."""
        return max((one.lower for one in self.each.values() if one.lower is not None), default=None)

    @property
    def upper(self) -> float | None:
        """The upper limit of the largest loss; None without draws."""
        return max((one.upper for one in self.each.values() if one.upper is not None), default=None)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.lower is None else ("lower", "upper")

    @property
    def dominates(self) -> bool:
        """Whether the model is at least as good as every baseline for every user, on these records."""
        return all(found.dominates for found in self.each.values())

    def __getitem__(self, name: str) -> Dominance:
        return self.each[name]

    def __repr__(self) -> str:
        limits = "" if self.lower is None else f" in [{self.lower:.4g}, {self.upper:.4g}]"
        return f"DominanceOver(loss = {self.loss:.4g}{limits}, worst = {self.worst!r}, of {len(self.each)})"

    def __str__(self) -> str:
        if self.dominates:
            others = f"all {len(self.each)} baselines"
            return f"{at_start(self.model)} dominates {others}: no user should prefer another."
        lost = f"loses at most {self.loss:.4g} per record{_interval_text(self)}"
        return f"Using {self.model} instead of the best baseline {lost}, against {self.worst!r}."


def at_start(name: str) -> str:
    """Capitalize the name of an unnamed model: one that was given stays as it is."""
    return name[0].upper() + name[1:] if name.startswith("the ") else name


def names_of_two(prob_a: Any, prob_b: Any, names: Sequence[str] | None) -> tuple[str, str]:
    if names is None:
        own = [getattr(column, "name", None) for column in (prob_a, prob_b)]
        first, second = (
            str(name) if isinstance(name, str) and name else unnamed
            for name, unnamed in zip(own, UNNAMED, strict=True)
        )
        return UNNAMED if first == second else (first, second)
    given = [str(name) for name in names]
    wanted = 1 if prob_b is None else 2
    if isinstance(names, str) or len(given) != wanted or len(set(given)) < wanted or not all(given):
        alone = "must be one name, as the baselines have theirs"
        rule = "must be two different names" if wanted == 2 else alone
        raise InvalidInputError("names", rule, f"got {names!r}")
    return given[0], given[-1]


def _interval_text(found: Dominance | DominanceOver) -> str:
    if found.lower is None:
        return ""
    sure = confidence_text(found.confidence)
    return f" ({sure} interval {found.lower:.4g} to {found.upper:.4g}, approximate)"


def named_baselines(prob_b: Any) -> dict[str, Any] | None:
    """Return baselines by name, from a mapping or a list of columns; None for one column."""
    if isinstance(prob_b, Mapping):
        named = {str(name): column for name, column in prob_b.items()}
    elif isinstance(prob_b, (list, tuple)) and prob_b and all(np.ndim(column) == 1 for column in prob_b):
        named = {f"baseline {k}": column for k, column in enumerate(prob_b, start=1)}
    else:
        return None
    if not named:
        raise InvalidInputError("prob_b", "must name at least one baseline", "got none")
    return named


MIN_EITHER_OUTCOME = 5  # with weights, fewer do not show what a record of that outcome weighs
GRID = 500  # thresholds at which the band is drawn, at most


@dataclass(frozen=True, slots=True, eq=False)
class DominanceBand:
    """Limits that hold the whole curve at once, at some thresholds; at a jump they span both sides."""

    thresholds: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, slots=True, eq=False)
class Dominance(Result):
    """The largest loss of any user with payoffs in [0, 1] from using model a instead of model b.

    `loss` is 0 where a dominates b: no user should prefer b on these records. `task` is the decision task
    that loses most. [`lower`, `upper`] holds the loss in the population with at least the `confidence`, over
    all tasks at once (None without draws). `curve` is the Murphy difference: what a user who acts above the
    threshold mu loses by using a instead of b. `band` holds the whole curve at once.
    """

    loss: float
    task: WorstTask
    lower: float | None
    upper: float | None
    curve: ThresholdLossCurve
    band: DominanceBand | None
    confidence: float
    n: int
    draws: int
    seed: int | None
    dropped: int = 0
    names: tuple[str, str] = UNNAMED

    HIDDEN: ClassVar[tuple[str, ...]] = ("task", "curve", "band")
    DERIVED: ClassVar[tuple[str, ...]] = ("dominates", "dominated", "thresholds", "payoff", "approximate")

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.lower is None else ("lower", "upper", "band")

    @property
    def dominates(self) -> bool:
        """Whether a is at least as good as b at every threshold, on these records."""
        return bool(np.all(self.curve.peaks <= 1e-12))

    @property
    def dominated(self) -> bool:
        """Whether b is at least as good as a at every threshold, on these records."""
        return bool(np.all(np.minimum(self.curve.before, self.curve.after) >= -1e-12))

    @property
    def thresholds(self) -> Array:
        """The thresholds of the task that loses most."""
        return self.task.thresholds

    @property
    def payoff(self) -> Array:
        """The payoff of the task that loses most."""
        return self.task.payoff

    def __repr__(self) -> str:
        limits = "" if self.lower is None else f" in [{self.lower:.4g}, {self.upper:.4g}]"
        return f"Dominance(loss = {self.loss:.4g}{limits}, n = {self.n:,})"

    def __str__(self) -> str:
        first, second = self.names
        if self.dominates and self.dominated:
            return f"{at_start(first)} and {second} serve every user equally well on these records."
        if self.dominates:
            return f"{at_start(first)} dominates: on these records no user should prefer {second}."
        where = " and ".join(f"{mu:.3g}" for mu in self.task.thresholds)
        also = f" {at_start(second)} dominates: no user should prefer {first}." if self.dominated else ""
        lost = f"loses at most {self.loss:.4g} per record{_interval_text(self)}"
        return f"Using {first} instead of {second} {lost}, for a user who changes action at {where}.{also}"


@overload
def dominance(y_true: Any, prob_a: Any, prob_b: Mapping[str, Any], **options: Any) -> DominanceOver: ...
@overload
def dominance(y_true: Any, prob_a: Any, prob_b: Any, **options: Any) -> Dominance: ...
@shares_parameters("")  # type: ignore[misc]
def dominance(
    y_true: Any,
    prob_a: Any,
    prob_b: Any,
    *,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
    missing: Missing = "error",
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int | None = 0,
) -> Dominance | DominanceOver:
    """Return the most that any user loses by using model a instead of model b, on the same rows.

    Over all decision tasks with payoffs in [0, 1], the omniprediction gap of a against b (Ehm, Gneiting,
    Jordan & Krüger 2016, Murphy diagrams; section 1.4 of the survey). Unlike decision_loss it needs no
    predictions that repeat.

    Parameters
    ----------
    y_true, prob_a, prob_b
        Outcomes, and the predictions of the two models; several baselines as a mapping of names to columns,
        or as a list of columns.
    sample_weight
        Weights of the records.
    names
        What the printed sentence calls the two models; by default the names of the columns.
    missing
        "drop" leaves out a row that lacks a value for either model.
    draws
        Random signs drawn for the band; 0 for no interval and no band.

    Returns
    -------
    Dominance
        Prints as a sentence. For several baselines DominanceOver: the largest loss, the baseline that
        attains it, and the comparison with each.

    Examples
    --------
    >>> y, good, bad = [0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8], [0.5, 0.5, 0.5, 0.5]
    >>> dominance(y, good, bad, draws=0).dominates
    True
    >>> print(dominance(y, good, bad, names=["lr", "base rate"], draws=0))
    lr dominates: on these records no user should prefer base rate.
    >>> round(dominance(y, bad, good, draws=0).loss, 12)
    0.5
    >>> dominance(y, bad, {"better": good, "same": bad}, draws=0)
    DominanceOver(loss = 0.5, worst = 'better', of 2)
    """
    open_share("confidence", confidence)
    used = recorded_seed(seed)

    def over(column: Any, both: tuple[str, str], share: float) -> Dominance:
        models = {"prob_a": prob_a, "prob_b": column}
        rows = complete_rows(y_true, models, sample_weight, missing, None, subject="{}")
        return _over_one(rows, both, share, draws, used)

    baselines = named_baselines(prob_b)
    if baselines is None:
        return over(prob_b, names_of_two(prob_a, prob_b, names), float(confidence))
    model, each = names_of_two(prob_a, None, names)[0], {}
    for name, column in baselines.items():
        try:
            each[name] = over(column, (model, name), bonferroni(float(confidence), len(baselines)))
        except InvalidInputError as error:
            raise type(error)(f"baseline {name!r}: {error}") from None
    return DominanceOver(each, float(confidence))


def _over_one(
    rows: PairedRows, names: tuple[str, str], confidence: float, draws: int, seed: int
) -> Dominance:
    a, b = (column + 0.0 for column in rows.models.values())
    order = np.lexsort((rows.outcomes, b, a, rows.mass))  # rows that tie are the same row: any order will do
    rows = rows.take(order)
    n, outcomes, weights = len(order), rows.outcomes, rows.mass
    groups = Responses(a[order], b[order], weights, weights * outcomes, np.ones(n, dtype=np.int64))
    curve = curve_of(groups)
    task = worst_task_of(curve)
    lower, upper, band, count = None, None, None, 0
    if isinstance(draws, bool) or draws != 0:
        check_resampling(n)
        fewest = min(np.count_nonzero(outcomes > 0), np.count_nonzero(outcomes < 1))
        if fewest < MIN_EITHER_OUTCOME and weights.max() > weights.min() * (1 + 1e-9):
            rule = f"needs {MIN_EITHER_OUTCOME} records of either outcome for an interval with weights"
            raise TooFewRecordsError("dominance", rule, f"got {fewest}", Hint("{} leaves it out", draws=0))
        count = checked_draws(draws)
        lower, upper, band = _uncertainty(rows, groups, curve, confidence, count, seed)
    used, found = seed if count else None, (task.loss, task, lower, upper, curve, band)
    return Dominance(*found, confidence, n, count, used, rows.dropped, names)


def _uncertainty(
    rows: PairedRows, groups: Responses, curve: ThresholdLossCurve, confidence: float, draws: int, seed: int
) -> tuple[float, float, DominanceBand]:
    """Return limits of the loss, which follow from the band's ends, and the band, over all tasks at once."""
    thresholds = curve.thresholds
    if len(thresholds) > GRID:
        thresholds = thresholds[np.unique(np.linspace(0, len(thresholds) - 1, GRID).round().astype(np.intp))]
    a, b = (
        np.searchsorted(thresholds, x, side="left") + np.searchsorted(thresholds, x, side="right")
        for x in (groups.trusted, groups.rates)
    )
    mu = np.repeat(thresholds, 2)
    z = critical_value(confidence)
    _, band = difference(rows, b, a, 1 - mu, mu, z, share=confidence, draws=draws, seed=seed)
    low, high = band.lower.reshape(-1, 2), band.upper.reshape(-1, 2)
    loss = worst_task_of(curve).loss
    lower = min(loss, max(0.0, certified_worst(thresholds, low.max(axis=1)).value))
    upper = max(loss, min(1.0, certified_worst(thresholds, high.max(axis=1)).value))
    return lower, upper, DominanceBand(thresholds, low.min(axis=1), high.max(axis=1))
