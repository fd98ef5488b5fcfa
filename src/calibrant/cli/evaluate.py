"""`calibrant evaluate`: the verdict, the measures, and the report of a file of predictions and outcomes."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli import options as opt
from calibrant.cli import output as out
from calibrant.cli import rows
from calibrant.cli.output import one_line, print_result, show_sheet
from calibrant.cli.reading import CensoredColumn, log_options_typed, log_summary, rows_typed, takes_censored
from calibrant.errors import InvalidInputError
from calibrant.evaluation import tables
from calibrant.evaluation.evaluate import Evaluation
from calibrant.evaluation.evaluate import evaluate as evaluate_rows
from calibrant.evaluation.verdict import Verdict
from calibrant.formatting import format_value
from calibrant.groups.audit_result import group_table, group_values
from calibrant.inference.testing import CLASSIC
from calibrant.io.read import FileNames
from calibrant.sketch.sketch import Sketch

if TYPE_CHECKING:
    from calibrant.logs.evaluation import LogEvaluation


@click.command(
    epilog=opt.examples(
        "calibrant evaluate loans.csv -y default -p p",
        "calibrant evaluate loans.csv -y default -p p --groups employment --html report.html",
        "calibrant evaluate loans.csv -y default -p p --measures all",
    )
)
@opt.takes_clusters
@takes_censored
@opt.rows_in
@opt.columns_unless_sketch
@opt.grouped
@click.option(
    "--measures", type=opt.MEASURES, metavar="NAME,NAME", help='Measures to show; "all" shows every one.'
)
@opt.column_option("--id", "point", help="Point behind each record; adds the distance to calibration.")
@out.page_out
@out.charts_out
@opt.option_of(
    evaluate_rows, "--draws", help="Simulated data sets for p-values, and resamples for intervals."
)
@opt.seed
@opt.as_json
def evaluate(
    file: FileNames, groups: list[str] | None, measures: list[str] | None, point: str | None,
    html: str | None, charts: out.Charts, draws: int, seed: int | None, json_: bool, **columns: Any,
) -> None:  # fmt: skip
    """Measure the calibration of the predictions in FILE (CSV or Parquet), or of a sketch of them.

    A file too large for memory is measured from a sketch, with bounds that hold the exact values.
    """
    log = log_summary()
    sketch = rows.sketch_if_needed(file, **columns, by=groups)
    event = f" of {columns['outcome']}" if isinstance(columns["outcome"], CensoredColumn) else ""
    whose = f"{columns['prediction']}{event} in" if sketch is None else "sketch"
    default = f"{whose} {rows.shown_name(file)}"
    with rows.progress_bar("measuring") as progress:
        options: dict[str, Any] = {"measures": _names(measures), "progress": progress, "draws": draws}
        options |= {"seed": seed, **out.page_heading((log.title() if log else "") or default)}
        if sketch is not None:
            if point:
                raise InvalidInputError("--id", "needs the records", "got a sketch of them")
            evaluation = evaluate_rows(sketch, groups=rows.chosen_groups(sketch, groups), **options)
            evaluation = replace(evaluation, columns={"groups": groups} if groups else {})
        else:
            data = rows.read_rows(file, **columns, groups=groups, point=point)
            evaluation = evaluate_rows(data.forecasts, groups=data.groups, ids=data.ids, **options)
            recorded = {**columns, "groups": groups or None, "ids": point, "pos_label": opt.kept("pos_label")}
            recorded |= {"scale": list(opt.kept("scale"))} if opt.kept("scale") else {}
            recorded |= {"clusters": opt.kept("clusters")} if opt.kept("clusters") else {}
            times = columns["outcome"]
            if isinstance(times, CensoredColumn):
                recorded["censored"] = [times.time, times.event, times.horizon, times.strata]
            evaluation = replace(evaluation, columns=recorded)
    drawn = evaluation.charts if charts else {}
    out.check_charts(charts, drawn)
    answered = None
    if log is not None:
        from calibrant.logs.evaluation import LogEvaluation

        answered = LogEvaluation.of(evaluation, log)
    if html:
        out.write_page(html, answered or evaluation)  # files first: the reader of stdout may stop early
    out.write_charts(charts, drawn)
    missing = ["--missing", columns["missing"]] if opt.typed("missing") else []
    files, named = rows_typed(), column_words(columns["outcome"], columns["prediction"], columns["weight"])
    if log is not None:
        files, named = opt.files_read(), ["--log", log.tool, *log_options_typed()]
    next_step = next_command(evaluation.verdict, files, named, missing)
    show_evaluation(evaluation, json_, sketch, next_step, answered)


def show_evaluation(
    evaluation: Evaluation, json_: bool, sketch: Sketch | None = None, next_step: str = "",
    log: LogEvaluation | None = None,
) -> None:  # fmt: skip
    if json_:
        groups = {"sketch_groups": rows.group_dicts(sketch)} if sketch is not None and sketch.by else {}
        out.show_json({**(log or evaluation).to_dict(), **groups})
        return
    audit = evaluation.audit
    if out.in_csv():
        print_result(evaluation.verdict.sentence)
        out.show_values(tables.measure_values(evaluation.rows))
        if audit is not None:
            out.show_values([group_values(group) for group in audit.groups])
    else:
        _show_text(evaluation, next_step or evaluation.verdict.next_step, log)
    if sketch is not None:
        rows.show_groups(sketch)


def _show_text(evaluation: Evaluation, next_step: str, log: LogEvaluation | None = None) -> None:
    verdict = evaluation.verdict
    print_result("\n".join(map(one_line, filter(None, (verdict.what, verdict.whom)))) + "\n")
    every_row = len(tables.first_rows(evaluation.rows)) == len(evaluation.rows)
    table = tables.measure_table if every_row else tables.first_table
    show_sheet(table(evaluation.rows, evaluation.confidence))
    if evaluation.audit is not None:
        show_sheet(group_table(tables.leading_groups(evaluation.audit)), blank=False)
        print_result(f"{tables.more_groups(evaluation.audit)}\n")
    if log is not None and log.answers is not None:
        print_result(textwrap.fill(str(log.answers), tables.PAGE_WIDTH))
        if log.answers.thresholds:
            show_sheet(log.answers.table())
    said = list(tables.notes(evaluation))
    distance = evaluation.over_points
    if distance is not None:
        value, lower, upper = map(format_value, (distance.value, distance.lower, distance.upper))
        proven = "" if distance.exact else f", proven to lie in {lower} to {upper}"
        count = len(distance.details["points"])
        said.insert(0, f"Distance to calibration over {count:,} points: {value}{proven}.")
    for note in said:
        print_result(textwrap.fill(one_line(note), tables.PAGE_WIDTH))
    print_result(f"\nNext: {one_line(next_step)}")


def column_words(outcome: str | None, prediction: str | None, weight: str | None = None) -> list[str]:
    if not outcome or not prediction:
        return []
    given = outcome.options() if isinstance(outcome, CensoredColumn) else ["-y", outcome]
    return [*given, "-p", prediction, *(["-w", weight] if weight else [])]


def next_command(verdict: Verdict, files: list[str], named: list[str], missing: Sequence[str] = ()) -> str:
    """Return what to type next; `named` are the columns, or the log, of FILE: nothing for a sketch."""
    groups = ["--groups", ",".join(verdict.group_columns)] if verdict.group_columns else []
    words: list[str] = []
    if verdict.action == "recalibrate" and (named or not groups):  # of a sketch, not by its groups
        by = [] if "--log" in named[:1] else groups
        words = ["recalibrate", *files, *named, *missing, *by, "-o", "map.json"]
    elif verdict.action == "monitor" and named and named[0] != "--time":
        words = ["monitor", *files, *named]
    elif verdict.action == "check groups" and named:
        words = ["evaluate", *files, *named, *missing, "--groups", "COLUMN"]
    return shlex.join(["calibrant", *words]) if words else verdict.next_step


def _names(chosen: list[str] | None) -> list[str] | None:
    if chosen == ["all"]:
        from calibrant.metrics.lookup import measures

        return list(measures())
    for name in set(chosen or ()) & set(CLASSIC):
        hint = f"calibrant test -m {name} has its statistic and p-value"
        raise InvalidInputError("--measures", "must name measures", f"got the test {name!r}", hint)
    return chosen
