"""Logistic fits by machine code, at the ends of what floats can hold."""

from __future__ import annotations

import numpy as np

from calibrant.kernels.fits import logistic_fit


def test_a_heavy_event_beside_which_the_others_vanish_divides_by_no_zero():
    x = np.array([-0.96, 0.0, 0.04])
    fitted = logistic_fit(x, np.array([0.0, 1.0, 0.0]), np.array([1e-16, 1.0, 1e-17]), np.zeros(2))
    assert np.all(np.isfinite(fitted))
