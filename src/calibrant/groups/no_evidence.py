"""What an audit that found nothing leaves open: how little it could see in small groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.numerals import counted, points

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.group import Group


def left_open(audit: Audit) -> str:
    """Say how wide the widest interval of a group is, and how many groups were too small to be tested."""
    smallest = min(audit.groups, key=lambda group: group.size)
    known = [group for group in audit.groups if group.sigma > 0] if audit.variant != "real" else []
    untested = f"; {too_small(audit)}" if audit.not_tested.too_small else ""
    return (
        "No evidence of error is no proof that there is none: the smallest group tested has "
        f"{counted(smallest.size, 'row')}{_widest(known)}{untested}."
    )


def _widest(groups: Sequence[Group]) -> str:
    if not groups:
        return ""
    widest = max(groups, key=lambda group: group.limits[1] - group.limits[0])
    low, high = widest.limits
    size = counted(widest.size, "row")
    wide = points(high - low, high - low).lstrip("+")
    return f", and the widest 95% interval ({widest.rule}, {size}) spans {wide} points"


def none_wrong(audit: Audit, wrong: str) -> str:
    """Say that no group is `wrong`, or that none was large enough to be tested."""
    groups = audit.tested - 1
    if groups > 1:
        return f"None of {groups:,} groups is {wrong}"
    if groups == 1:
        return f"The one group that was tested is not {wrong}"
    if audit.not_tested.too_small:
        return "No group is large enough to be tested"
    return "There is no group but everyone together"


def too_small(audit: Audit) -> str:
    """Count the groups that were too small to be tested; nothing where there are none."""
    few = audit.not_tested.too_small
    return f"{counted(few, 'group was', 'groups were')} too small to be tested" if few else ""
