"""A finding in people: how many records a group has, and how many events more or fewer than predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.numerals import counted

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.group import Group


def in_people(audit: Audit, group: Group) -> str:
    """Say who a group is, what was predicted and what happened, for how many, and what that comes to."""
    size = counted(group.size, "record")
    return f"{group.rule}, {group.means()} ({size}{_unexpected(audit, group)})"


def _unexpected(audit: Audit, group: Group) -> str:
    """Count the events that were not predicted, where records weigh the same and errors do not cancel."""
    events = round(group.size * group.difference)
    weighted = abs(group.share * audit.n - group.size) > 1e-6 * group.size
    if weighted or events == 0 or audit.variant == "real" or not group.in_the_mean:
        return ""
    more = "more" if events > 0 else "fewer"
    return f", about {counted(abs(events), f'{more} event')} than predicted"
