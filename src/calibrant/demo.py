"""A generated data set with a known miscalibration, for the demo, the docs and experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.frames import to_first_frame
from calibrant.inputs import whole_number
from calibrant.parallel import recorded_seed
from calibrant.results import Array

TRUTH = (
    "The model was made overconfident (slope 0.8 on the logit scale), and it rates the self-employed as "
    "too safe (by 0.35 on the logit scale). The tests below should find both."
)


def demonstration(rows: int = 20_000, seed: int = 1) -> dict[str, npt.NDArray[Any]]:
    """Generate loans whose predicted default probabilities are wrong in a known way."""
    whole_number("rows", rows, 1)
    rng = np.random.default_rng(recorded_seed(seed))
    employment = rng.choice(
        ["employed", "self-employed", "retired", "student"], rows, p=[0.62, 0.14, 0.16, 0.08]
    )
    region = rng.choice(["north", "east", "south", "west"], rows)
    age = np.clip(rng.gamma(9.0, 5.0, rows), 18, 90).astype(np.int64)
    score = rng.normal(-1.9, 1.1, rows) - 0.01 * (age - 45)  # what the model believes, on the logit scale
    truth = 0.8 * (score + 1.9) - 1.9 + 0.35 * (employment == "self-employed")
    outcome = rng.random(rows) < _expit(truth)
    older = 0.55 * (score + 1.9) - 1.75 + rng.normal(0, 0.4, rows)  # a weaker model that knows its limits
    return {
        "default": outcome.astype(np.int64),
        "p": _expit(score),
        "p_old": _expit(older),
        "employment": employment,
        "region": region,
        "age": age,
        "month": 1 + np.arange(rows) * 12 // rows,
    }


def load_demo(rows: int = 20_000, seed: int = 1) -> Any:
    """Return the loans of the demo as a data frame: something to try everything on.

    The columns are `default` (the outcome, 0 or 1), `p` (the predicted probability), `p_old` (that of an
    older model, weaker and better calibrated), `employment`, `region`, `age`, and `month`, 1 to 12 in the
    order of the rows. The predictions `p` are wrong in a known way: overconfident (slope 0.8 on the logit
    scale), and too low for the self-employed.

    Parameters
    ----------
    rows : int
        How many loans to generate.
    seed : int
        Seed of the generator.

    Returns
    -------
    frame
        A pandas, Polars or PyArrow table, the first of them that is installed; else a dict of arrays.

    Examples
    --------
    >>> len(load_demo(100)["p"])
    100
    """
    return to_first_frame(demonstration(rows, seed))


def _expit(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))
