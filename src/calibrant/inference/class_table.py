"""class_table: how calibrated each class of several is, and the most probable one, with p-values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from calibrant.forecasts import Forecasts
from calibrant.formatting import (
    dropped_note,
    format_points,
    format_value,
    percent,
    pluralize,
    pvalue_phrase,
    pvalue_text,
)
from calibrant.inference.classic_tests import visible_bias
from calibrant.inference.pvalues import holm
from calibrant.inference.testing import calibration_test
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.lookup import find_measure
from calibrant.metrics.multiclass import CLASSES, class_wise, top_label
from calibrant.parallel import Progress, checked_draws, recorded_seed, report_progress
from calibrant.records import Missing
from calibrant.results import Result, Table, number_cell, text_cell

ALPHA = 0.05
MAX_UNSEEN_BIAS = 0.15  # a bias of this size must not go unseen
MAX_CLASSES_NAMED = 3  # classes named in the sentence; the table has them all


@dataclass(frozen=True, slots=True, repr=False)
class ClassLevel(Result):
    """One class against all others: predicted and observed rate, error, and whether chance explains it."""

    name: str
    predicted: float
    happened: float
    value: float
    pvalue: float
    adjusted: float  # for all classes looked at (Holm)
    pvalue_is_bound: bool = False  # no draw reached the value: both p-values are these or less
    approximate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClassTable(Result):
    """Calibration of several classes. `top` asks whether the most probable class was right.

    `mean` is the class-wise error: the mean of the measure over the classes, and `total` their sum.
    `truthful` says whether the total may rank models: a sum of truthful measures, such as "atb", is lowest in
    expectation for the true probabilities. The value of `top` never is, because the report decides which
    class is asked about (`class_truthfulness` finds the lie that gains).
    """

    measure: str
    mean: float
    total: float
    truthful: bool
    top: ClassLevel
    classes: tuple[ClassLevel, ...]
    n: int
    dropped: int
    draws: int
    seed: int
    unseen: float = 0.0  # least common bias of the top label that would be noticed with probability 90%

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "approximate")

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields of the classes that hold only approximately, for one class or more."""
        return tuple(sorted({name for one in (self.top, *self.classes) for name in one.approximate}))

    @property
    def wrong(self) -> tuple[ClassLevel, ...]:
        """The classes that are off beyond chance at the 5% level, the surest first."""
        return tuple(sorted((c for c in self.classes if c.adjusted <= ALPHA), key=lambda c: c.adjusted))

    def __repr__(self) -> str:
        return f"ClassTable({len(self.classes)} classes, {self.measure} {self.mean:.4g} on average)"

    def __str__(self) -> str:
        top, count = self.top, len(self.wrong)
        within = "too little data to say" if self.unseen > MAX_UNSEEN_BIAS else "calibrated within noise"
        off = "not calibrated" if top.pvalue <= ALPHA else within
        by = ", by approximate p-values" if any(one.approximate for one in self.classes) else ""
        parts = [
            f"The most probable class is right in {percent(top.happened)} of {pluralize(self.n, 'row')}"
            f"{dropped_note(self.dropped)}, {percent(top.predicted)} were predicted: {off} "
            f"({pvalue_phrase(top.pvalue, self.draws, bound=top.pvalue_is_bound)}"
            f"{', approximate' if top.approximate else ''}).",
            f"{count} of {len(self.classes)} classes {'is' if count == 1 else 'are'} off beyond chance"
            f" at the 5% level{by}.",
        ]
        largest = sorted(self.wrong, key=lambda one: -abs(one.happened - one.predicted))[:MAX_CLASSES_NAMED]
        named = [
            f"{'class ' if one.name.isdecimal() else ''}{one.name} ({percent(one.predicted)} predicted, "
            f"{percent(one.happened)} observed)"
            for one in largest
        ]
        if named:
            parts.append(f"Largest difference{'s' if len(named) > 1 else ''}: {', '.join(named)}.")
        parts.append(f"Mean {self.measure} over classes: {format_value(self.mean)}.")
        if self.truthful:
            parts.append(f"Their sum, {format_value(self.total)}, may rank models; the top label's may not.")
        return " ".join([*parts, f"Seed {self.seed}."])

    def rows(self) -> tuple[ClassLevel, ...]:
        return (self.top, *self.classes)

    def sheet(self) -> Table:
        """Return the table: top label first, then the classes in their order."""
        columns = ("class", "predicted", "observed", "difference", self.measure, "p-value", "adjusted")
        return Table(columns, tuple(_line(one) for one in self.rows()))


def _line(one: ClassLevel) -> tuple[Any, ...]:
    gap, roughly = one.happened - one.predicted, " approx." if one.approximate else ""
    rates = (number_cell(rate, percent(rate)) for rate in (one.predicted, one.happened))
    pvalues = (
        number_cell(p, pvalue_text(p, floor=one.pvalue_is_bound) + roughly)
        for p in (one.pvalue, one.adjusted)
    )
    difference = number_cell(gap, f"{format_points(gap)} points")
    return text_cell(one.name), *rates, difference, number_cell(one.value), *pvalues


@shares_parameters(CLASSES)
def class_table(
    y_true: Any,
    probabilities: Any,
    *,
    measure: str = "smooth",
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
    draws: int = 199,
    seed: int | None = 0,
    progress: Progress | None = None,
) -> ClassTable:
    """Measure and test every class against the others, and the most probable class.

    Parameters
    ----------
    measure
        The error shown, "atb" to rank models; p-values are those of the default test, whatever is shown.
    draws
        Simulations for p-values without a limit law; at least 20 for each class, so that one can be found.

    Examples
    --------
    >>> table = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]] * 50
    >>> found = class_table(["a", "b", "c"] * 50, table, classes="abc", seed=1)
    >>> [(one.name, round(one.happened - one.predicted, 3)) for one in found.classes]
    [('a', 0.0), ('b', 0.0), ('c', 0.0)]
    """
    row, asked, used = find_measure(measure), checked_draws(draws), recorded_seed(seed)
    common = {"sample_weight": sample_weight, "classes": classes, "missing": missing}
    top = top_label(y_true, probabilities, **common)
    every = class_wise(y_true, probabilities, **common)
    count = max(asked, round(len(every) / ALPHA) - 1)
    done: list[str] = []

    def judged(name: str, forecasts: Forecasts) -> ClassLevel:
        value = float(row.function.core(forecasts, **row.options))
        tested = calibration_test(forecasts, draws=count, seed=used)
        rates, pvalues = (forecasts.mean_prediction, forecasts.base_rate), (tested.pvalue, tested.pvalue)
        rough = ("pvalue", "adjusted") if tested.approximate else ()
        done.append(name)
        report_progress(progress, len(done), len(every) + 1)
        return ClassLevel(name, *rates, value, *pvalues, tested.pvalue_is_bound, rough)

    alone = [judged(str(name), forecasts) for name, forecasts in every.items()]
    adjusted = holm([one.pvalue for one in alone])
    return ClassTable(
        measure=row.name,
        mean=sum(one.value for one in alone) / len(alone),
        total=sum(one.value for one in alone),
        truthful=row.truthful in ("strict", "batch"),
        top=judged("top label", top),
        classes=tuple(replace(one, adjusted=p) for one, p in zip(alone, adjusted, strict=True)),
        n=top.n,
        dropped=top.dropped,
        draws=count,
        seed=used,
        unseen=visible_bias(top),
    )
