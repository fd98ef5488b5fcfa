"""`calibrant distributions`: calibration of ensembles, quantiles, intervals, CDFs and survival curves."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from calibrant.cli import options as opt
from calibrant.cli import output as out
from calibrant.cli.rows import refuse_many, shown_name
from calibrant.distributions.tables import horizon_table, interval_coverage
from calibrant.errors import InvalidInputError
from calibrant.evaluation.distributions import DistributionEvaluation, evaluate_distributions
from calibrant.evaluation.tables import leading_groups
from calibrant.groups.audit_result import group_table
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
    missing: Missing, html: out.SavedPage, charts: out.SavedCharts, draws: int, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Check forecast distributions in FILE: too narrow, too wide, biased or fine, and for whom.

    With --time and --event, --cdf names columns of predicted event probabilities by several horizons.
    """
    given = [members, quantiles, cdf, lower]
    if sum(one is not None for one in given) != 1 or (lower is None) != (upper is None):
        raise InvalidInputError("distributions", f"needs one of {FORMS}", "got none or several")
    refuse_many(file, (len(members or quantiles or cdf or "lu") + 1) // 2)  # about 70 bytes per column
    how: dict[str, Any] = {"missing": missing, "draws": draws, "seed": seed}
    if time is not None or event is not None:
        found: Any = _horizons(file, time, event, strata, cdf, how)
    elif outcome is None:
        raise click.UsageError("Missing option '--outcome' / '-y'.", click.get_current_context())
    elif lower is not None and upper is not None:
        numbers, _ = read_table(file, [outcome, lower, upper], [])
        if coverage is None:
            raise InvalidInputError("--lower and --upper", "need --coverage", "got none")
        found = interval_coverage(numbers[outcome], numbers[lower], numbers[upper], coverage=coverage, **how)
    else:
        names, places = (members, []) if members else _pairs(quantiles or cdf or [])
        read, others = read_table(file, [outcome, *names], groups or [])
        how |= {"levels": places} if quantiles else {"thresholds": places} if cdf else {}
        found = evaluate_distributions(
            read[outcome], np.column_stack([read[name] for name in names]), at=at,
            groups={name: others[name] for name in groups} if groups else None,
            **html.heading(f"Forecasts of {outcome} in {shown_name(file)}"), **how,
        )  # fmt: skip
    drawn = _charts(found) if charts else {}
    charts.check(drawn)
    if html:
        if not isinstance(found, DistributionEvaluation):
            raise InvalidInputError("--html", "needs --members, --quantiles or --cdf alone")
        html.write(found)
    charts.write(drawn)
    if isinstance(found, DistributionEvaluation):
        _show(found, json_)
    else:
        out.show_result(found, json_, found.sheet())


def _horizons(
    file: FileNames, time: str | None, event: str | None, strata: str | None, cdf: list[str] | None,
    how: dict[str, Any],
) -> Any:  # fmt: skip
    if time is None or event is None or cdf is None:
        raise InvalidInputError("--time", "needs --event and --cdf", hint="--cdf p1=1,p2=2")
    names, horizons = _pairs(cdf)
    read, others = read_table(file, [time, event, *names], [strata] if strata else [])
    predictions = {horizon: read[name] for name, horizon in zip(names, horizons, strict=True)}
    labels = others[strata] if strata else None
    return horizon_table(read[time], read[event], predictions, strata=labels, **how)


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
    order = np.argsort(numbers, kind="stable")
    return [names[k] for k in order], [numbers[k] for k in order]


def _charts(found: Any) -> Any:
    from calibrant.report.charts.distributions import horizon_curve

    if isinstance(found, DistributionEvaluation):
        return found.charts
    return {"horizons": lambda: horizon_curve(found)} if hasattr(found, "horizons") else {}


def _show(found: DistributionEvaluation, json_: bool) -> None:
    if json_:
        out.show_json(found.to_dict())
        return
    out.print_sentences(f"{found.verdict}\n")
    for part in (found.quantiles, found.thresholds):
        if part is not None:
            out.print_sentences(str(part))
            out.show_sheet(part.sheet())
            out.print_result()
    for audited in (found.bias_by_group, found.width_by_group):
        if audited is not None:
            out.show_sheet(group_table(leading_groups(audited)))
    out.print_note(f"seed {found.seed}")
