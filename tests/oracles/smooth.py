"""Slow and obviously right: the smooth family as linear programs, kernels as double sums."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.special import ndtr

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def smooth_by_linear_program(values, residuals, lipschitz=1.0):
    """max sum b_j x_j over |x_j| <= 1 and |x_{j+1} - x_j| <= L (v_{j+1} - v_j).

    The variables are x_1 and the slopes (x_{j+1} - x_j) / gap_j, all in [-1, 1]: HiGHS has absolute
    tolerances, which gaps of 1e-9 would drown in.
    """
    gaps = lipschitz * np.diff(values)
    to_weights = np.tril(np.ones((len(values), len(values)))) * np.concatenate([[1.0], gaps])
    scale = max(np.sum(np.abs(residuals)), 1e-300)
    found = linprog(
        -(residuals / scale) @ to_weights,
        np.vstack([to_weights, -to_weights]),
        np.ones(2 * len(values)),
        bounds=(-1, 1),
        options=TIGHT,
    )
    assert found.status == 0, found.message
    return -found.fun * scale


def earth_mover_by_linear_program(values, outcomes, weights):
    """The transport cost from the joint law of (v, y) to that of (v, Bernoulli(v)).

    The cost of moving (v, y) to (v', y') is |v - v'| + |y - y'|, as in the distance paper.
    """
    m = len(values)
    here = np.concatenate([weights - outcomes, outcomes])
    there = np.concatenate([weights * (1 - values), weights * values])
    place = np.tile(values, 2)
    layer = np.repeat([0.0, 1.0], m)
    cost = np.abs(place[:, None] - place) + np.abs(layer[:, None] - layer)
    size = 2 * m
    leaving = np.kron(np.eye(size), np.ones(size))
    arriving = np.kron(np.ones(size), np.eye(size))
    # One of the equalities follows from the others: drop it, or rounding makes the program infeasible.
    rows = np.vstack([leaving, arriving])[:-1]
    found = linprog(cost.ravel(), A_eq=rows, b_eq=np.concatenate([here, there])[:-1], options=TIGHT)
    assert found.status == 0, found.message
    return found.fun


def kernel_by_double_sum(values, residuals, kernel):
    square = sum(
        b * c * kernel(u, v)
        for u, b in zip(values, residuals, strict=True)
        for v, c in zip(values, residuals, strict=True)
    )
    return np.sqrt(max(square, 0.0))


def convolved_by_images(values, residuals, bandwidth):
    """Integral of |density| of the residuals convolved with a reflected Gaussian, by its mirror images.

    Between two changes of sign the integral is a difference of normal distribution functions.
    """
    reach = int(np.ceil(10 * bandwidth)) + 1
    images = np.concatenate([s * values + 2 * k for s in (1, -1) for k in range(-reach, reach + 1)])
    masses = np.tile(residuals, 2 * (2 * reach + 1))

    def density(t):
        return np.exp(-(((np.asarray(t)[..., None] - images) / bandwidth) ** 2) / 2) @ masses

    near = np.concatenate([values + bandwidth * d for d in np.arange(-8, 8.1, 0.5)])
    fine = np.unique(np.concatenate([np.linspace(0, 1, 501), near]))
    fine = fine[(fine >= 0) & (fine <= 1)]
    cuts = [0.0, 1.0]
    signs = np.sign([float(density(t)) for t in fine])  # one by one: a product of matrices rounds otherwise
    for i in np.flatnonzero(np.diff(signs)):
        cuts.append(brentq(density, fine[i], fine[i + 1], xtol=1e-15))
    below = ndtr((np.sort(cuts)[:, None] - images) / bandwidth) @ masses
    return float(np.sum(np.abs(np.diff(below))))
