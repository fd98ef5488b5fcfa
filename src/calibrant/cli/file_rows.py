"""The columns of a file that evaluate and check work on, read once; errors name the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.inputs import Names
from calibrant.records import Checked, Missing, Records, check_records, swapped
from calibrant.scale.files import FileNames, read_table

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.variants import VariantName


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """Forecasts that know their rows, and columns of groups."""

    forecasts: Forecasts
    groups: Mapping[str, Any] | None
    ids: Any = None

    def audit(self, *, draws: int, seed: int) -> Audit:
        """Audit the groups; fractional outcomes by the variance they show."""
        from calibrant.groups.audit import audit

        variant: VariantName = "plain" if self.forecasts.binary else "real"
        return audit(self.forecasts, groups=self.groups, draws=draws, seed=seed, variant=variant)


def read_rows(
    file: FileNames,
    *,
    outcome: str,
    prediction: str,
    weight: str | None,
    missing: Missing,
    groups: Sequence[str] | None,
    point: str | None = None,
) -> FileRows:
    """Read the columns named, check them once, and put them in order once if there are groups to cut.

    What looks like swapped columns is refused here: nobody reads warnings.
    """
    names = Names.of_columns(outcome, prediction, weight)
    wanted = [outcome, prediction] + ([weight] if weight else [])
    labels = list(dict.fromkeys([*(groups or ()), *([point] if point else [])]))
    numbers, categories = read_table(file, wanted, labels)
    checked = check_records(
        numbers[outcome], numbers[prediction], numbers[weight] if weight else None, missing, names
    )
    refuse_swapped(checked, names)
    ids = categories[point] if point else None
    if not groups:
        return FileRows(Forecasts.of_checked(checked), None, ids)
    cut = {name: categories[name] for name in groups}
    return FileRows(Forecasts.of_records(Records.of(checked)), cut, ids)


def refuse_swapped(checked: Checked, names: Names) -> None:
    """Refuse fractions as outcomes beside predictions of 0 and 1 alone."""
    if swapped(checked):
        raise swapped_columns(names)


def swapped_columns(names: Names) -> InvalidInputError:
    """Return the error that says so."""
    got = f"got fractions in {names.outcome}, and 0 and 1 alone in {names.prediction}"
    hint = "exchange the two; outcomes that are known probabilities can be measured in Python"
    return InvalidInputError(sentence("--outcome and --prediction", "must not be swapped", got, hint))
