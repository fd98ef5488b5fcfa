"""How boosted trees grow, and by which package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from calibrant.errors import MissingDependencyError, sentence

WORTH_THREADS = 200_000  # records; on fewer, threads that wait for one another cost more than they bring
Grower = Literal["lightgbm", "scikit-learn"]


@dataclass(frozen=True, slots=True)
class Growth:
    """How trees grow; the columns in `categorical` hold codes of categories, NaN is missing everywhere.

    `scattered` trees draw what a node may ask at random: LightGBM one threshold per column, scikit-learn
    half of the columns. Greedy trees hardly ever ask about two columns that say nothing one by one and much
    together.
    """

    categorical: tuple[int, ...] = ()
    trees: int = 400
    learning_rate: float = 0.03
    leaves: int = 15
    smallest_leaf: int = 100
    ridge: float = 10.0
    seed: int = 1
    scattered: bool = False


def grower() -> Grower:
    """Return which package grows the trees here."""
    if find_spec("lightgbm") is not None:
        return "lightgbm"
    if find_spec("sklearn") is not None:
        return "scikit-learn"
    hint = "pip install 'calibrant[boost]' for LightGBM, or 'calibrant[sklearn]' for scikit-learn"
    raise MissingDependencyError(sentence("boosted trees", "need LightGBM or scikit-learn", hint=hint))
