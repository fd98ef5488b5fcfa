"""Shifts per level: the optimum of its own penalised likelihood, and precisions at their fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.fits.groups import COLUMN_PRIOR_RATE, Block, hierarchical


def sample(seed: int, n: int = 800) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Block], np.ndarray]:
    """Outcomes with shifts by one column of six levels; a column of four levels says nothing."""
    rng = np.random.default_rng(seed)
    x, a, b = rng.normal(size=n), rng.integers(-1, 6, n), rng.integers(0, 4, n)
    shifts = np.append(rng.normal(0, 1, 6), 0.0)
    y = (rng.random(n) < expit(0.2 + 0.8 * x + shifts[a])).astype(float)
    return x, y, rng.random(n) + 0.5, [Block(a, 6), Block(b, 4)], shifts


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_optimum_and_the_precisions_are_a_fixed_point(seed):
    x, y, w, blocks, _ = sample(seed)
    fit = hierarchical(x, y, w, blocks)
    prior, precision = fit.prior, [one.precision for one in fit.blocks]

    def loss(beta: np.ndarray) -> float:
        eta = beta[0] + beta[1] * x + blocks[0].taken(beta[2:8]) + blocks[1].taken(beta[8:])
        penalty = prior[0] * beta[0] ** 2 + prior[1] * (beta[1] - 1) ** 2
        penalty += precision[0] * beta[2:8] @ beta[2:8] + precision[1] * beta[8:] @ beta[8:]
        return float(w @ (np.logaddexp(0, eta) - y * eta) + penalty / 2)

    beta = np.concatenate(([fit.intercept, fit.slope], *(one.values for one in fit.blocks)))
    other = minimize(loss, np.append([0.0, 1.0], np.zeros(10)), method="BFGS", options={"gtol": 1e-7})
    assert loss(beta) <= other.fun + 1e-7
    design = np.column_stack((np.ones(len(x)), x, *(np.eye(b.levels + 1)[b.codes][:, :-1] for b in blocks)))
    q = expit(design @ beta)
    penalties = np.concatenate((prior, np.full(6, precision[0]), np.full(4, precision[1])))
    covariance = np.linalg.inv(design.T @ (design * (w * q * (1 - q))[:, None]) + np.diag(penalties))
    errors = np.sqrt(np.diag(covariance))
    assert fit.blocks[0].errors == pytest.approx(errors[2:8], rel=1e-6)
    u = fit.blocks[0].values
    effective = 6 - precision[0] * np.trace(covariance[2:8, 2:8])
    prior_pull = COLUMN_PRIOR_RATE / np.sqrt(precision[0])
    assert precision[0] == pytest.approx((effective + prior_pull) / (u @ u), rel=0.03)


def test_real_shifts_are_found_and_noise_is_shrunk_away():
    x, y, w, blocks, shifts = sample(5, 6000)
    fit = hierarchical(x, y, np.ones_like(w), blocks)
    centred = fit.blocks[0].values + fit.intercept - 0.2
    assert np.all(np.abs(centred - shifts[:6]) < 5 * fit.blocks[0].errors + 0.1)
    assert np.max(np.abs(fit.blocks[1].values)) < 0.1
    assert fit.blocks[1].precision > 10 * fit.blocks[0].precision


def test_perfectly_split_outcomes_stay_finite():
    x = np.linspace(-3, 3, 60)
    y = (x > 0).astype(float)
    fit = hierarchical(x, y, np.ones(60), [Block((x > 0).astype(np.int64), 2)])
    assert np.isfinite([fit.intercept, fit.slope, *fit.blocks[0].values]).all()


def test_no_level_adds_nothing():
    block = Block(np.array([-1, 0, 1]), 2, np.array([5.0, 2.0, 3.0]))
    assert block.taken(np.array([1.0, -1.0])).tolist() == [0.0, 2.0, -3.0]


@pytest.mark.parametrize("seed", range(3))
def test_the_precision_maximises_the_evidence_with_its_prior(seed):
    """Laplace's evidence of one column by brute force; Fellner and Schall leave out how the fit moves."""
    rng = np.random.default_rng(seed)
    x, codes = rng.normal(size=3000), rng.integers(0, 40, 3000)
    y = (rng.random(3000) < expit(x + rng.normal(0, 0.4, 40)[codes])).astype(float)
    block = Block(codes, 40)
    fit = hierarchical(x, y, np.ones(3000), [block])
    design = np.column_stack((np.ones(3000), x, np.eye(40)[codes]))
    beta = np.concatenate(([fit.intercept, fit.slope], fit.blocks[0].values))

    def evidence(precision: float) -> float:
        penalty = np.concatenate((fit.prior, np.full(40, precision)))
        center, now = np.append([0.0, 1.0], np.zeros(40)), beta.copy()
        for _ in range(8):
            q = expit(design @ now)
            hessian = design.T @ (design * (q * (1 - q))[:, None]) + np.diag(penalty)
            now = now - np.linalg.solve(hessian, design.T @ (q - y) + penalty * (now - center))
        eta = design @ now
        loss = np.sum(np.logaddexp(0, eta) - y * eta) + penalty @ (now - center) ** 2 / 2
        volume = (40 * np.log(precision) - np.linalg.slogdet(hessian)[1]) / 2
        return float(volume - loss - COLUMN_PRIOR_RATE / np.sqrt(precision))

    found = fit.blocks[0].precision
    grid = found * np.exp(np.linspace(-1, 1, 21))
    best = grid[np.argmax([evidence(one) for one in grid])]
    assert abs(np.log(best / found)) <= 0.2
