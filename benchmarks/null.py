"""What exact simulation of the null costs, next to drawing the outcomes with numpy and doing nothing else."""

from __future__ import annotations

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, forecast_data, seconds
from calibrant.inference.testing import DEFAULT_TEST

N, DRAWS = 100_000, 999


def main() -> None:
    """Run and save."""
    report = Report("null")
    forecasts = cb.Forecasts(*forecast_data(N))
    drawing = seconds(lambda: draw(forecasts.values), 3)
    for name, at_most in (("kuiper", 2.0), ("atb", 2.0), (DEFAULT_TEST, 2.0), ("smooth", 40.0)):

        def test(name: str = name) -> None:
            cb.calibration_test(forecasts, measure=name, method="exact", draws=DRAWS, seed=1)

        repeats = 3 if at_most < 10 else 1
        what = f"{DRAWS} draws of {name} at n = {N:,}"
        report.ratio(
            what,
            seconds(test, repeats),
            "drawing the outcomes with numpy",
            drawing,
            at_most,
            name == "kuiper",
        )
    report.save()


def draw(chances: np.ndarray) -> None:
    """The yardstick: as many sets of outcomes, drawn and thrown away."""
    generator = np.random.default_rng(1)
    for _ in range(DRAWS):
        generator.random(len(chances)) < chances  # noqa: B015 - only the time counts


if __name__ == "__main__":
    main()
