"""Samples of several classes, and the methods that take them."""

from __future__ import annotations

import numpy as np

import calibrant as cb

SEVERAL = [name for name, row in cb.recalibrations().items() if row.fit_classes is not None]


def overconfident(n=400, classes=3, seed=0, temperature=2.0):
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(n, classes)) * 1.5
    truth = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    labels = (rng.random(n)[:, None] > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, classes - 1)
    sharp = np.exp(temperature * eta)
    return labels, sharp / sharp.sum(axis=1, keepdims=True)
