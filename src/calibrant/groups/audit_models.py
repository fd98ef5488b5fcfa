"""audit_table(): several models side by side by the protocol of the multi-calibration paper's Appendix G."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.columns import named_columns
from calibrant.errors import InvalidInputError, sentence
from calibrant.formatting import pluralize
from calibrant.groups.audit import audit
from calibrant.groups.audit_result import Audit
from calibrant.inputs import whole_numbers
from calibrant.parallel import recorded_seed
from calibrant.records import Missing, Records, check_records

METRICS = ("error", "kuiper", "multi_calibration", "multi_ablate", "expectation")
THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds, and twice its standard error: 0 where nothing is random."""

    value: float
    margin: float


@dataclass(frozen=True, slots=True)
class AuditedModel:
    """One model: share misclassified, Kuiper of everyone, M, max D_k, and what chance gives its group."""

    name: str
    error: Estimate
    kuiper: Estimate
    multi_calibration: Estimate
    multi_ablate: Estimate
    expectation: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class AuditTable:
    """Models side by side; margins are twice the standard error over seeds of the random subpopulations."""

    models: tuple[AuditedModel, ...]
    n: int
    subpopulations: int
    seeds: tuple[int, ...]
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"AuditTable({pluralize(len(self.models), 'model')}, n = {self.n:,}, {len(self.seeds)} seeds)"

    def __str__(self) -> str:
        width = max(12, *(len(model.name) for model in self.models)) + 2
        drawn = f"{pluralize(len(self.seeds), 'seed')} (seed {self.seed})"
        lines = [f"{pluralize(self.n, 'row')}, {pluralize(self.subpopulations, 'subpopulation')}, {drawn}"]
        lines.append(" " * 19 + "".join(f"{model.name:>{width}}" for model in self.models))
        for metric in METRICS:
            collected = [getattr(model, metric) for model in self.models]
            lines.append(f"{metric:<19}" + "".join(f"{one.value:>{width}.4g}" for one in collected))
            if any(one.margin for one in collected):
                lines.append(
                    " " * 19 + "".join(f"{'± ' + format(one.margin, '.2g'):>{width}}" for one in collected)
                )
        return "\n".join(lines)


def audit_table(
    y_true: Any,
    models: Any,
    covariates: Any,
    *,
    seeds: int = 3,
    sample_weight: Any = None,
    subpopulations: int = 1000,
    min_size: int = 10,
    nominal: Sequence[str] = (),
    missing: Missing = "error",
    seed: int | None = 0,
) -> AuditTable:
    """Audit several models on the same records and the same random subpopulations, seed by seed.

    Parameters
    ----------
    y_true, sample_weight, missing
        Outcomes (0 or 1) and weights; rows with a gap are an "error", or "drop" them, for each model its own.
    models
        Predictions by name: a mapping, or a frame of columns.
    covariates, nominal, subpopulations, min_size
        As for `audit`.
    seeds, seed
        How many times the subpopulations are drawn again, and the seed of those seeds.

    Returns
    -------
    AuditTable

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.random(500), rng.integers(20, 80, 500)
    >>> y = rng.random(500) < p
    >>> found = audit_table(y, {"right": p, "bold": p > 0.5}, {"age": age}, subpopulations=20, seed=1)
    >>> found.models[0].kuiper.value < found.models[1].kuiper.value
    True
    """
    whole_numbers(2, seeds=seeds)
    named = named_columns(models, "models")
    if not named:
        raise InvalidInputError(sentence("models", "must have a column", "got none"))
    seed = recorded_seed(seed)
    drawn = tuple(int(one) for one in np.random.SeedSequence(seed).generate_state(seeds))
    options = {"sample_weight": sample_weight, "subpopulations": subpopulations, "min_size": min_size}
    options |= {"nominal": nominal, "missing": missing, "covariates": covariates, "draws": 0}
    collected = []
    for name, prediction in named:
        audits = [audit(y_true, prediction, seed=one, **options) for one in drawn]
        wrong = _misclassified(y_true, prediction, sample_weight, missing)
        collected.append(_row(name, audits, wrong))
    return AuditTable(tuple(collected), audits[0].n, subpopulations, drawn, seed)


def _row(name: str, audits: Sequence[Audit], wrong: float) -> AuditedModel:
    """Average over seeds; the expectation is that of the group which attains the largest D_k."""
    figures: Mapping[str, list[float]] = {
        "error": [wrong] * len(audits),
        "kuiper": [one.everyone.kuiper for one in audits],
        "multi_calibration": [one.metric for one in audits],
        "multi_ablate": [one.ablated for one in audits],
        "expectation": [one.ablated_group.expected for one in audits],
    }
    return AuditedModel(name, **{metric: _estimate(figures[metric]) for metric in METRICS})


def _estimate(figures: list[float]) -> Estimate:
    """Return the mean and twice its standard error, with Bessel's correction as in the paper."""
    numbers = np.array(figures)
    if np.ptp(numbers) == 0:
        return Estimate(float(numbers[0]), 0.0)
    return Estimate(float(numbers.mean()), float(2.0 * numbers.std(ddof=1) / len(numbers) ** 0.5))


def _misclassified(y_true: Any, prediction: Any, sample_weight: Any, missing: Missing) -> float:
    """Return the weighted share of records on the wrong side of 1/2."""
    records = Records.of(check_records(y_true, prediction, sample_weight, missing, kind="labels"))
    wrong = (records.prediction >= THRESHOLD) != (records.outcome > 0)
    return float(np.average(wrong, weights=records.weight))
