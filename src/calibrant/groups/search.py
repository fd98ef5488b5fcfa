"""A directed search for the worst subpopulation on one half of the data, confirmed on the other half.

Random paths look everywhere a little; this looks where it gets worse. The other half has not seen what was
looked at to find a rule, so its p-values account only for the few rules brought there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.clusters import Clusters
from calibrant.columns import Column, code_columns
from calibrant.errors import TooFewRecordsError
from calibrant.formatting import dropped_note, pluralize
from calibrant.groups.audit_result import Group, NotTested
from calibrant.groups.family import FamilyNull, RandomWords, TestFamily
from calibrant.groups.rules import Rule, between, conjunction
from calibrant.groups.statistics import ROWS, StatisticName, Terms, Variant, VariantName
from calibrant.groups.subpopulations import Lists, everyone
from calibrant.inputs import whole_numbers
from calibrant.kernels.groups import Index
from calibrant.metrics.calling import shares_parameters
from calibrant.parallel import recorded_seed
from calibrant.records import Missing, Records, check_records
from calibrant.results import Result, html_paragraphs, json_object


@dataclass(frozen=True, slots=True)
class ConfirmedRule:
    """A rule that the search brought, and what the other half of the data says about it."""

    rule: Rule
    group: Group  # on the confirming rows alone; its p-value is adjusted for all rules brought
    searched_z: float  # for which the search chose the rule, so it is too large

    def to_dict(self) -> dict[str, Any]:
        facts = {"rule": self.rule, "searched_z": self.searched_z, "confirmation": self.group.facts}
        return json_object(facts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Search(Result):
    """What a directed search found: `findings` by their z on the confirming rows, largest first.

    `not_tested` counts the rules that were taken to the confirming rows and are not among the findings, for
    want of members there or because another rule has the same ones.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("taken",)

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
        """The findings with an adjusted p-value of at most 5%."""
        return tuple(one for one in self.findings if one.group.is_wrong())

    def __repr__(self) -> str:
        worst = "nothing found" if self.worst is None else f"worst: {self.worst.rule}"
        return f"Search({len(self.findings)} findings, {len(self.confirmed)} confirmed, {worst})"

    def _repr_html_(self) -> str:
        head, *findings = str(self).splitlines()
        return html_paragraphs(head) + "".join(html_paragraphs(line.strip()) for line in findings)

    def __str__(self) -> str:
        head = (
            f"Searched {self.examined:,} subpopulations of {self.searched:,} rows; {self.taken:,} rules "
            f"taken to {self.confirming:,} other rows{dropped_note(self.dropped)} (seed {self.seed})"
        )
        collected = [f"  {one.group}" for one in self.findings]
        return "\n".join([head, *collected, f"  not tested there: {self.not_tested}"])


MAX_SEARCHED_ROWS = 200_000  # all other rows confirm
CUTS = 8  # places at which an ordered covariate is cut, between groups of equal size
MAX_CATEGORIES = 50  # of a nominal covariate that are tried, the most frequent


@dataclass(frozen=True, slots=True, eq=False)
class BeamNode:
    """A rule as an interval of codes for each of its columns, and its members among the rows searched."""

    intervals: Mapping[int, tuple[int, int]]
    members: Index
    z: float = 0.0
    mark: float = 0.0

    def rule(self, columns: Sequence[Column]) -> Rule:
        return conjunction(between(columns[j], *self.intervals[j]) for j in sorted(self.intervals))

    def members_among(self, columns: Sequence[Column]) -> Index:
        inside = np.ones(len(columns[0].codes), dtype=bool)
        for j, (low, high) in self.intervals.items():
            inside &= (columns[j].codes >= low) & (columns[j].codes < high)
        return np.flatnonzero(inside).astype(np.int32)


@shares_parameters(ROWS)
def search_groups(
    y_true: Any,
    y_prob: Any,
    covariates: Any,
    *,
    sample_weight: Any = None,
    depth: int = 3,
    beam: int = 10,
    rules: int = 10,
    min_size: int = 30,
    draws: int = 199,
    seed: int | None = 0,
    nominal: Sequence[str] = (),
    statistic: StatisticName = "kuiper",
    variant: VariantName = "plain",
    rho: float = 0.01,
    missing: Missing = "error",
) -> Search:
    """Search for the subpopulation with the largest z, and confirm it on rows the search did not see.

    A beam search: from everyone, add the condition on one covariate (a category, or a side of a cut) that
    raises z most; keep the best `beam` rules and add to each again, up to `depth` conditions. The best
    `rules` are then tested on the other half, with p-values adjusted for their number.

    Parameters
    ----------
    covariates, nominal
        The columns to search: any data frame or mapping; numbers named in `nominal` are categories.
    depth, beam, rules, min_size
        Conditions per rule, rules kept per step, rules confirmed, and the fewest records of a group.
    statistic, variant, rho
        As in `audit`, for the search and for the confirmation alike.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> city, sex = rng.choice(["A", "B", "C"], 3000), rng.choice(["F", "M"], 3000)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < np.where((city == "B") & (sex == "F"), p**2, p)
    >>> search_groups(y, p, {"city": city, "sex": sex}, seed=1).worst.rule
    'city = B and sex = F'
    """
    whole_numbers(1, depth=depth, beam=beam, rules=rules, min_size=min_size, draws=draws)
    kind = Variant(variant, rho, statistic)
    checked = check_records(y_true, y_prob, sample_weight, missing, kind="real" if kind.real else "plain")
    columns = code_columns(covariates, checked.length, "covariates", nominal, checked.labels)
    if checked.rows is not None:
        columns = [column.drop_unused_labels(checked.rows) for column in columns]
    records = Records.of(checked, [column.codes for column in columns])
    kind.check_predictions(records)
    if len(records) < 2 * min_size:
        got = f"got {pluralize(len(records), 'row')}"
        raise TooFewRecordsError("a search", f"needs at least {pluralize(2 * min_size, 'row')}", got)
    seed = recorded_seed(seed)
    half_seed, null_seed = np.random.SeedSequence(seed).spawn(2)
    chosen = np.zeros(len(records), dtype=bool)
    half = min(len(records) // 2, MAX_SEARCHED_ROWS)
    chosen[np.random.default_rng(half_seed).permutation(len(records))[:half]] = True
    first, second = (np.flatnonzero(side).astype(np.int32) for side in (chosen, ~chosen))
    found, examined = _beam_search(
        kind.terms_of(records.take(first))[0],
        [column.take(records.rows[first]) for column in columns],
        depth,
        beam,
        min_size,
    )
    named = {node.rule(columns): node for node in found[:rules]}
    others = records.take(second)
    theirs = [column.take(others.rows) for column in columns]
    batch = Lists.of(list(named), [node.members_among(theirs) for node in named.values()])
    terms, own = kind.terms_of(others)
    random_words = RandomWords(np.random.default_rng(null_seed), len(others) * draws)
    signs = Clusters.of_single_records(len(others)) if kind.real else None

    def run(count: int) -> TestFamily:
        null = FamilyNull(others, kind, count, random_words, signs)
        family = TestFamily(others, terms, null, min_size, plain=own)
        family.take(everyone(len(others)), 1)
        family.take(batch, len(batch))
        return family

    family = run(draws)
    family.draw_until_decided(run, draws)
    ranked = (group for group in family.ranked() if group.rule in named)
    return Search(
        findings=tuple(ConfirmedRule(group.rule, group, named[group.rule].z) for group in ranked),
        not_tested=family.not_tested,
        examined=examined,
        searched=len(first),
        confirming=len(second),
        dropped=records.dropped,
        draws=family.drawn,
        seed=seed,
        variant=kind.name,
        statistic=kind.statistic,
    )


def _beam_search(
    terms: Terms, columns: Sequence[Column], depth: int, beam: int, min_size: int
) -> tuple[list[BeamNode], int]:
    """Return the best rules of all depths, largest z first, and how many were measured."""
    examined, best = 0, []
    seen: set[tuple[int, float]] = set()
    level = [BeamNode({}, np.arange(len(terms.rows), dtype=np.int32))]
    for _ in range(depth):
        children = []
        for node in level:
            for j, column in enumerate(columns):
                refined = dict(_conditions(node, j, column, min_size))
                if not refined:
                    continue
                lists = list(refined.values())
                curves = Lists.of([Rule()] * len(lists), lists).measure(terms)
                examined += len(lists)
                made = zip(refined, lists, curves.z.tolist(), curves.mark.tolist(), strict=True)
                nodes = [BeamNode({**node.intervals, j: interval}, *rest) for interval, *rest in made]
                children += sorted(nodes, key=lambda node: -node.z)[:beam]
        level = []
        for child in sorted(children, key=lambda node: -node.z):
            mark = (len(child.members), child.mark)
            if mark not in seen:  # else an earlier rule has the same members
                seen.add(mark)
                level.append(child)
        level = level[:beam]
        best += level
    return sorted(best, key=lambda node: -node.z), examined


def _conditions(
    node: BeamNode, j: int, column: Column, min_size: int
) -> Iterator[tuple[tuple[int, int], Index]]:
    """Yield conditions on one column as intervals of codes, with the members that meet each."""
    codes = column.codes[node.members]
    low, high = node.intervals.get(j, (0, len(column.labels)))
    if column.nominal:
        counts = np.bincount(codes, minlength=len(column.labels))
        intervals = [(c, c + 1) for c in np.argsort(-counts, kind="stable")[:MAX_CATEGORIES].tolist()]
    else:
        middle = np.sort(codes)[np.linspace(0, len(codes) - 1, CUTS + 2).astype(np.int64)[1:-1]]
        cuts = [c for c in np.unique(middle).tolist() if low < c < high]
        intervals = [(low, c) for c in cuts] + [(c, high) for c in cuts]
    for start, end in intervals:
        members = node.members[(codes >= start) & (codes < end)]
        if min_size <= len(members) < len(node.members):
            yield (start, end), members
