"""Table 3 of the testing paper: seconds to compute the smooth error, ours and a linear program."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import calibrant as cb
from reproduce.layout import table
from reproduce.testing_table1 import sample

PAPER = "Testing Calibration in Nearly-Linear Time"
TITLE = "Table 3: seconds to compute the smooth error"
SIZES = tuple(2**k for k in range(10, 16))
RUNS = 10
CAPS = {
    "calibrant": SIZES[-1],
    "HiGHS, linear program": 2**13,
    "HiGHS, flow form": 2**13,
    "plain dynamic program": 2**11,
}
PRINTED = {
    "paper: CVXPY LP": (0.105, 0.370, 1.58, 6.51, 45.7, 245),
    "paper: Gurobi flow": (0.063, 0.179, 0.238, 0.539, 1.45, 3.19),
    "paper: Corollary 1, Python": (0.177, 0.389, 0.899, 2.01, 4.66, 10.6),
    "paper: Corollary 1, PyPy": (0.079, 0.115, 0.176, 0.307, 0.621, 2.05),
}


def linear_program(f: cb.Forecasts) -> float:
    """Maximise residuals @ x with |x| <= 1 and |x_{j+1} - x_j| <= the gap."""
    from scipy import sparse
    from scipy.optimize import linprog

    m, gaps = f.levels, np.diff(f.values)
    rise = sparse.diags_array([-np.ones(m - 1), np.ones(m - 1)], offsets=[0, 1], shape=(m - 1, m))
    both = sparse.vstack([rise, -rise]).tocsr()
    found = linprog(
        -f.residuals, A_ub=both, b_ub=np.concatenate([gaps, gaps]), bounds=(-1, 1), method="highs"
    )
    return -float(found.fun)


def flow(f: cb.Forecasts) -> float:
    """Its dual: send the residuals along the line at the price of the gaps, or away at price 1."""
    from scipy import sparse
    from scipy.optimize import linprog

    m, gaps = f.levels, np.diff(f.values)
    edge = sparse.diags_array([np.ones(m - 1), -np.ones(m - 1)], offsets=[0, -1], shape=(m, m - 1))
    one = sparse.eye_array(m)
    incidence = sparse.hstack([edge, -edge, one, -one]).tocsr()
    cost = np.concatenate([gaps, gaps, np.ones(2 * m)])
    found = linprog(cost, A_eq=incidence, b_eq=f.residuals, bounds=(0, None), method="highs")
    return float(found.fun)


def dynamic_program(f: cb.Forecasts) -> float:
    """The value function of the last x, concave and piecewise linear, kept as its corners: O(m^2)."""
    x, y = np.array([-1.0, 1.0]), np.array([-1.0, 1.0]) * f.residuals[0]
    for gap, residual in zip(np.diff(f.values), f.residuals[1:], strict=True):
        top = int(np.argmax(y))
        x = np.concatenate([x[: top + 1] - gap, x[top:] + gap])
        y = np.concatenate([y[: top + 1], y[top:]])
        inside = (x > -1) & (x < 1)
        ends = np.interp([-1.0, 1.0], x, y)
        x = np.concatenate([[-1.0], x[inside], [1.0]])
        y = np.concatenate([ends[:1], y[inside], ends[1:]]) + residual * x
    return float(y.max())


SOLVERS: dict[str, Callable[[cb.Forecasts], float]] = {
    "calibrant": lambda f: cb.smooth_calibration_error(f),
    "HiGHS, linear program": linear_program,
    "HiGHS, flow form": flow,
    "plain dynamic program": dynamic_program,
}


def compared(n: int, runs: int = RUNS) -> tuple[dict[str, float], float]:
    """Return the mean seconds of each solver within its cap, and the largest difference of their values."""
    seconds: dict[str, list[float]] = {name: [] for name in SOLVERS if n <= CAPS[name]}
    largest = 0.0
    for run in range(runs):
        f = sample(n, run)
        answers = []
        for name, times in seconds.items():
            began = time.perf_counter()
            answers.append(SOLVERS[name](f))
            times.append(time.perf_counter() - began)
        largest = max(largest, float(np.ptp(answers)))
    return {name: float(np.mean(times)) for name, times in seconds.items()}, largest


def page() -> str:
    """Return the section of the docs page."""
    cb.smooth_calibration_error(sample(2**15, 0))  # once, so that loading does not count
    found = {n: compared(n, RUNS if n <= 2**11 else 3) for n in SIZES}
    rows = [
        (name, *(f"{found[n][0][name]:.4f}" if name in found[n][0] else "-" for n in SIZES))
        for name in SOLVERS
    ]
    rows += [(name, *(f"{x:g}" for x in printed)) for name, printed in PRINTED.items()]
    apart = max(difference for _, difference in found.values())
    text = (
        "Seconds, on whatever machine made this page; only ratios mean something. v ~ U[0, 0.99], "
        "y ~ Bernoulli(v + 0.01). HiGHS replaces the commercial solver. A dash: stopped at a cap, "
        f"because the solver takes minutes from there on. The values differ by at most {apart:.1g}."
    )
    return f"{text}\n\n{table(['solver', *(f'n = {n}' for n in SIZES)], rows)}"


if __name__ == "__main__":
    print(page())
