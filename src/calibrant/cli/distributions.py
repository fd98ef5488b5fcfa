"""`calibrant distributions`: calibration of ensembles, quantiles, intervals, CDFs and survival curves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import click
import numpy as np

from calibrant.cli import options as opt
from calibrant.cli import output as out
from calibrant.cli.rows import refuse_many, shown_name
from calibrant.distributions.tables import interval_coverage
from calibrant.distributions.thresholds import HorizonTable, horizon_table
from calibrant.errors import InvalidInputError
from calibrant.evaluation.distributions import evaluate_distributions
from calibrant.inputs import NamedColumn
from calibrant.io.read import FileNames, read_table
from calibrant.records import Missing

FORMS = "--members, --quantiles, --cdf, or --lower, --upper and --coverage"


@click.command(epilog=opt.examples("calibrant distributions rain.csv -y observed --members m1,m2,m3"))
@opt.rows_in
@opt.column_option("--outcome", "-y", help="Column of the outcomes: numbers.")
@opt.columns_option("--members", help="Columns of the members of an ensemble.")
@opt.columns_option("--quantiles", metavar="A=.05,B=.5", help="Columns of quantiles with their levels.")
@opt.columns_option("--cdf", metavar="A=0,B=10", help="Columns of the CDF with their thresholds.")
@opt.column_option("--lower", help="Column of lower ends of prediction intervals.")
@opt.column_option("--upper", help="Column of upper ends.")
@click.option("--coverage", type=float, help="Probability that the intervals promise.")
@opt.column_option("--time", help="Column of censored times, in place of --outcome; with --cdf.")
@opt.column_option("--event", help="Column: 1 event, 0 censored, 2 and up other causes.")
@opt.column_option("--strata", help="Column of groups that are censored differently.")
@click.option("--at", type=opt.THRESHOLDS, metavar="Z,Z", help="Thresholds to check, fixed beforehand.")
@opt.grouped
@opt.column_option("--clusters", help="Rows that belong together (days of one storm).")
@opt.missing
@out.page_out
@out.charts_out
@opt.option_of(evaluate_distributions, "--draws", help="Simulated data sets.")
@opt.seed
@opt.as_json
def distributions(
    file: FileNames, outcome: str | None, members: list[str] | None, quantiles: list[str] | None,
    cdf: list[str] | None, lower: str | None, upper: str | None, coverage: float | None, time: str | None,
    event: str | None, strata: str | None, at: list[float] | None, groups: list[str] | None,
    clusters: str | None, missing: Missing, html: str | None, charts: out.Charts, draws: int,
    seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Check forecast distributions in FILE: too narrow, too wide, biased or fine, and for whom.

    With --time and --event, --cdf names columns of predicted event probabilities by several horizons.
    """
    given = [members, quantiles, cdf, lower]
    if sum(one is not None for one in given) != 1 or (lower is None) != (upper is None):
        raise InvalidInputError("distributions", f"needs one of {FORMS}", "got none or several")
    censoring = time is not None or event is not None
    if censoring:
        opt.refuse_typed("excludes --time", "outcome", "at", "groups", "clusters", "html")
    elif lower is not None:
        opt.refuse_typed(
            "needs --members, --quantiles or --cdf", "at", "groups", "clusters", "html", "charts"
        )
    if lower is None:
        opt.refuse_typed("needs --lower and --upper", "coverage")
    if not censoring:
        opt.refuse_typed("needs --time", "strata")
    refuse_many(file, (len(members or quantiles or cdf or "lu") + 1) // 2)  # about 70 bytes per column
    how: dict[str, Any] = {"missing": missing, "draws": draws, "seed": seed}
    drawn: Mapping[str, Any] = {}
    if censoring:
        found: Any = _horizons(file, time, event, strata, cdf, how)
        drawn = {"horizons": lambda: _drawn(found)}
    elif outcome is None:
        raise click.UsageError("Missing option '--outcome' / '-y'.", click.get_current_context())
    elif lower is not None and upper is not None:
        if coverage is None:
            raise InvalidInputError("--lower and --upper", "need --coverage", "got none")
        numbers, _ = read_table(file, [outcome, lower, upper], [])
        columns = (NamedColumn.of(numbers, name) for name in (outcome, lower, upper))
        found = interval_coverage(*columns, coverage=coverage, **how)
    else:
        names, places = (members, []) if members else _pairs(quantiles or cdf or [])
        labels = list(dict.fromkeys([*(groups or []), *([clusters] if clusters else [])]))
        read, others = read_table(file, [outcome, *names], labels)
        table = np.column_stack([read[name] for name in names])
        how |= {"levels": places} if quantiles else {"thresholds": places} if cdf else {}
        forecast = NamedColumn(table, f"columns {', '.join(map(repr, names))}")
        found = evaluate_distributions(
            NamedColumn.of(read, outcome), forecast, at=at,
            groups={name: others[name] for name in groups} if groups else None,
            clusters={clusters: others[clusters]} if clusters else None,
            **out.page_heading(f"Forecasts of {outcome} in {shown_name(file)}"), **how,
        )  # fmt: skip
        drawn = found.charts if charts else {}
    out.check_charts(charts, drawn)
    if html:
        out.write_page(html, found)
    out.write_charts(charts, drawn)
    out.show_result(found, json_, *found.tables())
    if not json_:
        out.print_note(f"seed {found.seed}")


def _drawn(found: HorizonTable) -> object:
    from calibrant.report.charts.distributions import curve_of_tests

    return curve_of_tests(found)


def _horizons(
    file: FileNames, time: str | None, event: str | None, strata: str | None, cdf: list[str] | None,
    how: dict[str, Any],
) -> Any:  # fmt: skip
    if time is None or event is None or cdf is None:
        raise InvalidInputError("--time", "needs --event and --cdf", hint="--cdf p1=1,p2=2")
    names, horizons = _pairs(cdf)
    read, others = read_table(file, [time, event, *names], [strata] if strata else [])
    predictions = {end: NamedColumn.of(read, name) for name, end in zip(names, horizons, strict=True)}
    times, events, labels = NamedColumn.of(read, time), NamedColumn.of(read, event), others.get(strata or "")
    return horizon_table(times, events, predictions, strata=labels, **how)


def _pairs(texts: list[str]) -> tuple[list[str], list[float]]:
    names, numbers = [], []
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            numbers.append(float(number))
        except ValueError:
            name = ""
        if not name:
            rule, hint = "must be NAME=NUMBER", "such as q05=0.05,q50=0.5"
            raise InvalidInputError("a column", rule, f"got {text!r}", hint)
        names.append(name)
    order = np.argsort(numbers, kind="stable").tolist()
    for one, other in pairwise(order):
        if numbers[one] == numbers[other]:
            got = f"got {numbers[one]:g} for {names[one]} and {names[other]}"
            raise InvalidInputError("columns", "must have different numbers", got, "leave one of them out")
    return [names[k] for k in order], [numbers[k] for k in order]
