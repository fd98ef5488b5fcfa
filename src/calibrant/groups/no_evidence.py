"""What an audit that found nothing leaves open: how little it could see in the smallest group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.numerals import counted

if TYPE_CHECKING:
    from calibrant.groups.result import Audit


def left_open(audit: Audit) -> str:
    """Say how wide the interval of the smallest group is, and how many groups were too small to be tested."""
    smallest = min(audit.groups, key=lambda group: group.size)
    low, high = smallest.limits
    wide = "" if smallest.sigma == 0 or audit.variant == "real" else _wide(100 * (high - low))
    few = audit.not_tested.too_small
    untested = f"; {counted(few, 'group was', 'groups were')} too small to be tested" if few else ""
    return (
        "No evidence of error is no proof that there is none: the smallest group tested, "
        f"{smallest.rule}, has {counted(smallest.size, 'row')}{wide}{untested}."
    )


def _wide(points: float) -> str:
    return f" and a 95% interval {points:.1f} points wide"
