"""What a search for groups returns: rules found on one half of the rows, confirmed on the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from calibrant.groups.group import LEVEL, Group, NotTested, plain
from calibrant.groups.rules import Rule
from calibrant.numerals import left_out
from calibrant.sheets import paragraphs


@dataclass(frozen=True, slots=True)
class ConfirmedRule:
    """A rule that the search brought, and what the other half of the data says about it.

    `group` is measured on the confirming rows alone, its p-value adjusted for all rules brought; `searched_z`
    is the z that made the search choose it, which is too large by having been chosen.
    """

    rule: Rule
    group: Group
    searched_z: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Search:
    """What a directed search found: `findings` by their z on the confirming rows, largest first.

    `not_tested` counts the rules that were taken to the confirming rows and are not among the findings, for
    want of members there or because another rule has the same ones.
    """

    findings: tuple[ConfirmedRule, ...]
    not_tested: NotTested
    examined: int
    searched: int
    confirming: int
    dropped: int
    draws: int
    seed: int
    variant: str = "plain"
    statistic: str = "kuiper"

    @property
    def worst(self) -> ConfirmedRule | None:
        """The finding with the largest z on the confirming rows; None where nothing was large enough."""
        return self.findings[0] if self.findings else None

    @property
    def taken(self) -> int:
        """How many rules were taken to the confirming rows."""
        left = self.not_tested
        return len(self.findings) + left.too_small + left.duplicates

    @property
    def confirmed(self) -> tuple[ConfirmedRule, ...]:
        """The findings with an adjusted p-value of at most 5 %."""
        return tuple(one for one in self.findings if (one.group.pvalue or 1.0) <= LEVEL)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "findings": [
                {
                    "rule": one.rule,
                    "searched_z": plain(one.searched_z),
                    "confirmation": {key: plain(value) for key, value in one.group.facts.items()},
                }
                for one in self.findings
            ],
            "taken": self.taken,
            "not_tested": asdict(self.not_tested),
            "examined": self.examined,
            "searched": self.searched,
            "confirming": self.confirming,
            "dropped": self.dropped,
            "draws": self.draws,
            "seed": self.seed,
            "variant": self.variant,
            "statistic": self.statistic,
        }

    def __repr__(self) -> str:
        worst = "nothing found" if self.worst is None else f"worst: {self.worst.rule}"
        return f"Search({len(self.findings)} findings, {len(self.confirmed)} confirmed, {worst})"

    def _repr_html_(self) -> str:
        head, *findings = str(self).splitlines()
        return paragraphs(head) + "".join(paragraphs(line.strip()) for line in findings)

    def __str__(self) -> str:
        head = (
            f"Searched {self.examined:,} subpopulations of {self.searched:,} rows; {self.taken:,} rules "
            f"taken to {self.confirming:,} other rows{left_out(self.dropped)} (seed {self.seed})"
        )
        collected = [f"  {one.group}" for one in self.findings]
        return "\n".join([head, *collected, f"  not tested there: {self.not_tested}"])
