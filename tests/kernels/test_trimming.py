"""The compiled loops agree with the same source as plain Python, and rows agree with single calls."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.kernels import cumulative as laplace
from calibrant.kernels import smooth


def walk(n, seed, bias=0.0):
    rng = np.random.default_rng(seed)
    values = np.unique(rng.random(n))
    residuals = ((rng.random(len(values)) < values + bias) - values) / len(values)
    return values, residuals


def solved(values, residuals, lipschitz, run):
    curve = np.concatenate([[0.0], np.cumsum(residuals)])
    gaps = lipschitz * np.diff(values)
    inner = curve[1:-1].copy()
    lower, upper = run(smooth.both_ends)(inner, gaps)
    if gaps.sum() <= 1:
        np.testing.assert_allclose(run(smooth.upper_ends)(inner, gaps), np.maximum(upper, 0), atol=1e-15)
        np.testing.assert_allclose(-run(smooth.upper_ends)(-inner, gaps), np.minimum(lower, 0), atol=1e-15)
    path = run(smooth.swept_back)(lower, upper, curve[-1])
    return path, run(smooth.lipschitz_witness)(path, curve, gaps)


@pytest.mark.parametrize("lipschitz", [0.4, 1.0, 2.0, 30.0])
@pytest.mark.parametrize("bias", [0.0, 0.2, -0.2])
def test_compiled_and_plain_agree(lipschitz, bias):
    values, residuals = walk(700, 1, bias)
    plain = solved(values, residuals, lipschitz, lambda kernel: kernel.plain)
    fast = solved(values, residuals, lipschitz, lambda kernel: kernel.machine_code())
    for a, b in zip(plain, fast, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)


@pytest.mark.parametrize("draws", [1, 60])  # below and above the size from which numba is used
@pytest.mark.parametrize("lipschitz", [1.0, 2.0])
def test_rows_agree_with_single_calls(draws, lipschitz):
    values, residuals = walk(500, 2)
    rows = residuals * np.linspace(-1, 2, draws)[:, None]
    gaps = lipschitz * np.diff(values)
    for row, found in zip(rows, smooth.smooth_values(values, rows, lipschitz), strict=True):
        curve = np.concatenate([[0.0], np.cumsum(row)])
        path = smooth.denoised(curve, gaps)
        assert found == pytest.approx(smooth.denoising_cost(path, curve, gaps), abs=1e-15)
    for row, found in zip(rows, laplace.laplace_forms(values, rows, 0.1), strict=True):
        assert found == pytest.approx(laplace.laplace_form(values, row, 0.1)[0], rel=1e-12)


def test_one_level():
    assert smooth.smooth_values(np.array([0.3]), np.array([[-0.3], [0.2]])).tolist() == [0.3, 0.2]
    assert laplace.laplace_forms(np.array([0.3]), np.array([[-0.5]])).tolist() == [0.25]


def test_long_curves_run_compiled_on_two_threads():
    values, residuals = walk(smooth.COMPILE_ABOVE + 2_000, 3)
    curve = np.concatenate([[0.0], np.cumsum(residuals)])
    gaps = np.diff(values)
    lower, upper = smooth.both_ends.plain(curve[1:-1], gaps)
    expected = smooth.swept_back.plain(lower, upper, curve[-1])
    np.testing.assert_allclose(smooth.denoised(curve, gaps), expected, atol=1e-14)


def test_machine_code_once_made_serves_every_length():
    """With plain Python up to 20,000 levels the smooth error of 10,000 took longer than that of 30,000."""
    values, residuals = walk(smooth.COMPILE_ABOVE + 2_000, 3)
    curve = np.concatenate([[0.0], np.cumsum(residuals)])
    smooth.denoised(curve, np.diff(values))
    assert smooth.upper_ends.worth_compiling(1)
    for m in (1, 2, 3, 50, 3_000):
        gaps, part = np.diff(values[:m]), curve[: m + 1]
        lower, upper = smooth.both_ends.plain(part[1:-1].copy(), gaps)
        slow = smooth.swept_back.plain(lower, upper, part[-1])
        fast = smooth.denoised(part, gaps)
        costs = [smooth.denoising_cost(path, part, gaps) for path in (slow, fast)]
        assert costs[0] == pytest.approx(costs[1], abs=1e-15)
