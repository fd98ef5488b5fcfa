"""A liar who learns each outcome before the next report: the best policy over histories."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.results import Array
from calibrant.truthfulness.expected import Scored
from calibrant.truthfulness.outcomes import all_outcomes, chances

RESTARTS = 12
SPREAD = 0.25  # standard deviation of the random starts around the truth


class Policy:
    """Reports that may depend on the outcomes so far: one number per history, the shortest first."""

    def __init__(self, scored: Scored, truth: Array) -> None:
        n = len(truth)
        self.scored = scored
        self.outcomes = all_outcomes(n)
        self.chances = chances(self.outcomes, truth)
        self.histories = [h for k in range(n) for h in itertools.product((0, 1), repeat=k)]
        self.honest = np.array([truth[len(h)] for h in self.histories])
        self.evaluations = 0
        place = {h: i for i, h in enumerate(self.histories)}
        rows = [[place[tuple(map(int, y[:k]))] for k in range(n)] for y in self.outcomes]
        self.met: npt.NDArray[np.intp] = np.array(rows)  # per outcome, the histories met on the way

    def __call__(self, reports: Array) -> float:
        """Return the expected value of the measure when these reports are made."""
        self.evaluations += 1
        made = np.clip(reports, 0.0, 1.0)[self.met]
        values = [
            self.scored.values(report, y[None])[0] for report, y in zip(made, self.outcomes, strict=True)
        ]
        return float(self.chances @ np.array(values))

    def by_history(self, reports: Array) -> dict[str, float]:
        """Return the reports by what has been seen: "" at first, "01" after outcomes 0 and 1."""
        return {"".join(map(str, h)): float(r) for h, r in zip(self.histories, reports, strict=True)}


def best_policy(policy: Policy, *, budget: float, seed: int) -> tuple[float, Array, bool]:
    """Return the least expected value found, its reports, and whether the search came to its end."""
    from scipy.optimize import minimize

    deadline, generator = time.monotonic() + budget, np.random.default_rng(seed)
    best, reports = policy(policy.honest), policy.honest.copy()
    steps: Any = {"xatol": 1e-7, "fatol": 1e-13, "maxfev": 400 * len(reports)}

    def value(at: Array) -> float:
        nonlocal best, reports
        here = policy(at)
        if here < best - 1e-12:
            best, reports = here, np.clip(at, 0.0, 1.0)
        if time.monotonic() > deadline:
            raise StopIteration
        return here

    try:
        for restart in range(RESTARTS + 1):
            noise = generator.normal(0, SPREAD, len(reports)) * (restart > 0)
            start = reports if restart == RESTARTS else np.clip(policy.honest + noise, 0, 1)
            minimize(value, start, method="Nelder-Mead", options=steps)
    except StopIteration:
        return best, reports, False
    return best, reports, True
