"""Groups under the groups that hold them: region = north and age = 44 under region = north."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.groups.audit_result import Audit
from calibrant.groups.group import Group
from calibrant.groups.rules import Rule
from calibrant.sheets import Sheet


def parent_of(rule: Rule, others: Sequence[Rule]) -> Rule | None:
    """Return the first of the rules, other than everyone, whose conditions are some of those of `rule`.

    >>> from calibrant.groups.conditions import OneOf
    >>> north, old = OneOf("region", ("north",)), OneOf("age", ("old",))
    >>> print(parent_of(Rule([north, old]), [Rule(), Rule([old]), Rule([north])]))
    age = old
    """
    conditions = set(map(str, rule.conditions))
    for other in others:
        some = set(map(str, other.conditions))
        if some and some < conditions and len(some) == 1:
            return other
    return None


def nested_sheet(audit: Audit, top: int, elsewhere: str = "") -> Sheet:
    """Return the table of the worst groups, combinations folded under the worst of their parts."""
    shown = audit.groups[:top]
    rules = [group.rule for group in shown]
    parents = {group.rule: parent_of(group.rule, rules) for group in shown}
    ordered: list[Group] = []
    inside: list[int | None] = []
    for group in shown:
        if parents[group.rule] is not None:
            continue
        place = len(ordered)
        within = [other for other in shown if parents[other.rule] == group.rule]
        ordered += [group, *within]
        inside += [None, *(place for _ in within)]
    flat = audit.sheet(top, elsewhere)
    lines = {group.rule: line for group, line in zip(shown, flat.lines, strict=True)}
    return Sheet(flat.columns, tuple(lines[group.rule] for group in ordered), tuple(inside))
