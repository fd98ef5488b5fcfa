"""Theorem 11: the adversary on a tree that no forecaster holds to O(sqrt T), each inequality of its proof."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.online import CutoffForecaster
from calibrant.online.bounds import cutoff_bound


class Node:
    """A node of the tree: its chance, its children, and the weights of the gaps in its average."""

    def __init__(self, chance, depth, levels, gaps):
        self.chance, self.depth, self.step = chance, depth, 4.0**-depth / 8
        self.gap = len(gaps)
        gaps.append(chance)
        own, self.children = 1.0, []
        if depth < levels:
            own = 1 / (levels + 1)
            self.children = [Node(chance + side * self.step, depth + 1, levels, gaps) for side in (-1, 1)]
        self.weights = np.zeros(2 ** (levels + 1) - 1)
        self.weights[self.gap] = own
        for child in self.children:
            self.weights += (1 - own) / 2 * child.weights


def tree(levels):
    gaps = []
    root = Node(0.5, 0, levels, gaps)
    return root, np.array(gaps)


def far_share(node, gaps, p):
    """The share f of the proof: how much of the child on the side of p lies beyond p."""
    left, right = (child.weights for child in node.children)
    return right @ (gaps >= p) if p > node.chance else left @ (gaps < p)


class Accounts:
    """One visit to a node: V, E, D, Y, what the coins added to E and Y, and the least mean rise of Y."""

    def __init__(self, node, gaps, heights, total, rounds):
        self.node, self.gaps, self.total, self.rounds = node, gaps, total, rounds
        self.used, self.sure, self.luck_e, self.luck_y = 0, 0.0, 0.0, 0.0
        self.read(heights)
        self.first = (self.e, self.y)

    def read(self, heights):
        low, high = (float(child.weights @ heights) for child in self.node.children)
        self.v, self.e, self.d = float(heights[self.node.gap]), (low + high) / 2, (high - low) / 2
        self.y = self.v + self.d**2 / (2 * self.limit())

    def limit(self, used=None):
        levels = int(math.log2(len(self.gaps) + 1)) - 1
        return 2 * self.total * ((self.used if used is None else used) / self.rounds + 2 / levels)

    def learn(self, p, shares, y, heights):
        """Account for a round; p and shares are the mixture, of which all parts below are means."""
        q, d, luck = self.node.chance, self.d, y - self.node.chance
        side, lie = np.where(p > q, 1, -1), np.abs(p - q)
        beyond = np.array([far_share(self.node, self.gaps, x) for x in p])
        assert ((beyond > 1 - 1e-12) | (lie >= 2 / 3 * self.node.step - 1e-12)).all()
        f, pull, near = shares @ beyond, shares @ (beyond * side * lie), shares @ ((1 - beyond) * side)
        now, then, before = self.limit(), self.limit(self.used + 1), (self.v, self.e, self.d)
        self.used += 1
        self.read(heights)
        assert self.v - before[0] == pytest.approx(shares @ (lie - side * luck) / 2, abs=1e-9)
        rise = shares @ ((1 - beyond) * (lie - side * luck)) / 2
        assert self.e - before[1] == pytest.approx(rise, abs=1e-9)
        assert self.d - before[2] == pytest.approx((f * luck - pull) / 2, abs=1e-9)
        noise = -(shares @ side) / 2 + (4 * d * f + f**2 * (1 - 2 * q) - 2 * f * pull) / (8 * then)
        assert abs(noise + near / 2) <= 1 + 1 / (8 * then) + 1e-12
        self.luck_y += (noise + near / 2) * luck
        self.luck_e += -near * luck / 2
        drift = shares @ lie / 2 + (-pull * d + (f**2 * q * (1 - q) + pull**2) / 4) / (2 * then)
        drift -= d**2 * (1 / now - 1 / then) / 2
        sure = min(1 / (144 * then), self.node.step / 6) - self.total / self.rounds
        assert drift >= sure - 1e-12
        self.sure += sure

    def check(self):
        e, y = self.first
        assert self.e >= e + self.luck_e - 1e-9
        assert self.y - self.luck_e >= y + self.sure + self.luck_y - 1e-9


def play(forecast, levels, rounds, total, seed, learn=lambda y: None):
    """Let the adversary play a whole game; return forecasts and outcomes.

    A forecaster may answer one forecast, or the forecasts and shares of a mixture and be judged by the mean.
    """
    rng = np.random.default_rng(seed)
    node, gaps = tree(levels)
    heights, played, y = np.zeros(len(gaps)), [], np.empty(rounds)
    visit = Accounts(node, gaps, heights, total, rounds)
    for t in range(rounds):
        while node.children and abs(visit.d) >= visit.limit():
            visit.check()
            node = node.children[int(visit.d > 0)]
            if node.children:
                visit = Accounts(node, gaps, heights, total, rounds)
        given = forecast(node.chance, visit.d)
        p, shares = given if isinstance(given, tuple) else ([given], [1.0])
        p, shares = np.clip(p, 0, 1), np.array(shares)
        y[t] = rng.random() < node.chance
        learn(int(y[t]))
        for x, share in zip(p, shares, strict=True):
            heights += share * np.where(gaps >= x, 1, -1) * (y[t] - x) / 2
            played.append((x, y[t], share))
        if node.children:
            visit.learn(p, shares, y[t], heights)
    if node.children:
        visit.check()
    p, outcomes, shares = np.array(played).T
    curve = np.array([(shares * (outcomes - p) * (p <= gap)).sum() for gap in gaps])
    assert heights == pytest.approx(curve - (shares * (outcomes - p)).sum() / 2, abs=1e-8)
    error = rounds * cb.kuiper_error(outcomes, p, sample_weight=shares)
    assert np.abs(heights).max() <= error + 1e-9
    return p, outcomes


def test_every_step_of_the_proof_whatever_the_forecaster_does():
    coins = np.random.default_rng(1)
    answers = [
        lambda q, d: q,
        lambda q, d: 0.5,
        lambda q, d: coins.random(),
        lambda q, d: coins.integers(0, 65) / 64,
        lambda q, d: q + 0.1 * coins.normal() * (coins.random() < 0.1),
        lambda q, d: q + 0.01 * np.sign(d),
        lambda q, d: q + 0.2 * np.sign(d),
        lambda q, d: q - 0.05 * np.sign(d),
        lambda q, d: ([q - 0.1, q + 0.1], [0.5, 0.5]),
        lambda q, d: ([q, q + 0.01 * np.sign(d), coins.random()], [0.5, 0.3, 0.2]),
    ]
    for number, forecast in enumerate(answers):
        for levels, total in ((1, 5.0), (3, 3.0), (5, 20.0)):
            play(forecast, levels, 150, total, number)


def test_the_constants_of_the_proof():
    levels = np.concatenate([np.arange(32, 5_000), np.geomspace(5_000, 1e300, 500)])
    log = np.log(levels)
    total = np.sqrt(log) / 700  # in units of sqrt(T), like all of the following
    needed = (5 + 3 / levels) * total + 1.2 * np.sqrt(log)
    assert (np.log(levels / 5) / (288 * total) >= needed).all()
    assert (levels**-2.16 / (3.6 * math.e * np.sqrt(log)) <= total / levels).all()
    root = np.exp2(2.5 * np.arange(32, 400))  # the least sqrt(T) with that many levels
    few = np.arange(32, 400)
    assert (4.0 ** (few - 1) <= 12 * root * np.sqrt(np.log(few)) / (700 * few)).all()
    assert (4 * root * np.sqrt(np.log(few)) / (700 * few) >= 2).all()


def test_truth_pays_for_every_level_of_the_tree():
    """Forecasts equal to the chances are led from node to node: the error grows with the number of levels."""
    means = []
    for levels in (1, 8):
        games = [play(lambda q, d: q, levels, 600, 2.4, seed) for seed in range(20)]
        means.append(np.mean([600 * cb.kuiper_error(y, p) for p, y in games]))
    assert means[1] > 1.5 * means[0]


def test_the_adversary_keeps_within_the_bound():
    errors = []
    for seed in range(10):
        forecaster = CutoffForecaster(seed=seed)
        p, y = play(lambda q, d, f=forecaster: f.predict_one(), 3, 600, 4.0, seed, forecaster.learn_one)
        errors.append(600 * cb.kuiper_error(y, p))
    assert np.mean(errors) <= cutoff_bound(600)
