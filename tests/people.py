"""People with covariates and predictions, right for everyone or wrong for a few."""

from __future__ import annotations

import numpy as np
import pandas as pd


def people(seed: int, n: int = 4000) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Calibrated predictions of people with a few covariates, some of them missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "income": np.round(rng.lognormal(10, 1, n), 2),
            "sex": rng.choice(["F", "M"], n),
            "region": rng.choice([f"R{k}" for k in range(10)], n),
        }
    )
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    frame.loc[rng.random(n) < 0.05, "region"] = None
    p = rng.beta(2, 3, n)
    return (rng.random(n) < p).astype(int), p, frame


def planted(seed: int) -> tuple[np.ndarray, np.ndarray, pd.DataFrame, np.ndarray]:
    """Predictions that are wrong for the women of one region, 2% of 20,000 rows, and right for others."""
    rng = np.random.default_rng(seed)
    n = 20_000
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["F", "M"], n),
            "region": rng.choice([f"R{k}" for k in range(25)], n),
        }
    )
    bad = ((frame["sex"] == "F") & (frame["region"] == "R7")).to_numpy()
    p = rng.beta(2, 3, n)
    y = rng.random(n) < np.where(bad, np.clip(p + 0.2, 0, 1), p)
    return y.astype(int), p, frame, bad
