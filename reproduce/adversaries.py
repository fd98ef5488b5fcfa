"""Seven adversaries against online forecasters, a million rounds in a blink.

Five fix the chance of every outcome beforehand. Two look at the forecast: "opposite" answers 1 whenever it is
below 1/2, "greedy" makes the error as large as it can at once. Against a forecaster that flips coins they see
the mixture that it draws from, and not the coin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.kernels.online import chosen_pair, cutoff_pair, run_grid, settle, usable_cell
from calibrant.online.bins import BinForecaster, counter_uniforms
from calibrant.online.bounds import cutoff_block
from calibrant.online.cutoff import CutoffForecaster
from calibrant.online.distance import DistanceForecaster
from calibrant.results import Array

Integers = npt.NDArray[np.int64]

FIXED, OPPOSITE, GREEDY = 0, 1, 2
NAMES = ("iid", "drift", "opposite", "greedy", "blocks", "bits then stop", "sweep")
WORDS = {
    "iid": "independent outcomes, rate .37",
    "drift": "drifting rate, .5 + .4 sin",
    "opposite": "y = 1 when the forecast is below 1/2",
    "greedy": "greedy on the error",
    "blocks": "blocks of sqrt(T) equal outcomes",
    "bits then stop": "fair bits, then ones",
    "sweep": "rate sweeps 0 to 1 to 0",
}

grid_rounds, grid_cell = run_grid, compiled(usable_cell)  # compiled along with the loops below
pair_of, settled = compiled(chosen_pair), compiled(settle)
mixed_points = cutoff_pair


def kind_of(name: str) -> int:
    """Return whether the adversary looks at the forecast, and how."""
    return {"opposite": OPPOSITE, "greedy": GREEDY}.get(name, FIXED)


def chances(name: str, rounds: int) -> Array:
    """Return the chance of an event in each round; what looks at forecasts needs none."""
    t = np.arange(rounds)
    return {
        "iid": np.full(rounds, 0.37),
        "drift": 0.5 + 0.4 * np.sin(8 * math.pi * t / rounds),
        "blocks": ((t // math.isqrt(rounds)) & 1).astype(float),
        "bits then stop": np.where(t < rounds // 2, 0.5, 1.0),
        "sweep": 1 - np.abs(1 - 2 * t / rounds),
    }.get(name, np.full(rounds, 0.5))


@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """Outcomes and forecasts of all rounds, and the forecaster's certificate after each."""

    outcomes: Array
    predictions: Array
    certificates: Array


def against_grid(name: str, rounds: int, seed: int = 0) -> Game:
    """Play a DistanceForecaster, step by step the same as its public methods."""
    grid = DistanceForecaster()._grid
    capacity = math.isqrt(3 * rounds + 1) + 8
    held = (grid.points, grid.charges, grid.limits)
    points, charges, limits = (np.concatenate([x, np.zeros(capacity)]) for x in held)
    uses = np.concatenate([grid.uses, np.zeros(capacity + 1, np.int64)])
    counts, sums = np.array([len(grid.points), grid.cell, 0]), np.zeros(2)
    thrown, out = np.random.default_rng(seed).random(rounds), [np.empty(rounds) for _ in range(3)]
    play_grid(chances(name, rounds), thrown, kind_of(name), points, charges, limits, uses, counts, sums, *out)
    return Game(*out)


@compiled
def play_grid(
    chance: Array, thrown: Array, kind: int, points: Array, charges: Array, limits: Array, uses: Integers,
    counts: Integers, sums: Array, outcomes: Array, predictions: Array, certificates: Array,
) -> None:  # fmt: skip
    """Let the adversary see each forecast, and the forecaster learn each outcome."""
    bias = {0.5: 0.0}
    none, end, steered = np.empty(0), np.ones(1, np.int64), np.empty(1, np.bool_)
    for t in range(len(chance)):
        cell = grid_cell(charges, limits, min(counts[1], counts[0] - 2))
        p = 0.5 * (points[cell] + points[cell + 1])
        seen = bias.get(p, 0.0)
        event = thrown[t] < chance[t]
        if kind == 1:
            event = p < 0.5
        if kind == 2:
            event = seen > 0.0 or (seen == 0.0 and p < 0.5)
        outcomes[t] = 1.0 if event else 0.0
        grid_rounds(
            outcomes[t : t + 1], none, end, points, charges, limits, uses, counts, sums,
            0.0, 1.0, True, predictions[t : t + 1], certificates[t : t + 1], steered,
        )  # fmt: skip
        bias[p] = seen + outcomes[t] - p


def against_bins(forecaster: BinForecaster, name: str, rounds: int, seed: int = 0) -> Game:
    """Play a forecaster with one table of bins (it has a horizon); its table is left as it was."""
    table = forecaster._tables[0]
    counted = [np.array(part, dtype=np.int64) for part in (table.answers, table.events)]
    weights = [np.array(part) for part in (table.up, table.down)]
    thrown, own = np.random.default_rng(seed).random(rounds), counter_uniforms(forecaster.seed, 0, rounds)
    out = [np.empty(rounds) for _ in range(3)]
    play_bins(
        chances(name, rounds), thrown, own, kind_of(name), *counted, *weights,
        np.array([forecaster._last]), table.quadratic, *out,
    )  # fmt: skip
    return Game(*out)


@compiled
def play_bins(
    chance: Array, thrown: Array, own: Array, kind: int, answers: Integers, events: Integers, up: Array,
    down: Array, last: Integers, quadratic: bool, outcomes: Array, predictions: Array, errors: Array,
) -> None:  # fmt: skip
    """Let the adversary see each mixture, then draw, and learn; `errors` gets the sum of absolute biases."""
    bins, error = answers.shape[1], 0.0
    everybody = np.zeros(1, np.int64)
    for t in range(len(chance)):
        low, high, share = pair_of(up, down, everybody, last[0], bins)
        mixture = (share * (low + 0.5) + (1.0 - share) * (high + 0.5)) / bins
        event = thrown[t] < chance[t]
        if kind == 1:
            event = mixture < 0.5
        if kind == 2:
            gain = _gain(answers, events, low, high, share)
            event = gain > 0.0 or (gain == 0.0 and mixture < 0.5)
        i = high if high != low and own[t] >= share else low
        last[0] = i
        outcomes[t] = 1.0 if event else 0.0
        predictions[t] = (i + 0.5) / bins
        before = abs(events[0, i] - answers[0, i] * predictions[t])
        settled(answers, events, up, down, everybody, i, outcomes[t], quadratic)
        error += abs(events[0, i] - answers[0, i] * predictions[t]) - before
        errors[t] = error


def _gain(answers: Any, events: Any, low: int, high: int, share: float) -> float:
    """Return by how much more the sum of absolute biases grows, in the mean, if the outcome is 1."""
    bins, total = answers.shape[1], 0.0
    for i, part in ((low, share), (high, 1.0 - share)):
        middle = (i + 0.5) / bins
        bias = events[0, i] - answers[0, i] * middle
        total += part * (abs(bias + 1.0 - middle) - abs(bias - middle))
    return total


def against_cutoff(forecaster: CutoffForecaster, name: str, rounds: int, seed: int = 0) -> Game:
    """Play a fresh CutoffForecaster, block by block; it is left as it was."""
    chance, thrown = chances(name, rounds), np.random.default_rng(seed).random(rounds)
    own, out = counter_uniforms(forecaster.seed, 0, rounds), [np.empty(rounds) for _ in range(3)]
    curve, last, begin = forecaster._curve(), 0, 0
    play_cutoff.compile_now()
    while begin < rounds:
        points, rate, end = cutoff_block(begin + 1, forecaster.horizon)
        finer, part = points // (len(curve) - 2), slice(begin, int(min(end, rounds)))
        curve = np.concatenate([curve[:1], np.repeat(curve[1:-1], finer), curve[-1:]])
        played = (chance[part], thrown[part], own[part], kind_of(name), curve, rate, last * finer)
        last, begin = int(play_cutoff(*played, *(column[part] for column in out))), part.stop
    return Game(*out)


@compiled
def play_cutoff(
    chance: Array, thrown: Array, own: Array, kind: int, curve: Array, rate: float, last: int,
    outcomes: Array, predictions: Array, errors: Array,
) -> int:  # fmt: skip
    """Let the adversary see each mixture, then draw, and learn; `errors` gets the range of the curve."""
    points = len(curve) - 2
    for t in range(len(chance)):
        low, high, share = mixed_points(curve, rate, last)
        mixture = (share * low + (1.0 - share) * high) / points
        event = thrown[t] < chance[t]
        if kind == 1:
            event = mixture < 0.5
        if kind == 2:  # push the total above the mixture further from 0
            event = curve[-1] > 0.0 or (curve[-1] == 0.0 and mixture < 0.5)
        last = low if high == low or own[t] < share else high
        outcomes[t] = 1.0 if event else 0.0
        predictions[t] = last / points
        for g in range(last + 1, len(curve)):
            curve[g] += outcomes[t] - predictions[t]
        errors[t] = curve.max() - curve.min()
    return last
