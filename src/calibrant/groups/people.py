"""A finding in people: how many records a group has, and how many events more or fewer than predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.numerals import counted

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.group import Group


def in_people(audit: Audit, group: Group) -> str:
    """Say who a group is, what was predicted and what happened, for how many, and what that comes to."""
    size = counted(group.size, "record")
    return f"{group.rule}, {group.means()} ({size}{_unexpected(audit, group)})"


def worst_in_people(audit: Audit, wrong: Sequence[Group]) -> str:
    """Name the group with the most evidence against it, and the one with the largest difference if another.

    Evidence grows with the number of records: a large group that is a little wrong comes before a small one
    that is badly wrong.
    """
    largest = max(wrong, key=lambda group: abs(group.difference))
    worst = f"Worst by evidence (z): {in_people(audit, wrong[0])}."
    if largest is wrong[0]:
        return worst
    return f"{worst} Largest difference among them: {in_people(audit, largest)}."


def _unexpected(audit: Audit, group: Group) -> str:
    """Count the events that were not predicted, where records weigh the same and errors do not cancel."""
    events = round(group.size * group.difference)
    weighted = abs(group.share * audit.n - group.size) > 1e-6 * group.size
    if weighted or events == 0 or audit.variant == "real" or not group.in_the_mean:
        return ""
    more = "more" if events > 0 else "fewer"
    return f", about {counted(abs(events), f'{more} event')} than predicted"
