"""The best report there is, as far as a search finds it: each way of pooling rounds is searched by itself."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.results import Array
from calibrant.truthfulness.outcomes import Labels, pools

Objective = Callable[[Array], float]

TIE = 1e-9  # a report this near to the truth's value ties with it
OTHER = 1e-3  # in some round: a report that differs by less is taken for the truth
GRID = 21  # values tried when all rounds are pooled
COARSE = 11  # values tried per block when there are two
STARTS = 3  # of a face that are descended from
ROUGH, FINE = 1e-4, 1e-9  # to which descents go that look around, and the last one
SHARE = 0.75  # of the time is for looking around, the rest for a last descent from the best
NEAR = 1e-6  # by which blocks are held apart when their order matters and their value does not


@dataclass(slots=True, eq=False)
class BestReport:
    """The best report so far, and whether any other report ties with the truth."""

    truth: Array
    honest: float
    value: float
    report: Array
    tied: bool = False
    finished: bool = True
    deadline: float = field(default=np.inf)

    def offer(self, value: float, report: Array) -> None:
        """Keep a report if it is better than the best; note if it ties with the truth."""
        other = bool(np.max(np.abs(report - self.truth)) > OTHER)
        self.tied |= other and abs(value - self.honest) <= TIE
        if other and value < self.value - 1e-12:
            self.value, self.report = value, report.copy()

    def late(self) -> bool:
        """Return whether the time is up, and remember it."""
        if time.monotonic() > self.deadline:
            self.finished = False
        return not self.finished


def best_report(expected: Objective, truth: Array, *, budget: float, seed: int) -> BestReport:
    """Search the reports: starts on every face first, then descents, the most promising first."""
    began, honest = time.monotonic(), expected(truth)
    best = BestReport(truth, honest, honest, truth.copy(), deadline=began + SHARE * budget)
    for look in (_means, _corners, _pooled, _descents_from_means, _thorough):
        look(expected, best, seed)
        if not best.finished:
            break
    if best.value < honest:
        _polish(expected, best, began + budget)
    return best


def only_reports(expected: Objective, truth: Array, reports: Array) -> BestReport:
    """Return the best of the reports given."""
    honest = expected(truth)
    best = BestReport(truth, honest, honest, truth.copy())
    for report in reports:
        best.offer(expected(report), report)
    return best


def _polish(expected: Objective, best: BestReport, deadline: float) -> None:
    """Descend once more from the best report, in the time that was kept for it."""
    ended, best.finished, best.deadline = best.finished, True, deadline
    _, face = np.unique(best.report, return_inverse=True)
    _descend(expected, best, face, _on_face(best.report, face), FINE)
    best.finished &= ended


def _means(expected: Objective, best: BestReport, seed: int) -> None:
    """Every way to pool, at the mean of the truth per block."""
    for face in pools(len(best.truth)):
        if best.late():
            return
        report = _on_face(best.truth, face)[face]
        best.offer(expected(report), report)


def _corners(expected: Objective, best: BestReport, seed: int) -> None:
    """Certainty: the median of each round, and everything rounded down or up."""
    for report in (np.round(best.truth), np.zeros(len(best.truth)), np.ones(len(best.truth))):
        best.offer(expected(report), report)


def _pooled(expected: Objective, best: BestReport, seed: int) -> None:
    """One value for all rounds, over a grid from the mean outwards, with a descent from the best."""
    n = len(best.truth)
    together = np.zeros(n, dtype=np.intp)
    grid = np.linspace(0, 1, GRID)
    values = grid[np.argsort(np.abs(grid - best.truth.mean()), kind="stable")]  # slow measures end early
    tried = []
    for value in values:
        if best.late():
            return
        report = np.full(n, value)
        tried.append(expected(report))
        best.offer(tried[-1], report)
    _descend(expected, best, together, values[[int(np.argmin(tried))]])


def _descents_from_means(expected: Objective, best: BestReport, seed: int) -> None:
    for face in pools(len(best.truth)):
        _descend(expected, best, face, _on_face(best.truth, face))


def _thorough(expected: Objective, best: BestReport, seed: int) -> None:
    """Grids, random starts and blocks a hair apart, on every face: the best few are descended from."""
    generator = np.random.default_rng(seed)
    for face in pools(len(best.truth)):
        tried: list[tuple[float, int, Array]] = []
        for start in _starts(best.truth, face, generator):
            if best.late():
                return
            report = start[face]
            tried.append((expected(report), len(tried), start))
            best.offer(tried[-1][0], report)
        for _, _, start in sorted(tried, key=lambda item: item[:2])[:STARTS]:
            _descend(expected, best, face, start)


def _starts(truth: Array, face: Labels, generator: np.random.Generator) -> Iterator[Array]:
    centre, blocks = _on_face(truth, face), int(face.max()) + 1
    if blocks == 2 and len(truth) <= 4:
        for pair in itertools.product(np.linspace(0, 1, COARSE), repeat=2):
            yield np.array(pair)
    if 2 <= blocks <= 3:
        for order in itertools.permutations(range(blocks)):
            yield np.clip(truth.mean() + NEAR * (np.array(order) - (blocks - 1) / 2), 0, 1)
    for _ in range(3):
        yield np.clip(centre + generator.normal(0, 0.2, blocks), 0, 1)


def _on_face(report: Array, face: Labels) -> Array:
    """Return one value per block: the mean of the report over its rounds."""
    return np.asarray(np.bincount(face, report) / np.bincount(face))


def _descend(
    expected: Objective, best: BestReport, face: Labels, start: Array, precision: float = ROUGH
) -> None:
    """Improve one value per block by the simplex method of Nelder and Mead, as long as there is time."""
    from scipy.optimize import minimize

    if best.late():
        return

    def value(blocks: Array) -> float:
        report = np.clip(blocks, 0.0, 1.0)[face]
        here = expected(report)
        best.offer(here, report)
        if best.late():
            raise StopIteration
        return here

    options: Any = {"xatol": precision, "fatol": precision**2, "maxfev": 200 * len(start)}
    try:
        minimize(value, start, method="Nelder-Mead", options=options)
    except StopIteration:
        return
