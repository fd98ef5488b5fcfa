"""What an audit that found nothing leaves open: how little it could see in small groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.numerals import counted

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.group import Group


def left_open(audit: Audit) -> str:
    """Say how wide the widest interval of a group is, and how many groups were too small to be tested."""
    smallest = min(audit.groups, key=lambda group: group.size)
    known = [group for group in audit.groups if group.sigma > 0] if audit.variant != "real" else []
    few = audit.not_tested.too_small
    untested = f"; {counted(few, 'group was', 'groups were')} too small to be tested" if few else ""
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
    return f", and the widest 95% interval ({widest.rule}, {size}) spans {100 * (high - low):.1f} points"
