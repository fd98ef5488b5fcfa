"""`calibrant evaluate`: the verdict, the measures, and the report of a file of predictions and outcomes."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from calibrant.cli.options import (
    MEASURES,
    NAME,
    as_json,
    columns_unless_sketch,
    examples,
    files_read,
    grouped,
    option_of,
    refuse_typed,
    rows_in,
    seed,
    takes_clusters,
)
from calibrant.cli.output import (
    charts_out,
    check_chart_names,
    check_chart_targets,
    in_csv,
    one_line,
    print_note,
    print_result,
    show_json,
    show_sheet,
    show_values,
    write_charts,
)
from calibrant.cli.reading import CensoredColumn, log_summary, rows_typed, takes_censored
from calibrant.cli.rows import (
    chosen_groups,
    group_dicts,
    progress_bar,
    read_rows,
    show_groups,
    shown_name,
    sketch_if_needed,
)
from calibrant.errors import InvalidInputError, sentence
from calibrant.evaluation.findings import (
    PAGE_WIDTH,
    details,
    measure_values,
    more_groups,
)
from calibrant.evaluation.tables import (
    first_rows,
    first_table,
    footnotes,
    leading_groups,
    measure_table,
)
from calibrant.evaluation.verdict import Verdict, disagreement_note
from calibrant.files import check_target
from calibrant.formatting import format_value
from calibrant.groups.audit_result import group_table, group_values
from calibrant.inference.testing import CLASSIC
from calibrant.io.read import FileNames
from calibrant.logs.evaluation import LogEvaluation
from calibrant.records import Missing
from calibrant.report import evaluate as report
from calibrant.report.evaluate import Evaluation
from calibrant.results import Measurement
from calibrant.sketch.sketch import Sketch


@click.command(
    epilog=examples(
        "calibrant evaluate loans.csv -y default -p p",
        "calibrant evaluate loans.csv -y default -p p --groups employment --html report.html",
        "calibrant evaluate loans.csv -y default -p p --measures all",
    )
)
@takes_clusters
@takes_censored
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
@click.option("--title", help="Title of the report.")
@click.option("--subtitle", help="Line below the title of the report.")
@charts_out
@option_of(report.evaluate, "--draws", help="Simulated data sets for p-values, and resamples for intervals.")
@seed
@as_json
def evaluate(
    file: FileNames, outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    groups: list[str] | None, measures: list[str] | None, point: str | None,
    html: str | None, title: str | None, subtitle: str | None, charts: tuple[str, ...], chart_text: str,
    draws: int, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Measure the calibration of the predictions in FILE (CSV or Parquet), or of a sketch of them.

    A file too large for memory is measured from a sketch, with bounds that hold the exact values.
    """
    if html:
        check_target(html, files_read())
    else:
        refuse_typed("needs --html", "title", "subtitle")
    check_chart_targets(charts)
    log = log_summary()
    sketch = sketch_if_needed(file, outcome=outcome, prediction=prediction, weight=weight, missing=missing)
    with progress_bar("measuring") as progress:
        options: dict[str, Any] = {"measures": _names(measures), "progress": progress}
        options |= {"draws": draws, "seed": seed, "subtitle": subtitle or ""}
        title = title or (None if log is None else log.title())
        options |= {"title": title} if title else {}
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
    answered = LogEvaluation.of(evaluation, log) if log is not None else None
    write_report(answered or evaluation, html)  # files first: the reader of stdout may stop early
    write_charts(drawn, charts, chart_text)
    next_step = next_command(evaluation.verdict, outcome, prediction, weight)
    if log is not None and evaluation.verdict.action == "recalibrate":
        given = [*files_read(), "--log", log.tool]
        next_step = shlex.join(["calibrant", "recalibrate", *given, "-o", "map.json"])
    show_evaluation(evaluation, json_, sketch, next_step, answered)


def evaluate_sketch(sketch: Sketch, file: FileNames, **options: Any) -> Evaluation:
    """Evaluate the forecasts at the resolution of a sketch."""
    return report.evaluate(sketch, **{"title": f"sketch {shown_name(file)}", **options})


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
    options = {"title": f"{prediction} in {shown_name(file)}", **options}
    found = report.evaluate(data.forecasts, groups=data.groups, ids=data.ids, **options)
    columns: dict[str, Any] = {
        "outcome": outcome,
        "prediction": prediction,
        "weight": weight,
        "missing": missing,
    }
    columns |= {"groups": list(groups) if groups else None, "ids": point}
    return replace(found, columns={**columns, "pos_label": None})


def show_evaluation(
    evaluation: Evaluation,
    json_: bool,
    sketch: Sketch | None = None,
    next_step: str = "",
    log: LogEvaluation | None = None,
) -> None:
    """Print verdict and tables, or one JSON object; the groups of a sketch too, if it has any."""
    next_step = next_step or evaluation.verdict.next_step
    if json_:
        groups = {"sketch_groups": group_dicts(sketch)} if sketch is not None and sketch.by else {}
        show_json({**(log or evaluation).to_dict(), **groups})
        return
    if in_csv():
        _show_csv(evaluation)
    else:
        _show_text(evaluation, next_step, log)
    if sketch is not None:
        show_groups(sketch)


def _show_text(evaluation: Evaluation, next_step: str, log: LogEvaluation | None = None) -> None:
    """Print one screen: verdict, small table, groups, notes and the next step."""
    verdict = evaluation.verdict
    print_result("\n".join(map(one_line, filter(None, (verdict.what, verdict.whom)))) + "\n")
    table = measure_table if len(first_rows(evaluation.rows)) == len(evaluation.rows) else first_table
    show_sheet(table(evaluation.rows, evaluation.confidence))
    if evaluation.audit is not None:
        show_sheet(group_table(leading_groups(evaluation.audit)), blank=False)
        print_result(f"{more_groups(evaluation)}\n")
    if log is not None and log.answers is not None:
        print_result(textwrap.fill(str(log.answers), PAGE_WIDTH))
        if log.answers.thresholds:
            show_sheet(log.answers.table())
    notes = [*footnotes(evaluation.rows), disagreement_note(verdict, evaluation.rows), *details(evaluation)]
    if evaluation.over_points is not None:
        notes.insert(0, _distance_sentence(evaluation.over_points))
    for note in filter(None, notes):
        print_result(textwrap.fill(one_line(note), PAGE_WIDTH))
    print_result(f"\nNext: {one_line(next_step)}")


def _show_csv(evaluation: Evaluation) -> None:
    print_result(evaluation.verdict.sentence)
    show_values(measure_values(evaluation.rows))
    if evaluation.audit is not None:
        show_values([group_values(group, evaluation.audit.statistic) for group in evaluation.audit.groups])


def next_command(verdict: Verdict, outcome: str | None, prediction: str | None, weight: str | None) -> str:
    """Return the command that follows from a verdict, or its words where there is none."""
    given = outcome.options() if isinstance(outcome, CensoredColumn) else ["-y", outcome]
    columns = [*given, "-p", prediction] if outcome and prediction else []
    data = [*rows_typed(), *columns, *(["-w", weight] if weight and columns else [])]
    if verdict.action == "recalibrate":
        groups = ["--groups", ",".join(verdict.group_columns)] if verdict.group_columns else []
        return shlex.join(["calibrant", "recalibrate", *map(str, data), *groups, "-o", "map.json"])
    if verdict.action == "monitor" and columns and not isinstance(outcome, CensoredColumn):
        return shlex.join(["calibrant", "monitor", *map(str, data)])
    if verdict.action == "check groups" and columns:
        return shlex.join(["calibrant", "evaluate", *map(str, data), "--groups", "COLUMN"])
    return verdict.next_step


def _distance_sentence(given: Measurement) -> str:
    """Say how far the nearest calibrated predictor over the points is, and what is proven of it."""
    count, value = len(given.details["points"]), format_value(given.value)
    proven = (
        ""
        if given.exact
        else f", proven to lie in {format_value(given.lower)} to {format_value(given.upper)}"
    )
    return f"Distance to calibration over {count:,} points: {value}{proven}."


def write_report(evaluation: Evaluation | LogEvaluation, html: str | None) -> None:
    """Write the page if one was asked for, and say where it is."""
    if html:
        print_note(f"report: {evaluation.to_html(html)}")


def _names(chosen: list[str] | None) -> list[str] | None:
    if chosen == ["all"]:
        from calibrant.metrics.lookup import measures

        return list(measures())
    for name in set(chosen or ()) & set(CLASSIC):
        hint = f"calibrant test -m {name} has its statistic and p-value"
        raise InvalidInputError(sentence("--measures", "must name measures", f"got the test {name!r}", hint))
    return chosen
