"""Forecasters of streams as slow as they are plain: exact fractions, one dict per idea, nothing shared."""

from __future__ import annotations

import math
from fractions import Fraction

HALF = Fraction(1, 2)


class PlainGrid:
    """DistanceForecaster in exact fractions: a dict of charges, cells found by looking at all of them."""

    def __init__(self):
        self.charge = {Fraction(0): Fraction(0), Fraction(1): Fraction(0)}
        self.used = {(Fraction(0), Fraction(1)): 0}
        self.moved = Fraction(0)

    def cells(self):
        return sorted(self.used)

    def usable(self):
        return [c for c in self.cells() if self.charge[c[0]] <= 0 <= self.charge[c[1]]]

    def learn(self, cell, outcome):
        """Charge the right end if the outcome is 1, else the left; split a cell used often enough."""
        left, right = cell
        middle, end = (left + right) / 2, right if outcome else left
        self.charge[end] += end - outcome
        self.moved += abs(middle - end)
        self.used[cell] += 1
        if self.used[cell] * (right - left) / 2 >= max(middle, 1 - middle):
            del self.used[cell]
            self.used[left, middle] = self.used[middle, right] = 0
            self.charge[middle] = Fraction(0)

    @property
    def certificate(self):
        return self.moved + sum(map(abs, self.charge.values()))

    def copy(self):
        other = PlainGrid()
        other.charge, other.used, other.moved = dict(self.charge), dict(self.used), self.moved
        return other


def bound(rounds):
    return 3 * math.sqrt((rounds + 1) / 2) - 2


def cost_of_calibrating(predictions, outcomes, charged):
    """What it costs to move each forecast to its charged value, and each of these to its mean outcome."""
    total = 0.0
    for value in set(charged):
        rows = [t for t, c in enumerate(charged) if c == value]
        mean = sum(outcomes[t] for t in rows) / len(rows)
        total += sum(abs(predictions[t] - value) for t in rows) + len(rows) * abs(value - mean)
    return total


def aggregate(answers, outcomes, prior):
    """Vovk's aggregating algorithm for squared error, weights as plain products."""
    weights, out = list(prior), []
    for said, outcome in zip(answers, outcomes, strict=True):
        likely = [
            sum(w * math.exp(-2 * (y - e) ** 2) for w, e in zip(weights, said, strict=True)) for y in (0, 1)
        ]
        out.append(0.5 + (math.log(likely[1]) - math.log(likely[0])) / 4)
        weights = [w * math.exp(-2 * (outcome - e) ** 2) for w, e in zip(weights, said, strict=True)]
    return out


def expected_error(predictions, outcomes):
    """T times the expected calibration error, level by level."""
    levels = set(predictions)
    return sum(abs(sum(y - p for p, y in zip(predictions, outcomes, strict=True) if p == v)) for v in levels)
