"""The truth that tempts most: every truth on a grid against every report on it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.options import number
from calibrant.truthfulness.expected import Function, Scored
from calibrant.truthfulness.gap import Truthfulness, truthfulness_gap
from calibrant.truthfulness.outcomes import all_outcomes, chances

STEP = 0.05
MOST = 3  # rounds


def worst_truth(
    measure: str | Function,
    n: int,
    *,
    step: float = STEP,
    budget: float = 5.0,
    seed: int = 0,
    **options: Any,
) -> Truthfulness:
    """Return the truthfulness gap at the truth, on a grid, where lying gains most.

    All reports on the same grid are tried for every truth; the search of truthfulness_gap then starts at
    the worst truth. `n` is 1, 2 or 3. Where no lie on the grid gains anything the truth lies in the
    middle of the grid.

    Parameters
    ----------
    measure
        A name of the registry, or a function of outcomes and predictions.
    n
        How many rounds: 1, 2 or 3.
    step
        Of the grid.
    budget
        Seconds that the search may take.
    seed
        What seeds the search.
    **options
        Options of the measure.

    Returns
    -------
    Truthfulness
        The truth, the best lie and the gap.

    Examples
    --------
    >>> found = worst_truth("ece", 1)
    >>> found.truth, round(found.gap, 6)
    ((0.25,), 0.125)
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= MOST:
        raise InvalidInputError(sentence("n", f"must be 1 to {MOST} rounds", f"got {n!r}"))
    if not 0.01 <= number("step", step) <= 0.5:
        raise InvalidInputError(sentence("step", "must lie in [0.01, 0.5]", f"got {step}"))
    scored = Scored(measure, options)
    grid = np.linspace(0.0, 1.0, round(1 / step) + 1)
    truth = _most_tempting(scored, grid, int(n))
    return truthfulness_gap(measure, truth, budget=budget, seed=seed, **options)


def _most_tempting(scored: Scored, grid: Any, n: int) -> list[float]:
    """Return the ascending truth with the largest gap; among equals the one nearest to the middle."""
    outcomes = all_outcomes(n)
    reports = list(itertools.combinations_with_replacement(range(len(grid)), n))
    values = np.array([scored.values(grid[list(report)], outcomes) for report in reports])
    best, honest, order = -np.inf, 0.0, reports[len(reports) // 2]
    for k, place in enumerate(reports):
        # measures do not see the order of the rounds, so permuting the report is permuting the truth
        ways = [chances(outcomes, grid[list(way)]) for way in sorted(set(itertools.permutations(place)))]
        honest = float(values[k] @ chances(outcomes, grid[list(place)]))
        gap = honest - float(np.min(values @ np.array(ways).T))
        centred = gap - 1e-10 * float(np.abs(grid[list(place)] - 0.5).sum())
        if centred > best:
            best, order = centred, place
    return [float(grid[i]) for i in order]
