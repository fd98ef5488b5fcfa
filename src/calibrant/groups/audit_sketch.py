"""The audit of a grouped sketch: what rows would say, within proven bounds, wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.groups.coding import code_columns
from calibrant.groups.column_codes import Column
from calibrant.groups.family import Family
from calibrant.groups.strata import Strata
from calibrant.groups.strata_null import StrataNull
from calibrant.groups.strata_partition import divided
from calibrant.groups.subpopulations import offered_combinations
from calibrant.groups.variants import StatisticName
from calibrant.progress import Progress

MOST_ENTRIES = 1 << 18  # cells of finest groups whose outcomes are simulated
FEWEST_CELLS, MOST_CELLS = 64, 2048  # that p-values come from, however many groups there are


def strata_family(
    strata: Strata,
    groups: Any,
    *,
    depth: int,
    limit: int,
    min_size: int,
    min_variance: float,
    statistic: StatisticName,
    draws: int,
    seed: int,
    progress: Progress | None,
) -> tuple[Family, int]:
    """Test everyone and all combinations of columns; return also how many cells were simulated."""
    columns = _columns(strata, groups)
    cells = min(max(MOST_ENTRIES // len(strata.labels), FEWEST_CELLS), MOST_CELLS)
    tested = strata.coarse(cells) if draws else strata
    null = StrataNull(tested, statistic, draws, seed) if draws else None
    family = Family(strata, strata.terms(statistic), null, min_size, min_variance, progress)
    offered = 1 + offered_combinations(columns, depth)
    family.expected = min(1 + limit, offered)
    family.take_all(divided(strata, tested, columns, depth), 1 + limit, offered)
    if null is not None:
        null.keep()
    return family, tested.cells


def _columns(strata: Strata, groups: Any) -> list[Column]:
    """Code the labels of the finest groups, column by column: all of them, or those named."""
    named = [groups] if isinstance(groups, str) else list(strata.by if groups is None else groups)
    if not named:
        raise InvalidInputError(sentence("groups", "must name a column of the sketch", "got none"))
    for name in named:
        if name not in strata.by:
            raise reject_name("column of the sketch", name, list(strata.by))
    values = {name: [label[strata.by.index(name)] for label in strata.labels] for name in named}
    return code_columns(values, len(strata.labels), "groups")


def refuse_beside_a_sketch(
    y_prob: Any, sample_weight: Any, pos_label: Any, covariates: Any, nominal: Sequence[str], variant: str
) -> None:
    """Say what a sketch holds already, and what needs the rows."""
    if y_prob is not None or sample_weight is not None or pos_label is not None:
        rule = "holds outcomes, predictions and weights already"
        raise InvalidInputError(sentence("sketch", rule, hint="pass it alone"))
    if covariates is not None or len(nominal):
        hint = "make the sketch with by=[...], and leave covariates out"
        raise InvalidInputError(sentence("covariates", "need the rows", "got a sketch", hint))
    if variant != "plain":
        hint = "audit the rows themselves, or take the plain metric"
        raise InvalidInputError(sentence(f"variant {variant!r}", "needs the rows", "got a sketch", hint))
