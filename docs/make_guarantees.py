"""Write docs/guarantees.md: size, coverage and errors of the gate, simulated on many kinds of data.

    python docs/make_guarantees.py [--sets 400] [--full] [--page PATH]

Every cell draws its own data sets from a fixed seed. The default takes minutes; --full has all sizes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import calibrant as cb
from calibrant.evaluation.gate import judge
from calibrant.inference.interval import ConfidenceInterval
from calibrant.inference.null_outcomes import measured

LEVEL = 0.05
DRAWS = 99
POPULATION = 40_000  # records that stand for the population where its value is taken
SIZES = {"quick": (20, 200), "full": (20, 100, 500, 2_000, 20_000)}


@dataclass(frozen=True)
class Kind:
    """How predictions, weights and outcomes are drawn."""

    name: str
    predictions: Callable[[np.random.Generator, int], np.ndarray]
    weighted: bool = False
    fractional: bool = False
    sketched: bool = False


def _uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


def _beta(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(0.5, 1.5, n)


def _rare(mean: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: np.clip(rng.gamma(2.0, mean / 2, n), 1e-7, 0.4)


def _tied(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(1, 10, n) / 10


KINDS = (
    Kind("uniform", _uniform),
    Kind("beta", _beta),
    Kind("rare, 1 in 100", _rare(0.01)),
    Kind("rare, 1 in 1,000", _rare(0.001)),
    Kind("tied", _tied),
    Kind("weighted", _beta, weighted=True),
    Kind("fractional", _uniform, fractional=True),
    Kind("sketch", _beta, sketched=True),
    Kind("weighted sketch", _beta, weighted=True, sketched=True),
    Kind("fractional sketch", _uniform, fractional=True, sketched=True),
)

TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda v: v,
    "overconfident": lambda v: _expit(0.6 * np.log(v / (1 - v))),
    "twice as frequent": lambda v: np.minimum(2 * v, 0.5 + v / 2),
}


def _expit(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def drawn(kind: Kind, truth: str, n: int, seed: list[int]) -> cb.Forecasts:
    """Draw one data set."""
    rng = np.random.default_rng(seed)
    v = np.clip(kind.predictions(rng, n), 1e-9, 1 - 1e-9)
    rate = TRUTHS[truth](v)
    y = rng.beta(4 * rate, 4 * (1 - rate)) if kind.fractional else (rng.random(n) < rate).astype(float)
    w = np.exp(rng.normal(0, 0.7, n)) if kind.weighted else None
    if kind.sketched:
        return cb.Sketch.from_arrays(y, v, sample_weight=w, cells=4096).forecasts()
    return cb.Forecasts(y, v, sample_weight=w)


def population_value(kind: Kind, truth: str, name: str) -> float:
    """Return the value in the population: outcomes there are their rates, a score counts both outcomes."""
    rng = np.random.default_rng(0)
    v = np.clip(kind.predictions(rng, POPULATION), 1e-9, 1 - 1e-9)
    rate = TRUTHS[truth](v)
    return measured(cb.Forecasts(rate, v), cb.measures()[name], {})


@dataclass
class Cell:
    """What the data sets of one cell said."""

    kind: Kind
    truth: str
    n: int
    name: str
    sets: int = 0
    rejected: int = 0
    tested: int = 0
    covered: int = 0
    bounded: int = 0
    wrong: dict[str, int] = field(default_factory=lambda: {"pass": 0, "fail": 0})

    def most(self, share: float = LEVEL) -> float:
        """Return the most that a true share of this size gives by chance, at three standard deviations."""
        return share + 3 * math.sqrt(share * (1 - share) / max(1, self.sets))

    @property
    def holds(self) -> bool:
        """Whether size, coverage and the gate's two errors are as promised, within binomial error."""
        size = self.truth != "calibrated" or self.rejected <= self.most() * max(1, self.tested)
        coverage = self.covered >= (1 - self.most(0.07)) * self.bounded
        return size and coverage and all(count <= self.most() * self.sets for count in self.wrong.values())


def simulate(kind: Kind, truth: str, n: int, name: str, sets: int) -> Cell:
    """Test, bound and judge the data sets of one cell."""
    cell, value = Cell(kind, truth, n, name), population_value(kind, truth, name)
    row = cb.measures()[name]
    distance = abs(value - row.ideal) if row.signed else value
    # a limit just above the truth must not be failed, one just below it must not be passed
    limits = {"fail": distance * 1.001 + 1e-9, "pass": distance * 0.999 - 1e-9}
    for k in range(sets):
        forecasts = drawn(kind, truth, n, [k, n, 7])
        cell.sets += 1
        _test(cell, forecasts, k)
        found = _interval(cell, forecasts, k)
        if found is None:
            continue
        cell.bounded += 1
        cell.covered += found.lower - 1e-9 <= value <= found.upper + 1e-9
        for wrong, limit in limits.items():
            cell.wrong[wrong] += limit >= 0 and _outcome(found, limit, row.signed, row.ideal) == wrong
    return cell


def _test(cell: Cell, forecasts: cb.Forecasts, seed: int) -> None:
    try:
        pvalue = cb.calibration_test(forecasts, measure=cell.name, draws=DRAWS, seed=seed, threads=1).pvalue
    except cb.CalibrantError:  # fractions cannot be simulated; a slope needs both outcomes
        return
    cell.tested += 1
    cell.rejected += pvalue <= LEVEL


def _interval(cell: Cell, forecasts: cb.Forecasts, seed: int) -> ConfidenceInterval | None:
    try:
        if not forecasts.exact:
            cb.measure(forecasts, cell.name)
        return cb.confidence_interval(forecasts, measure=cell.name, draws=DRAWS, seed=seed, threads=1)
    except cb.CalibrantError:
        return None


def _outcome(found: ConfidenceInterval, limit: float, signed: bool, ideal: float) -> str:
    """Judge as the gate does, from the interval that is already there."""
    low, high = found.lower, found.upper
    if signed:
        ends = sorted((abs(low - ideal), abs(high - ideal)))
        low, high = (0.0 if low <= ideal <= high else ends[0]), ends[1]
    return "fail" if low > limit else "pass" if high <= limit else "unclear"


def cells(sizes: tuple[int, ...], sets: int, names: list[str]) -> Iterator[Cell]:
    """Simulate every cell."""
    for name in names:
        for kind in KINDS:
            if kind.sketched and not cb.measures()[name].certified:
                continue
            for truth in TRUTHS:
                for n in sizes:
                    yield simulate(kind, truth, n, name, sets)


def gate_agrees(forecasts: cb.Forecasts, name: str, limit: float, seed: int) -> bool:
    """Return whether the gate itself says what `_outcome` says."""
    row = cb.measures()[name]
    found = cb.confidence_interval(forecasts, measure=name, draws=DRAWS, seed=seed)
    gate = judge(forecasts, {name: limit}, confidence=0.95, draws=DRAWS, seed=seed)[0]
    return gate.outcome == _outcome(found, limit, row.signed, row.ideal)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def page(results: list[Cell], sets: int) -> str:
    """Return the page."""
    head = (Path(__file__).parent / "guarantees.in.md").read_text(encoding="utf-8").rstrip()
    missed = [cell for cell in results if not cell.holds]
    lines = [
        head,
        "",
        f"{len(results)} cells of {sets} data sets, {DRAWS} draws each; {len(missed)} cells outside the "
        "promise (marked !). All figures in percent; – where the question is refused.",
        "",
        "| measure | data | truth | n | size or power | coverage | wrong passes | wrong fails | |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for cell in results:
        figures = [
            _percent(cell.rejected, cell.tested),
            _percent(cell.covered, cell.bounded),
            _percent(cell.wrong["pass"], cell.sets),
            _percent(cell.wrong["fail"], cell.sets),
        ]
        mark = "" if cell.holds else "!"
        where = f"{cell.name} | {cell.kind.name} | {cell.truth} | {cell.n:,}"
        lines.append(f"| {where} | {' | '.join(figures)} | {mark} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Simulate and write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sets", type=int, default=400)
    options.add_argument("--full", action="store_true")
    options.add_argument("--measures", default=",".join(n for n, r in cb.measures().items() if r.headline))
    options.add_argument("--page", type=Path, default=Path(__file__).parent / "guarantees.md")
    given = options.parse_args()
    sizes = SIZES["full" if given.full else "quick"]
    results = []
    for cell in cells(sizes, given.sets, given.measures.split(",")):
        results.append(cell)
        given.page.write_text(page(results, given.sets), encoding="utf-8")  # as far as it is known
    print(f"{len(results)} cells, {sum(not cell.holds for cell in results)} outside the promise")


if __name__ == "__main__":
    main()
