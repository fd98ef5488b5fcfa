"""`calibrant evaluate`: the verdict, the measures, and the report of a file of predictions and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from calibrant.cli.charts import charts_out, check_chart_names, check_chart_targets, write_charts
from calibrant.cli.file_rows import read_rows
from calibrant.cli.options import (
    MEASURES,
    NAME,
    as_json,
    columns_unless_sketch,
    files_read,
    grouped,
    option_of,
    rows_in,
    seed,
)
from calibrant.cli.showing import note, say
from calibrant.cli.sketched import (
    chosen_groups,
    group_dicts,
    needed_sketch,
    progress_bar,
    show_groups,
    shown_name,
)
from calibrant.cli.tables import in_csv, show_json, show_table, show_values
from calibrant.disk import check_target
from calibrant.errors import InvalidInputError, sentence
from calibrant.evaluation.facts import facts_sentence
from calibrant.evaluation.findings import headline, measure_values
from calibrant.evaluation.row_tests import why_rows_differ
from calibrant.evaluation.sheets import GROUPS_SHOWN, group_sheet, measure_sheet
from calibrant.groups.audit_result import EACH_BY_ITSELF, Z_MEANS
from calibrant.groups.group import group_values
from calibrant.inference.statistics import CLASSIC
from calibrant.numerals import short
from calibrant.records import Missing
from calibrant.report import evaluation as report
from calibrant.report.evaluation import Evaluation
from calibrant.results import Measurement
from calibrant.scale.files import FileNames
from calibrant.scale.sketch import Sketch
from calibrant.sheets import Sheet


@click.command()
@rows_in
@columns_unless_sketch
@grouped
@click.option(
    "--measures", type=MEASURES, metavar="NAME,NAME", help='Measures to show; "all" shows every one.'
)
@click.option(
    "--id",
    "point",
    type=NAME,
    metavar="COLUMN",
    help="Point behind each record; adds the distance to calibration.",
)
@click.option("--html", type=click.Path(dir_okay=False), help="Write the report, one self-contained page.")
@charts_out
@option_of(report.evaluate, "--draws", help="Simulated data sets for p-values, and resamples for intervals.")
@seed
@as_json
def evaluate(
    file: FileNames, outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    groups: list[str] | None, measures: list[str] | None, point: str | None, html: str | None,
    charts: tuple[str, ...], chart_text: str, draws: int, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Measure the calibration of the predictions in FILE (CSV or Parquet), or of a sketch of them.

    A file too large for memory is measured from a sketch, with bounds that hold the exact values.
    """
    if html:
        check_target(html, files_read())
    check_chart_targets(charts)
    sketch = needed_sketch(file, outcome=outcome, prediction=prediction, weight=weight, missing=missing)
    with progress_bar("measuring") as progress:
        options: dict[str, Any] = {"measures": _names(measures), "progress": progress}
        options |= {"draws": draws, "seed": seed}
        if sketch is not None:
            if point:
                raise InvalidInputError(sentence("--id", "needs the records", "got a sketch of them"))
            evaluation = evaluate_sketch(sketch, file, groups=chosen_groups(sketch, groups), **options)
        else:
            evaluation = read_evaluation(
                file, outcome=str(outcome), prediction=str(prediction), weight=weight, missing=missing,
                groups=groups, point=point, **options,
            )  # fmt: skip
    drawn = evaluation.charts if charts else {}
    check_chart_names(drawn, charts)
    write_report(evaluation, html)  # files first: whoever reads what is printed may stop reading
    write_charts(drawn, charts, chart_text)
    show_evaluation(evaluation, json_, sketch)


def evaluate_sketch(sketch: Sketch, file: FileNames, **options: Any) -> Evaluation:
    """Evaluate the forecasts at the resolution of a sketch."""
    return report.evaluate(sketch, title=f"sketch {shown_name(file)}", **options)


def read_evaluation(
    file: FileNames,
    *,
    outcome: str,
    prediction: str,
    weight: str | None,
    missing: Missing,
    groups: Sequence[str] | None,
    point: str | None = None,
    **options: Any,
) -> Evaluation:
    """Read the columns of a file and evaluate them; errors name the columns."""
    data = read_rows(
        file, outcome=outcome, prediction=prediction, weight=weight, missing=missing, groups=groups,
        point=point,
    )  # fmt: skip
    title = f"{prediction} in {shown_name(file)}"
    return report.evaluate(data.forecasts, groups=data.groups, ids=data.ids, title=title, **options)


def show_evaluation(evaluation: Evaluation, json_: bool, sketch: Sketch | None = None) -> None:
    """Print verdict, facts and tables, or one JSON object; the groups of a sketch too, if it has any."""
    if json_:
        groups = {"sketch_groups": group_dicts(sketch)} if sketch is not None and sketch.by else {}
        show_json({**evaluation.to_dict(), **groups})
        return
    say(headline(evaluation.verdict))
    say(f"What next: {evaluation.verdict.next_step}")
    say(facts_sentence(evaluation.facts))
    if evaluation.over_points is not None:
        say(_distance_sentence(evaluation.over_points))
    if in_csv():
        show_values(measure_values(evaluation.rows))
    else:
        _show(measure_sheet(evaluation.rows, evaluation.confidence))
    differ = why_rows_differ(evaluation.verdict, evaluation.rows)
    if differ:
        say(f"\n{differ}")
    if evaluation.audit is not None and in_csv():
        show_values([group_values(group, evaluation.audit.statistic) for group in evaluation.audit.groups])
    elif evaluation.audit is not None:
        title, count = "Groups, the worst by evidence (z) first", len(evaluation.audit.groups)
        title += f" ({GROUPS_SHOWN} of {count:,}; --json has all)" if count > GROUPS_SHOWN else ""
        _show(group_sheet(evaluation.audit, evaluation.rows), title=title)
        say(f"\n{Z_MEANS[evaluation.audit.statistic]} {EACH_BY_ITSELF}")
    if sketch is not None:
        show_groups(sketch)
    note(f"seed {evaluation.seed}")


def _distance_sentence(given: Measurement) -> str:
    """Say how far the nearest calibrated predictor over the points is, and what is proven of it."""
    count, value = len(given.details["points"]), short(given.value)
    proven = "" if given.exact else f", proven to lie in {short(given.lower)} to {short(given.upper)}"
    return f"Distance to calibration over {count:,} points: {value}{proven}."


def write_report(evaluation: Evaluation, html: str | None) -> None:
    """Write the page if one was asked for, and say where it is."""
    if html:
        note(f"report: {evaluation.to_html(html)}")


def _show(sheet: Sheet, title: str = "") -> None:
    say()
    show_table(sheet.columns, [[cell.text for cell in line] for line in sheet.lines], title)


def _names(chosen: list[str] | None) -> list[str] | None:
    if chosen == ["all"]:
        from calibrant.measures.registry.lookup import measures

        return list(measures())
    for name in set(chosen or ()) & set(CLASSIC):
        hint = f"calibrant test -m {name} has its statistic and p-value"
        raise InvalidInputError(sentence("--measures", "must name measures", f"got the test {name!r}", hint))
    return chosen
