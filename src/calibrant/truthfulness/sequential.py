"""A liar who learns each outcome before the next report: the best policy over histories."""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.results import Array
from calibrant.truthfulness.best_report import OTHER, TIE
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

    def differs(self, reports: Array) -> bool:
        """Return whether reports are others than the honest ones; rare histories count by their chance."""
        met = np.bincount(self.met.ravel(), np.repeat(self.chances, self.met.shape[1]))
        return bool(np.max(met * (reports - self.honest) ** 2) > OTHER**2)

    def by_history(self, reports: Array) -> dict[str, float]:
        """Return the reports by what has been seen: "" at first, "01" after outcomes 0 and 1."""
        return {"".join(map(str, h)): float(r) for h, r in zip(self.histories, reports, strict=True)}


class BestPolicy(NamedTuple):
    """The least expected value found, its reports, and what the search has seen."""

    value: float
    reports: Array
    tied: bool  # another policy is as good as honesty
    finished: bool  # the search came to its end


def best_policy(policy: Policy, *, budget: float, seed: int) -> BestPolicy:
    """Search for the reports with the least expected value, from the truth and from random starts."""
    from scipy.optimize import minimize

    deadline, generator = time.monotonic() + budget, np.random.default_rng(seed)
    honest = policy(policy.honest)
    best, reports, tied = honest, policy.honest.copy(), False
    steps: Any = {"xatol": 1e-7, "fatol": 1e-13, "maxfev": 400 * len(reports)}

    def value(at: Array) -> float:
        nonlocal best, reports, tied
        here, told = policy(at), np.clip(at, 0.0, 1.0)
        tied |= abs(here - honest) <= TIE and policy.differs(told)
        if here < best - 1e-12:
            best, reports = here, told
        if time.monotonic() > deadline:
            raise StopIteration
        return here

    try:
        for restart in range(RESTARTS + 1):
            noise = generator.normal(0, SPREAD, len(reports)) * (restart > 0)
            start = reports if restart == RESTARTS else np.clip(policy.honest + noise, 0, 1)
            minimize(value, start, method="Nelder-Mead", options=steps)
    except StopIteration:
        return BestPolicy(best, reports, tied, finished=False)
    return BestPolicy(best, reports, tied, finished=True)
