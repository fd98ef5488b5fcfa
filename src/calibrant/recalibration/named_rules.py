"""Groups to repair that are given as rules: findings of an audit or a search, or the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.audit_result import Audit
from calibrant.groups.group import Group
from calibrant.groups.rules import Rule
from calibrant.groups.search_result import ConfirmedRule, Search


def rules_of(groups: Any) -> tuple[Rule, ...]:
    """Return the rules behind `groups`, each once; none where it is something else, such as columns."""
    if isinstance(groups, Rule | Group | ConfirmedRule):
        return (_rule(groups),)
    if isinstance(groups, Audit):
        return _each_once(groups.groups)
    if isinstance(groups, Search):
        return _each_once(groups.findings)
    if isinstance(groups, Mapping) or not isinstance(groups, list | tuple) or not groups:
        return ()
    if not any(isinstance(one, Rule | Group | ConfirmedRule) for one in groups):
        return ()
    return _each_once(groups)


def _each_once(items: Iterable[Any]) -> tuple[Rule, ...]:
    return tuple({rule: rule for rule in map(_rule, items)}.values())


def _rule(item: Any) -> Rule:
    rule = getattr(item, "rule", item)
    if isinstance(rule, Rule):
        return rule
    hint = "pass the groups of an audit, the findings of a search, or their .rule"
    got = f"got {item!r}"
    raise InvalidInputError(sentence("groups", "must be rules that can be applied to rows", got, hint))
