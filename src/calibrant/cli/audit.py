"""`calibrant audit`: for whom are the predictions of a file wrong?"""

from __future__ import annotations

import sys
import textwrap
from typing import Any, get_args

import click

from calibrant.cli import options as opt
from calibrant.cli import output as out
from calibrant.cli import rows
from calibrant.cli.exit_codes import UNDECIDED
from calibrant.cli.reading import takes_censored
from calibrant.evaluation.tables import PAGE_WIDTH
from calibrant.files import atomic_write
from calibrant.formatting import at_floor, dropped_note, format_pvalue, format_value, pluralize
from calibrant.groups import audit as audits
from calibrant.groups import search as searches
from calibrant.groups.audit_result import Audit, group_table, group_values
from calibrant.groups.rules import Rule, rules_to_json
from calibrant.groups.search import Search
from calibrant.groups.statistics import StatisticName, VariantName
from calibrant.io.read import FileNames

COLUMNS = ("outcome", "prediction", "weight", "missing")
BILLION = click.IntRange(1, 1_000_000_000)


@click.command(
    epilog=opt.examples(
        "calibrant audit loans.csv -y default -p p --groups employment,region",
        "calibrant audit loans.csv -y default -p p --covariates employment,region,age --search",
    )
)
@takes_censored
@opt.rows_in
@opt.columns_unless_sketch
@opt.columns_option("--covariates", help="Columns to make subpopulations of along random paths.")
@opt.columns_option("--groups", help="Columns whose values, alone and combined, are the groups.")
@opt.columns_option("--nominal", help="Covariates that are numbers without an order, such as codes.")
@opt.option_of(audits.audit, "--subpopulations", type=BILLION, help="How many to make of covariates.")
@opt.option_of(
    audits.audit, "--depth", type=click.IntRange(1, 100), help="How many columns of --groups to combine."
)
@opt.option_of(audits.audit, "--limit", type=BILLION, help="How many of --groups to test at most.")
@opt.option_of(audits.audit, "--min-size", type=click.IntRange(0, 10**15), help="Rows that a test needs.")
@opt.option_of(audits.audit, "--min-variance", type=click.FloatRange(min=0, max=1e300),
               help="Least sum of p (1 - p) in a subpopulation; try 5.")  # fmt: skip
@opt.option_of(audits.audit, "--draws", type=click.IntRange(0, 10_000_000),
               help="Simulated data sets for p-values; 0 for none.")  # fmt: skip
@click.option("--variant", type=click.Choice(get_args(VariantName)), default="plain",
              help="How records count; real is for outcomes that are not 0 or 1.")  # fmt: skip
@opt.option_of(audits.audit, "--rho", help="Floor of the proportional variants; 0 for none.")
@click.option(
    "--statistic", type=click.Choice(get_args(StatisticName)), default="kuiper",
    help="kuiper: gaps that add up anywhere along the scores; mean: each group's mean residual.",
)  # fmt: skip
@opt.column_option("--clusters", help="Rows that belong together (patients of a hospital).")
@click.option("--null", type=click.Choice(get_args(audits.NullName)), default="auto",
              help="How p-values are simulated; signs hold for weights that follow the outcome.")  # fmt: skip
@opt.flag("--search", help="Search the covariates for the worst; confirm on other rows.")
@out.page_out
@opt.file_option(
    "--rules", help="Write the groups that are off beyond chance as JSON, for calibrant recalibrate --rules."
)
@click.option("--top", type=click.IntRange(min=0), default=10, help="How many of the worst to print.")
@opt.seed
@opt.as_json
def audit(
    file: FileNames, covariates: list[str] | None, groups: list[str] | None, nominal: list[str] | None,
    clusters: str | None, search: bool, html: str | None, rules: str | None, top: int, json_: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Find the subpopulations for which the predictions in FILE are wrong, and say how sure that is.

    FILE may be a sketch made with `calibrant sketch --by`: then its groups and their combinations are
    audited, each with bounds that hold the exact value. A file too large for memory is audited from such a
    sketch of --groups.
    """
    columns = {name: options.pop(name) for name in COLUMNS}
    covariates, groups, nominal = covariates or [], groups or [], nominal or []
    if options["variant"] not in ("proportional", "proportional-shifted"):
        opt.refuse_typed("applies to the proportional variants alone", "rho")
    of_rows = {"--covariates": covariates, "--search": search, "--rules": rules, "--clusters": clusters}
    asked = next((name for name, value in of_rows.items() if value), None)
    stored = all(map(rows.is_sketch, rows.listed(file)))
    if stored:
        rule = "applies to --covariates alone, which a sketch has not"
        opt.refuse_typed(rule, "nominal", "subpopulations")
    else:
        opt.require_columns(columns["outcome"], columns["prediction"])
        if not covariates and not groups:
            raise click.UsageError("give --covariates or --groups, or both")
        if search and not covariates:
            raise click.UsageError("--search needs --covariates")
        if not covariates:
            opt.refuse_typed("applies to --covariates alone", "subpopulations")
        if not groups:
            opt.refuse_typed("applies to --groups alone", "depth", "limit")
    sketch = rows.sketch_if_needed(file, **columns, by=groups, of_rows=asked)
    subject = "sketch" if stored else f"{columns['prediction']} in"
    confirmed = None
    if sketch is not None:
        options |= {"groups": rows.chosen_groups(sketch, groups)}
        taken = {name: value for name, value in options.items() if name not in ("subpopulations", "rho")}
        with rows.progress_bar("testing subpopulations") as progress:
            audited = audits.audit(sketch, progress=progress, **taken)
    else:
        labels = covariates + groups + ([clusters] if clusters else [])
        y, p, weights, others = rows.read_checked(file, labels, kind="real", **columns)
        shared = {"sample_weight": weights, "nominal": nominal, "missing": columns["missing"]}
        along = {name: others[name] for name in covariates}
        with rows.progress_bar("testing subpopulations") as progress:
            audited = audits.audit(
                y, p, groups={name: others[name] for name in groups} or None, covariates=along or None,
                clusters={clusters: others[clusters]} if clusters else None, progress=progress,
                **shared, **options,
            )  # fmt: skip
        if search:
            shared |= {name: options[name] for name in ("variant", "rho", "statistic")}
            draws = max(options["draws"], 1)
            confirmed = searches.search_groups(y, p, along, seed=audited.seed, draws=draws, **shared)
    if rules:  # the groups that are off beyond chance: those that a search confirmed, or else the audit's
        found = audited.significant() if confirmed is None else [one.group for one in confirmed.findings]
        sure = [group.rule for group in found if group.is_wrong()]
        written = [rule for rule in sure if isinstance(rule, Rule) and rule.conditions]
        out.print_note(f"{pluralize(len(written), 'rule')}: {atomic_write(rules, rules_to_json(written))}")
    if html:
        from calibrant.report.pages import audit_page

        heading = out.page_heading(f"For whom: {subject} {rows.shown_name(file)}")
        out.write_page(html, audit_page(audited, **heading, confirmed=confirmed))
    if json_:
        data = audited.to_dict(top)
        out.show_json({**data, "search": confirmed.to_dict()} if confirmed else data)
    else:
        _show(audited, confirmed, top)
    if audited.reason:
        sys.exit(UNDECIDED)


def _show(audited: Audit, confirmed: Search | None, top: int) -> None:
    for line in filter(None, audited.sentences()):
        out.print_result(textwrap.fill(line, PAGE_WIDTH))
    if out.in_csv():
        out.show_values([group_values(group) for group in audited.groups[:top]])
        if confirmed is not None:
            out.show_values([group_values(one.group) for one in confirmed.findings[:top]])
        return
    out.print_result()
    ordered = audited.by_error()
    out.show_sheet(group_table(ordered[:top]), blank=False)
    if len(ordered) > top:
        out.print_result(f"... {pluralize(len(ordered) - top, 'more group')}; --top {len(ordered)} shows all")
    out.print_result(f"\n{textwrap.fill(_method(audited), PAGE_WIDTH)}")
    if confirmed is not None:
        title = (
            f"\nSearched {pluralize(confirmed.examined, 'subpopulation')} of "
            f"{pluralize(confirmed.searched, 'row')}; {pluralize(confirmed.taken, 'rule')} confirmed on "
            f"{confirmed.confirming:,} others"
        )
        out.show_sheet(group_table([one.group for one in confirmed.findings[:top]]), title, blank=False)
        out.print_result(f"Not tested there: {confirmed.not_tested}.")


def _method(audited: Audit) -> str:
    shown = format_pvalue(audited.pvalue, at_floor(audited.pvalue, audited.draws))
    tested = f"p {shown}, " if shown else ""
    return (
        f"{pluralize(audited.n, 'row')}{dropped_note(audited.dropped)}. Difference is "
        "observed minus predicted, in points, with the interval of each group on its own; p "
        f"is adjusted for all groups. M = {format_value(audited.metric)} (M / sigma {audited.ratio:.2f}, "
        f"{tested}{pluralize(audited.draws, 'draw')}, seed {audited.seed}). Not tested: {audited.not_tested}."
    )
