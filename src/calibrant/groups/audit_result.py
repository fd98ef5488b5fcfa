"""What an audit found: every group with its numbers, the worst of them in words, and the table of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from calibrant.formatting import (
    at_floor,
    between_text,
    dropped_note,
    format_points,
    format_pvalue,
    format_value,
    percent_pair,
    percents,
    pluralize,
    points_text,
    pvalue_phrase,
    pvalue_text,
    rounded_ends,
)
from calibrant.groups.rules import Rule, condition_in_words
from calibrant.inference.pvalues import LEVEL, could_flip
from calibrant.inputs import closed_share, whole_number
from calibrant.results import Array, Table, html_paragraphs, json_object, number_cell, text_cell

MAX_ROUNDING = 1e-12  # a statistic so small may be rounding, whose z counts as 0
CONFIDENCE = 0.95  # of the interval of a group's difference
HIDDEN = ("interval", "draws", "tested_by", "against_others")  # not among the facts
JSON_FIELDS = (
    "metric", "lower", "upper", "sigma", "ratio", "pvalue", "ablated", "n", "dropped", "tested", "not_tested",
    "approximate", "draws", "cells", "null", "reason", "seed", "variant", "statistic",
)  # fmt: skip
MAX_RULE_WORDS = 14
NOTEBOOK_GROUPS = 15  # groups shown below a cell
GROUP_INTERVALS_NOTE = (
    "Each interval is for the mean difference of one group alone: among many groups some exclude 0 by "
    "chance. p-values allow for all groups, and z also sees errors that cancel in the mean of a group."
)
Z_MEANING = {
    "kuiper": "z is the largest sum of errors over any range of predictions, in standard deviations of "
    "chance; calibrated groups have about 1.6 on average.",
    "mean": "z is the mean error of a group, in standard deviations of chance; calibrated groups have "
    "about 0.8 on average.",
}
TITLES = {"kuiper": "Multi-calibration", "mean": "Multi-accuracy"}


@dataclass(frozen=True, slots=True)
class Group:
    """One subpopulation. `rule` says who is in it, in words and by `rule.members(frame)` among new rows."""

    name: str  # text of the rule, or the name of the user's mask
    rule: Rule
    size: int
    share: float  # by the records' own weights, whatever the variant, like both means
    kuiper: float  # D_k
    gap: float  # the mean residual, outcome minus prediction
    expected: float  # mean of the statistic, `kuiper` or |gap|, if calibrated
    sigma: float  # deviation of the gap if calibrated
    z: float  # the statistic over sigma
    metric: float  # z sigma_0, what the group adds to M
    pvalue: float | None  # adjusted for all subpopulations tested; None without draws
    predictions: str  # "too high", "too low" or "none", for scores from `start` to `stop`
    start: float  # here to `stop`, residuals add up most; for the mean, all scores
    stop: float
    mean_prediction: float
    mean_outcome: float
    lower: float  # bounds of the statistic on the raw rows, equal to it but for a sketch
    upper: float
    interval: tuple[float, float] | None = None  # of the difference, where its rows were looked at
    draws: int = 0  # behind the p-value
    tested_by: str = "kuiper"  # or "mean"
    against_others: Any = field(default=None, compare=False, repr=False)  # what computes `beyond`

    @property
    def beyond(self) -> float | None:
        """The adjusted p-value against all others at equal predictions; None if the group is not wrong."""
        return None if self.against_others is None else self.against_others.pvalues.get(self.rule)

    @property
    def undecided(self) -> bool:
        """Whether other draws could put the p-value on the other side of 5%."""
        return self.pvalue is not None and could_flip(self.pvalue, self.draws, LEVEL)

    def is_wrong(self, alpha: float = LEVEL) -> bool:
        """Return whether the predictions are wrong beyond chance; at 5%, whatever the draws."""
        rejected = self.pvalue is not None and self.pvalue <= alpha
        return rejected and not (alpha == LEVEL and self.undecided)

    @property
    def pvalue_is_bound(self) -> bool:
        """Whether no draw reached the observed value, so that the p-value is this or less."""
        return at_floor(self.pvalue, self.draws)

    def means(self) -> str:
        return "{} predicted, {} observed".format(*self.written_means())

    @property
    def who(self) -> str:
        """The group as a sentence names it, such as "self-employed (employment)"."""
        return " and ".join(map(condition_in_words, self.rule.conditions)) or str(self.rule)

    def worst_texts(self) -> tuple[str, ...]:
        """Name this group as the worst, from the fullest to the shortest wording."""
        words = self.who.split()
        rule = " ".join(words[:MAX_RULE_WORDS]) + " …" if len(words) > MAX_RULE_WORDS else self.who
        if not self.in_the_mean and self.predictions != "none":
            where = between_text(*rounded_ends(self.start, self.stop))
            return f"Worst for {rule}: predictions {where} are {self.predictions}.", f"Worst for {rule}."
        worst = f"Worst for {rule}: {self.means()}"
        too = "high" if self.difference < 0 else "low"
        return (
            f"{worst} ({pluralize(self.size, 'record')}).",
            f"{worst}.",
            f"Worst for {rule}: {points_text(abs(self.difference))} too {too}.",
            f"Worst for {rule}.",
        )

    @property
    def _where(self) -> str:
        """The predictions between which the errors add up, or the one at which they are."""
        same = self.start == self.stop
        return f"at {self.start:.3g}" if same else f"from {self.start:.3g} to {self.stop:.3g}"

    @property
    def error(self) -> float:
        """Size of the mean error, or the Kuiper statistic where errors cancel; groups are ranked by it."""
        return abs(self.difference) if self.in_the_mean else self.kuiper

    @property
    def in_the_mean(self) -> bool:
        """Whether the means show the error; else errors of both signs cancel in them."""
        return 2 * abs(self.difference) >= self.kuiper

    def finding(self, where: str | None = None) -> str:
        """Say in which direction predictions are off, and where; chance has no direction."""
        if self.predictions == "none":
            return ""
        if self.undecided:
            return "undecided"
        if self.pvalue is not None and not self.is_wrong():
            return "within chance"
        if where is None:
            where = "" if self.tested_by == "mean" else self._where
        return f"{self.predictions} {where}".rstrip()

    @property
    def difference(self) -> float:
        return self.mean_outcome - self.mean_prediction

    @property
    def limits(self) -> tuple[float, float]:
        """The 95% interval of the difference, for this group alone; nan where there is none."""
        # weighted, clustered or fractional groups have one if tables show them and records suffice
        if self.interval is None:
            return math.nan, math.nan
        low, high = self.interval
        return min(low, self.difference), max(high, self.difference)  # means differ by rounding

    @property
    def facts(self) -> dict[str, Any]:
        """All fields by name, with the ends of the interval of the difference."""
        low, high = self.limits
        names = [*(part.name for part in fields(self) if part.name not in HIDDEN), "beyond", "difference"]
        facts = {name: getattr(self, name) for name in names}
        return facts | {"low": low, "high": high, "pvalue_is_bound": self.pvalue_is_bound}

    def written_means(self) -> tuple[str, str]:
        """Write mean prediction and outcome, as percentages unless responses have another scale."""
        means = self.mean_prediction, self.mean_outcome
        if all(0 <= mean <= 1 for mean in means):
            return percent_pair(*means)
        return format_value(means[0]), format_value(means[1])

    def written_difference(self) -> tuple[str, str]:
        """Write the difference and its limits in points, "–" where there are no limits."""
        low, high = self.limits
        known = self.interval is not None
        width = high - low if known else 1.0
        span = f"{format_points(low, width)} to {format_points(high, width)}" if known else "–"
        return format_points(self.difference, width), span

    def statistic(self, name: str) -> float:
        """Return what was tested: D_k, or the absolute mean residual."""
        return abs(self.gap) if name == "mean" else self.kuiper

    def metric_of(self, bound: float, sigma_0: float) -> float:
        """Return what the group contributes to M, D_k sigma_0 / sigma_k of eq. (4), if D_k is this bound."""
        if self.lower == self.upper or self.sigma == 0:
            return self.metric
        if bound <= self.lower <= MAX_ROUNDING:
            return 0.0
        return bound / self.sigma * sigma_0 if sigma_0 > 0 else bound  # no prediction leaves any doubt

    def __str__(self) -> str:
        p = "" if self.pvalue is None else f", {pvalue_phrase(self.pvalue, self.draws)}"
        if self.tested_by == "mean":
            value, where = f"mean residual {self.gap:+.4f}", f"by {abs(self.gap):.3g} on average"
        else:
            value, where = f"Kuiper {format_value(self.kuiper)}", self._where
        off = self.finding(where)
        off = f"; predictions {off}" if off.startswith("too") else f"; {off}" if off else ""
        return f"{self.rule}: {pluralize(self.size, 'row')}, {value}, z = {self.z:.2f}{p}{off}"


def group_values(group: Group) -> dict[str, Any]:
    """Return a group as plain values, for a table that programs read."""
    numbers = {name: value for name, value in group.facts.items() if name not in ("name", "rule")}
    return {"group": group.name, **numbers, "finding": group.finding()}


def group_table(groups: Sequence[Group], findings: bool = False) -> Table:
    """Return what was predicted and observed in each group; with findings, also z and what was found."""
    columns = ["group", "records", "predicted", "observed", "difference", "95% interval", "z", "p", "finding"]
    means = [(group.mean_prediction, group.mean_outcome) for group in groups]
    if all(0 <= mean <= 1 for pair in means for mean in pair):
        texts = iter(percents([mean for pair in means for mean in pair]))
        written = list(zip(texts, texts, strict=True))
    else:
        written = [group.written_means() for group in groups]
    lines = []
    for group, (predicted, observed) in zip(groups, written, strict=True):
        difference, span = group.written_difference()
        cells = (
            text_cell(str(group.rule)),
            number_cell(group.size, f"{group.size:,}"),
            number_cell(group.mean_prediction, predicted),
            number_cell(group.mean_outcome, observed),
            number_cell(group.difference, difference),
            number_cell(group.limits[0], span),
            number_cell(group.z, f"{group.z:.2f}"),
            number_cell(group.pvalue, format_pvalue(group.pvalue, group.pvalue_is_bound)),
            text_cell(group.finding()),
        )
        lines.append(cells if findings else (*cells[:6], cells[7]))
    return Table(tuple(columns if findings else (*columns[:6], "p")), tuple(lines))


@dataclass(frozen=True, slots=True, eq=False)
class GroupCurve:
    """The cumulative curve of one subpopulation, thinned for a chart: its extremes are kept."""

    rule: Rule
    share: Array  # of the subpopulation's weight at or below `prediction`
    prediction: Array
    cumulative: Array  # C there


@dataclass(frozen=True, slots=True)
class NotTested:
    """How many subpopulations came up and were not tested, and why."""

    too_small: int = 0
    duplicates: int = 0
    over_limit: int = 0  # counted without a look: too small, repeated and empty ones as well

    def __str__(self) -> str:
        return (
            f"{self.too_small:,} too small, {self.duplicates:,} with the same members as another, "
            f"{self.over_limit:,} over the limit"
        )


def none_wrong(audit: Audit, wrong: str = "wrong beyond chance") -> str:
    """Say that no group is `wrong`, or that none was large enough to be tested."""
    tested = audit.tested - 1
    if tested > 1:
        return f"None of the {tested:,} groups is {wrong}"
    if tested == 1:
        return f"The one group tested is not {wrong}"
    if audit.not_tested.too_small:
        return "No group is large enough to be tested"
    return "No groups were given besides everyone together"


def too_small(audit: Audit) -> str:
    """Count the groups that were too small to be tested; nothing where there are none."""
    few = audit.not_tested.too_small
    return f"{pluralize(few, 'group was', 'groups were')} too small to be tested" if few else ""


def power_note(audit: Audit) -> str:
    """Say how wide the widest interval of a group is, and how many groups were too small to be tested."""
    smallest = min(audit.groups, key=lambda group: group.size)
    known = [group for group in audit.groups if group.interval] if audit.variant != "real" else []
    widest = ""
    if known:
        group = max(known, key=lambda one: one.limits[1] - one.limits[0])
        width = group.limits[1] - group.limits[0]
        who = f"{group.rule}, {pluralize(group.size, 'row')}"
        spans = format_points(width, width).lstrip("+")
        widest = f", and the widest 95% interval ({who}) spans {spans} points"
    untested = f"; {too_small(audit)}" if audit.not_tested.too_small else ""
    return (
        "No evidence of error does not prove that there is none: the smallest group tested has "
        f"{pluralize(smallest.size, 'row')}{widest}{untested}."
    )


def _explains(part: Group, group: Group) -> bool:
    """Return whether a group is a combination that is not clearly worse than this part of it."""
    some, conditions = set(map(str, part.rule.conditions)), set(map(str, group.rule.conditions))
    low, high = group.limits
    return some < conditions and not (part.difference < low or part.difference > high)


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The multi-calibration audit of some predictions.

    `metric` is M of eq. (4), `sigma` is sigma_0, `ratio` = M / sigma_0 is the largest z, `pvalue` the chance
    of so large an M if every prediction were right (None without draws). `ablated` is the largest statistic
    not divided by its deviation, noise mostly and for comparison only, and `ablated_group` the group that has
    it. `groups` are ranked by z; `columns` and `table` hold the same by column. On the raw rows M lies in
    `lower` to `upper`, which differ for a sketch alone; its p-values are simulated on `cells` merged cells
    and approximate. `null` is "exact" or "signs"; the p-values of random signs are approximate too.
    `approximate` names the fields that hold only approximately. `draws` are those used: more than were asked
    for where that many left open which groups are wrong; what is still open then is `undecided`. `reason`
    says why there are no p-values although they were asked for.
    """

    metric: float
    sigma: float
    pvalue: float | None
    ablated: float
    ablated_group: Group
    groups: tuple[Group, ...]
    curves: tuple[GroupCurve, ...]
    not_tested: NotTested
    n: int
    dropped: int
    draws: int
    seed: int
    variant: str
    statistic: str = "kuiper"
    backend: Any = None
    lower: float = 0.0
    upper: float = math.inf
    cells: int | None = None
    null: str = "exact"
    reason: str = ""

    @property
    def ratio(self) -> float:
        """M / sigma_0: the largest z over all subpopulations."""
        return self.groups[0].z

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields, here and of the groups, that hold only approximately."""
        rough = self.cells is not None or self.null == "signs"
        return (*(("pvalue",) if self.draws and rough else ()), "low", "high")

    @property
    def worst(self) -> Group:
        """The subpopulation with the largest z, which attains M."""
        return self.groups[0]

    @property
    def everyone(self) -> Group:
        """The full population, subpopulation 0."""
        return max(self.groups, key=lambda group: group.size)  # no two have the same members

    @property
    def tested(self) -> int:
        """How many subpopulations were tested, everyone among them."""
        return len(self.groups)

    def significant(self, alpha: float = LEVEL, *, level: float | None = None) -> tuple[Group, ...]:
        """Return the subpopulations whose adjusted p-value is at most `alpha`, worst first.

        At 5%, those that other draws could put above it are `undecided`. `level` is an older name of `alpha`.
        """
        most = closed_share("alpha", alpha if level is None else level)
        return tuple(group for group in self.groups if group.is_wrong(most))

    @property
    def undecided(self) -> tuple[Group, ...]:
        """The subpopulations whose p-value is so close to 5% that other draws could decide otherwise."""
        return tuple(group for group in self.groups if group.undecided)

    def wrong_groups(self, alpha: float = LEVEL) -> list[Group]:
        """Return the groups other than everyone that are wrong beyond chance, the largest errors first."""
        everyone = self.everyone
        named = (group for group in self.significant(alpha) if group is not everyone)
        return sorted(named, key=lambda group: -group.error)

    def beyond_overall(self, alpha: float = LEVEL) -> tuple[Group, ...]:
        """Return the groups that are wrong beyond the overall error, the largest errors first.

        They are wrong at level `alpha`, and their outcomes differ from those of other records with the same
        predictions, unless everyone together is not wrong. A combination is left out where one of its parts
        explains it: a column that plays no role has the overall error, and no error of its own.
        """
        most, wrong = closed_share("alpha", alpha), self.wrong_groups(alpha)
        found = [group for group in wrong if group.beyond is not None and group.beyond <= most]
        if not found and self.everyone.pvalue is not None and not self.everyone.is_wrong(most):
            found = wrong
        return tuple(group for group in found if not any(_explains(part, group) for part in found))

    def by_error(self) -> list[Group]:
        """Return everyone, the groups wrong beyond the overall error, other wrong ones, then the rest."""
        order = [self.everyone, *self.beyond_overall(), *self.wrong_groups(), *self.groups]
        return list({group.rule: group for group in order}.values())

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The ranking as plain columns by name, worst first."""
        rows = [group.facts for group in self.groups]
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        return columns | {"pvalue": [math.nan if p is None else p for p in columns["pvalue"]]}

    @property
    def table(self) -> Any:
        """The ranking as a frame: of the kind that was audited, else pandas, Polars or PyArrow if installed.

        Where none of them is installed this is `columns`.
        """
        import narwhals as nw

        for backend in filter(None, (self.backend, "pandas", "polars", "pyarrow")):
            with suppress(ImportError):
                return nw.from_dict(self.columns, backend=backend).to_native()
        return self.columns

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return everything but the curves, ready for JSON; `top` keeps the worst few groups only.

        An infinite z (an outcome that was predicted to be impossible) is null, as JSON has no word for it.
        """
        if top is not None:
            whole_number("top", top)
        return json_object(
            {
                **{name: getattr(self, name) for name in JSON_FIELDS},
                "pvalue_is_bound": at_floor(self.pvalue, self.draws),
                "ablated_group": self.ablated_group.facts,
                "groups": [group.facts for group in self.groups[:top]],
            }
        )

    def __repr__(self) -> str:
        p = "" if self.pvalue is None else f", {pvalue_phrase(self.pvalue, self.draws)}"
        return f"Audit(M = {self.metric:.4f}{p}, {self.looked_at}, worst: {self.worst.rule})"

    @property
    def verdict(self) -> str:
        """For how many groups the predictions are wrong, and for whom they are worst."""
        return " ".join(filter(None, self.sentences()))

    def sentences(self) -> tuple[str, str]:
        """Return for how many groups the predictions are wrong, and for whom they are worst."""
        groups = pluralize(self.tested - 1, "group")
        if self.reason:
            return f"Too little data to say: {self.reason}.", ""
        if self.pvalue is None:
            return f"{groups} and everyone ranked by z; p-values need draws.", ""
        wrong, own = self.wrong_groups(), self.beyond_overall()
        together = f"Everyone together: {self.everyone.means()}."
        near = len([group for group in self.undecided if group.rule.conditions])
        drawn = f"p is too close to {LEVEL} after {pluralize(self.draws, 'draw')}"
        if not wrong and near:
            first = f"Undecided for {near:,} of {groups}: {drawn}."
            return first, together if self.everyone.is_wrong() else power_note(self)
        if not wrong and self.everyone.is_wrong():
            return together, f"{none_wrong(self, 'wrong on its own')}."
        if not wrong:
            return f"{none_wrong(self)}.", power_note(self)
        first = f"Wrong beyond chance for {len(wrong):,} of {groups}"
        if near:
            first += f" and undecided for {near:,} ({drawn})"
        if not own:
            return f"{first}, but none stands out: theirs is the overall error.", together
        return f"{first}.", f"{own[0].worst_texts()[0]}{self._unexpected(own[0])}"

    def _unexpected(self, group: Group) -> str:
        """Count the events that were not predicted, where records weigh the same and errors do not cancel."""
        events = round(group.size * group.difference)
        weighted = abs(group.share * self.n - group.size) > 1e-6 * group.size
        if weighted or events == 0 or self.variant == "real" or not group.in_the_mean:
            return ""
        more = pluralize(abs(events), f"{'more' if events > 0 else 'fewer'} event")
        return f" That is about {more} than predicted."

    @property
    def looked_at(self) -> str:
        return f"{pluralize(self.tested - 1, 'group')} and everyone"

    def sheet(self, top: int = 50) -> Table:
        """Return the table of the groups with the largest z."""
        return group_table(self.groups[:top], findings=True)

    def _repr_html_(self) -> str:
        are = pluralize(len(self.groups) - NOTEBOOK_GROUPS, "more group is", "more groups are")
        more = f"{are} in .groups, the worst first." if len(self.groups) > NOTEBOOK_GROUPS else ""
        return html_paragraphs(self.verdict) + self.sheet(NOTEBOOK_GROUPS).as_html() + html_paragraphs(more)

    def __str__(self) -> str:
        whole = f"Kuiper of everyone: {self.everyone.kuiper:.6g}"
        if self.statistic == "mean":
            whole = f"mean residual of everyone: {self.everyone.gap:+.6g}"
        raw = "" if self.lower == self.upper else f", on the raw rows {self.lower:.6g} to {self.upper:.6g}"
        p = "not simulated"
        if self.pvalue is not None:
            p = pvalue_text(self.pvalue, floor=at_floor(self.pvalue, self.draws))
        of_cells = "" if self.cells is None or not self.draws else f" of {pluralize(self.cells, 'cell')}"
        roughly = ", approximate" if "pvalue" in self.approximate else ""
        drawn = f"{pluralize(self.draws, 'draw')}{of_cells}, seed {self.seed}{roughly}"
        return "\n".join(
            [
                self.verdict,
                f"{TITLES[self.statistic]} audit of {pluralize(self.n, 'row')}{dropped_note(self.dropped)}, "
                f"{self.looked_at}",
                f"  M          {self.metric:.6g}   ({whole}){raw}",
                f"  M/sigma_0  {self.ratio:.4g}",
                f"  p-value    {p}   ({drawn})",
                f"  largest z  {self.worst}",
                f"  not tested {self.not_tested}",
            ]
        )
