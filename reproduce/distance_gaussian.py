"""Theorem 8.6 of the distance paper: the Gaussian kernel does not see what the Laplace kernel sees."""

from __future__ import annotations

import numpy as np

import calibrant as cb
from reproduce.layout import lines_figure, table

PAPER = "A Unifying Theory of Distance from Calibration"
TITLE = "Theorem 8.6: the Gaussian kernel is unsound"
SIZES = tuple(range(3, 9))
LARGEST = 0.2  # residual


def forecasts(m: int) -> cb.Forecasts:
    """M points on [1/4, 3/4], residuals along the smallest eigenvector of the Gaussian Gram matrix."""
    points = np.linspace(0.25, 0.75, m)
    vector = np.linalg.eigh(np.exp(-((points[:, None] - points) ** 2)))[1][:, 0]
    return cb.Forecasts(points + LARGEST * vector / np.abs(vector).max(), points)


def row(m: int) -> tuple[float, float, float]:
    """Return the smooth, Gaussian and Laplace errors."""
    f = forecasts(m)
    gaussian = cb.kernel_calibration_error(f, kernel="gaussian")
    return cb.smooth_calibration_error(f), gaussian, cb.kernel_calibration_error(f)


def page() -> str:
    """Return the section of the docs page."""
    rows = {m: row(m) for m in SIZES}
    names = ("smooth", "Gaussian kernel", "Laplace kernel")
    lines = {name: (SIZES, [float(f"{rows[m][k]:.2g}") for m in SIZES]) for k, name in enumerate(names)}
    figure = lines_figure("gaussian", lines, x="points", y="calibration error")
    text = (
        "The paper proves that the Gaussian kernel error can be smaller than any power of the distance, and "
        "prints no numbers. Residuals along the smallest eigenvector of its Gram matrix show it: the smooth "
        "and the Laplace error fall like a power of the number of points, the Gaussian one far faster."
    )
    # the eigenvector of eight points has few digits that every machine agrees on
    cells = [(m, *(f"{value:.2g}" for value in rows[m])) for m in SIZES]
    return f"{text}\n\n{table(['points', *names], cells)}\n\n{figure}"


if __name__ == "__main__":
    print(page())
