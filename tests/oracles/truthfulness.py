"""Expected values the long way: one call of the public function per outcome."""

from __future__ import annotations

import itertools
import math

import calibrant as cb


def expected(name: str, truth: list[float], report: list[float]) -> float:
    """Sum chance times value over all outcomes."""
    row = cb.measures()[name]
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=len(truth)):
        chance = math.prod(p if y else 1 - p for p, y in zip(truth, outcome, strict=True))
        value = row.function(list(outcome), report, **row.options)
        total += chance * (abs(value - row.ideal) if row.signed else value)
    return total
