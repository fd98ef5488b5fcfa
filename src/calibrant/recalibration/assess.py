"""Did it help? The whole procedure cross-fitted, choice included, with an honest interval of the gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.fits.levels import Levels
from calibrant.forecasts import Forecasts
from calibrant.groups.ordered import joined_column
from calibrant.measures.decisions.u_calibration import u_calibration_error
from calibrant.measures.smooth import smooth_calibration_error
from calibrant.numerals import confidence_text, counted, short
from calibrant.recalibration.change_sheets import HELD_OUT, change_sheet, score_sheet
from calibrant.recalibration.for_whom import ForWhom, for_whom
from calibrant.recalibration.level_losses import costs
from calibrant.recalibration.level_losses import joined_costs as all_costs
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import CountedCells, Rows, Sample
from calibrant.results import Array
from calibrant.sheets import Sheet, number_cell, paragraphs, text_cell

Verdict = Literal["helps", "no evidence that it helps", "harms", "too little data to say"]
Procedure = Callable[[Sample, int], Fitted]

FOLDS = 5
CONFIDENCE = 0.95
FEWEST, FEWEST_EACH = 20, 5  # records, and records of either outcome, below which nothing is said


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of held-out records before and after, and the gain (before - after) with its interval."""

    before: float
    after: float
    gain: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What recalibration gains on records it was not fitted to.

    `gain`, `lower`, `upper`, `before` and `after` are mean log losses, in nats; `changes` has them for the
    log loss, the Brier score, the smooth calibration error and the U-calibration error (what somebody loses
    against always acting on the base rate). The interval is that of Nadeau and Bengio (2003): the folds share
    records, which widens it. That of a loss is never narrower than the records, one by one, allow: folds that
    are dealt by outcome have the base rate in common and agree better with each other than with new records.
    Records that are too many to be dealt one by one (2^19 without weights), or that a sketch holds, are known
    in the folds by their cell of neighbouring predictions alone: `cells` says how many there are.
    """

    gain: float
    lower: float
    upper: float
    before: float
    after: float
    verdict: Verdict
    n: int
    folds: int
    confidence: float
    seed: int
    changes: Mapping[str, Change]
    levels_before: int  # distinct predictions
    levels_after: int  # distinct recalibrated predictions: fewer means that ties were created
    for_whom: ForWhom | None = None  # the audit by covariates, where there are some
    cells: int | None = None  # of neighbouring predictions, where records were dealt by cells

    def __repr__(self) -> str:
        interval = f"[{self.lower:.3g}, {self.upper:.3g}]"
        return f"Assessment({self.verdict}: log loss gain {self.gain:.3g} in {interval}, n = {self.n:,})"

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields, here and of the changes, that hold only approximately."""
        return ("lower", "upper")

    def sheet(self) -> Sheet:
        """Return held-out measures before and after recalibration, and the gain with its interval."""
        columns = (
            "held-out measure", "as they are", "recalibrated", "gain",
            f"{confidence_text(self.confidence)} interval, approx.",
        )  # fmt: skip
        lines = (
            (text_cell(name.replace("_", " ")), number_cell(c.before), number_cell(c.after),
             number_cell(c.gain), number_cell(c.lower, f"{short(c.lower)} to {short(c.upper)}"))
            for name, c in self.changes.items()
        )  # fmt: skip
        return Sheet(columns, tuple(lines))

    def _repr_html_(self) -> str:
        said = f"On held-out folds of {counted(self.n, 'record')}: {self.verdict}."
        shown = paragraphs(said) + self.sheet().as_html()
        if self.for_whom is None:
            return shown
        changes = self.for_whom.changes
        every = change_sheet(changes).as_html() + score_sheet(changes).as_html()
        return shown + paragraphs(*str(self.for_whom).splitlines()) + every + paragraphs(HELD_OUT)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        changes = {name: {k: getattr(c, k) for k in _CHANGE} for name, c in self.changes.items()}
        whom = None if self.for_whom is None else self.for_whom.to_dict()
        cells = {} if self.cells is None else {"cells": self.cells}
        return {**plain, **cells, "approximate": list(self.approximate), "changes": changes, "for_whom": whom}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> Assessment:
        """Rebuild from what `to_dict` returned."""
        changes = {name: Change(**c) for name, c in figures["changes"].items()}
        whom = figures.get("for_whom")
        return cls(
            **{name: figures[name] for name in _PLAIN},
            changes=MappingProxyType(changes),
            for_whom=None if whom is None else ForWhom.from_dict(whom),
            cells=figures.get("cells"),
        )


_CHANGE = ("before", "after", "gain", "lower", "upper")
_PLAIN = (*("gain", "lower", "upper", "before", "after", "verdict", "n", "folds", "confidence", "seed"),
          *("levels_before", "levels_after"))  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """A procedure cross-fitted: the fits without each fold in turn, and the records that each was without."""

    fitted: tuple[Fitted, ...]
    held_out: tuple[Sample, ...]

    @property
    def pairs(self) -> list[tuple[Levels, Levels]]:
        """The held-out records of each fold under their predictions, and under the recalibrated ones."""
        sides = zip(self.held_out, self._repaired, strict=True)
        return [(part.levels, levels.with_predictions(q)) for part, (levels, q) in sides]

    @property
    def _repaired(self) -> list[tuple[Levels, Array]]:
        """The held-out levels of each fold, and what their predictions become."""
        return [_applied(fit, part) for fit, part in zip(self.fitted, self.held_out, strict=True)]

    def change(self, loss: str) -> Change:
        """Return the loss of the held-out records before and after."""
        before, after = zip(
            *((costs(levels, levels.values, loss), costs(levels, q, loss)) for levels, q in self._repaired),
            strict=True,
        )
        means = [(one.mean, other.mean) for one, other in zip(before, after, strict=True)]
        error = all_costs(list(before)).standard_error_against(all_costs(list(after)))
        return change_of(means, np.array([one.weights.sum() for one in before]), error)


def cross_fit(
    sample: Sample, procedure: Procedure, *, seed: int, folds: int = FOLDS, stratified: bool = True
) -> Folds | str:
    """Fit a procedure without each fold in turn; the reason as text where that cannot be done."""
    if sample.cuttable:
        return sample.cuttable
    try:
        parts = sample.cut(folds, seed, stratified)
        fitted = tuple(procedure(rest, seed) for rest, _ in parts)
    except CalibrantError as reason:
        return str(reason)
    return Folds(fitted, tuple(part for _, part in parts))


def assess(sample: Sample, crossed: Folds, *, seed: int) -> Assessment:
    """Judge a procedure on the records that its fits were without."""
    pairs = crossed.pairs
    share = np.array([before.total for before, _ in pairs])
    changes = {
        "log_loss": crossed.change("log"),
        "brier_score": crossed.change("brier"),
        "smooth": change_of([_measured(pair, smooth_calibration_error) for pair in pairs], share),
        "u_calibration": change_of([_measured(pair, u_calibration_error) for pair in pairs], share),
    }
    summary = _summed_up(changes, sample, len(pairs), seed, pairs)
    return replace(summary, for_whom=_for_whom(crossed, sample, seed), cells=_cells(crossed.held_out[0]))


def _cells(held_out: Sample) -> int | None:
    return len(held_out.values) if isinstance(held_out, CountedCells) else None


def _for_whom(crossed: Folds, sample: Sample, seed: int) -> ForWhom | None:
    """Return the audit of all held-out records by their covariates, if they have any and are 0 or 1."""
    held_out = [part for part in crossed.held_out if isinstance(part, Rows) and part.covariates]
    if len(held_out) < len(crossed.held_out) or not sample.binary:
        return None
    after = [
        fit.map.predict(part.predictions, part.covariates)
        for fit, part in zip(crossed.fitted, held_out, strict=True)
    ]
    first = held_out[0].covariates or {}
    covariates = {name: joined_column([(part.covariates or {})[name] for part in held_out]) for name in first}
    return for_whom(
        np.concatenate([part.outcomes for part in held_out]),
        np.concatenate([part.predictions for part in held_out]),
        np.concatenate(after),
        np.concatenate([part.weights for part in held_out]),
        covariates,
        groups=held_out[0].groups,
        seed=seed,
    )


def _applied(fitted: Fitted, part: Sample) -> tuple[Levels, Array]:
    """Return the held-out records, one by one if covariates tell them apart, and what they are mapped to."""
    if fitted.map.needs_covariates and isinstance(part, Rows):
        return part.unmerged, fitted.map.predict(part.predictions, part.covariates)
    return part.levels, fitted.map.predict(part.levels.values)


def _measured(pair: tuple[Levels, Levels], measure: Callable[..., float]) -> tuple[float, float]:
    before, after = (Forecasts(side.rates, side.values, sample_weight=side.weights) for side in pair)
    return float(measure(before)), float(measure(after))


def change_of(figures: list[tuple[float, float]], share: Array, error: float = 0.0) -> Change:
    """Return the mean over folds, and Nadeau and Bengio's interval of the gain.

    `error` is the standard error of the gain by single records, where there is one.
    """
    from scipy.special import ndtri, stdtrit

    table = np.array(figures)
    before, after = (float(np.average(column, weights=share)) for column in table.T)
    gains = table[:, 0] - table[:, 1]
    folds = len(gains)
    variance = float(np.var(gains, ddof=1)) * (1 / folds + 1 / (folds - 1))
    quantile = (1 + CONFIDENCE) / 2
    reach = max(float(stdtrit(folds - 1, quantile)) * variance**0.5, float(ndtri(quantile)) * error)
    gain = before - after
    return Change(before, after, gain, gain - reach, gain + reach)


def _summed_up(
    changes: dict[str, Change], sample: Sample, folds: int, seed: int, pairs: list[tuple[Levels, Levels]]
) -> Assessment:
    main = changes["log_loss"]
    return Assessment(
        gain=main.gain,
        lower=main.lower,
        upper=main.upper,
        before=main.before,
        after=main.after,
        verdict=_verdict(main, sample),
        n=sample.n,
        folds=folds,
        confidence=CONFIDENCE,
        seed=seed,
        changes=MappingProxyType(changes),
        levels_before=sum(len(before) for before, _ in pairs),
        levels_after=sum(len(after) for _, after in pairs),
    )


def _verdict(main: Change, sample: Sample) -> Verdict:
    ones = float(sample.levels.ones.sum())
    if sample.n < FEWEST or min(ones, sample.levels.total - ones) < FEWEST_EACH:
        return "too little data to say"
    if main.lower > 0:
        return "helps"
    return "harms" if main.upper < 0 else "no evidence that it helps"
