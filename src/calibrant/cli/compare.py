"""`calibrant compare`: which column of predictions is better calibrated, or for which group is one better?"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli import options as opt
from calibrant.cli import output as out
from calibrant.cli import rows
from calibrant.cli.exit_codes import UNDECIDED
from calibrant.cli.output import show_result
from calibrant.cli.reading import chosen_log, takes_censored
from calibrant.errors import InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.groups.compare_groups import compare_groups
from calibrant.groups.compare_groups_result import INTERVALS_NOTE, TREND_MEANS
from calibrant.inference.compare import compare as compare_models
from calibrant.inference.net_benefits import net_benefits
from calibrant.io.read import FileNames
from calibrant.records import Missing

if TYPE_CHECKING:
    from calibrant.logs.answer import Options

DRAWN = (2, 3)  # models in one chart of reliability


@click.command(
    epilog=opt.examples(
        "calibrant compare loans.csv -y default -p p -p p_old --measure brier",
        "calibrant compare loans.csv -y default -p p --groups month --within region",
    )
)
@opt.takes_clusters
@takes_censored
@opt.rows_in
@opt.outcome_option
@opt.column_option(
    "--prediction", "-p", "predictions", required=True, multiple=True,
    help="Column of predicted probabilities; give it once for each model.",
)  # fmt: skip
@opt.weight_option
@opt.missing
@click.option("--measure", "-m", type=opt.MEASURE, default="atb", help="Measure; truthful ones rank fairly.")
@opt.column_option("--groups", help="With one column of predictions: compare these groups (sites, seasons).")
@opt.column_option("--within", help="Compare the groups among the rows of each value (each league) as well.")
@opt.flag("--ordered", help="The groups have an order, so test a trend; numbers and dates have one anyway.")
@click.option(
    "--net-benefit", "thresholds", type=opt.THRESHOLDS, metavar="T,T",
    help="Show the net benefit of every column at these thresholds of action, with intervals.",
)  # fmt: skip
@out.charts_out
@opt.option_of(compare_models, "--draws", help="Resamples of the rows.")
@opt.option_of(compare_models, "--confidence", help="Of the intervals.")
@opt.seed
@opt.as_json
def compare(
    file: FileNames, outcome: str, predictions: tuple[str, ...], weight: str | None, missing: Missing,
    measure: str, groups: str | None, within: str | None, ordered: bool, thresholds: list[float] | None,
    charts: out.Charts, draws: int, confidence: float, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Compare two or more columns of predictions in FILE row by row, or one between --groups."""
    log = chosen_log()
    if log is not None:
        _compare_logs(file, log, missing, confidence, json_)
        return
    how: dict[str, Any] = {"missing": missing, "confidence": confidence, "seed": seed}
    rows.refuse_many(file, max(2, len(predictions)))  # two models take about 320 bytes per row
    if groups is not None:
        opt.refuse_typed("does not apply to --groups", "thresholds")
        how |= {"ordered": ordered or None, "draws": draws}
        _compare_groups(file, outcome, predictions, weight, groups, within, charts, json_, **how)
        return
    opt.refuse_typed("needs --groups", "ordered", "within")
    if len(predictions) not in DRAWN and "reliability" in dict(charts):
        rule, got = "draws two or three columns of predictions", f"got {len(predictions)}"
        hint = "compare all without it, then draw those that matter"
        raise InvalidInputError("--chart reliability", rule, got, hint)
    for name in predictions:
        if predictions.count(name) > 1:
            rule, again = "must be a different column each time", predictions.count(name)
            raise InvalidInputError("--prediction", rule, f"got {name!r} {again} times")
    column = opt.kept("clusters")
    columns: dict[str, Any] = {"outcome": outcome, "weight": weight, "missing": missing}
    read, labels, _ = rows.read_and_check(file, predictions, [column] if column else [], **columns)
    models = {name: read[name] for name in predictions}
    how |= {"sample_weight": read[weight] if weight else None}
    clusters = labels if column else None
    result = benefits = None
    if len(predictions) == 1 and thresholds is not None:
        opt.refuse_typed("needs two columns of predictions", "measure")
    else:
        with rows.progress_bar("drawing outcomes") as progress:
            result = compare_models(
                read[outcome], models, clusters=clusters, measure=measure, draws=draws, progress=progress,
                **how,
            )  # fmt: skip
    if thresholds is not None:
        benefits = net_benefits(read[outcome], models, thresholds=thresholds, clusters=clusters, **how)
    how.pop("seed")
    out.write_charts(charts, _charts(read[outcome], models, how) if charts else {})
    if json_:
        parts = {} if benefits is None else {"net_benefit": benefits.to_dict()}
        out.show_json({**(result.to_dict() if result else {"sentence": str(benefits)}), **parts})
    else:
        if result is not None:
            show_result(result, False, result.model_sheet(), result.pair_sheet())
        if benefits is not None:
            sheets = [benefits.sheet(), *([benefits.difference_sheet()] if benefits.differences else [])]
            show_result(benefits, False, *sheets)
    if result is not None and result.undecided and not result.real:
        sys.exit(UNDECIDED)


def _compare_logs(
    file: FileNames, log: tuple[str | None, Options], missing: Missing, confidence: float, json_: bool
) -> None:
    from calibrant.logs.evaluation import compare_logs

    rule = "does not apply to logs, which are compared by four scores"
    opt.refuse_typed(rule, "measure", "outcome", "predictions", "weight", "groups", "within", "ordered")
    opt.refuse_typed(rule, "thresholds", "charts")
    if opt.kept("clusters") is not None:
        hint = "--log-option cluster=FIELD names a field of the questions"
        raise InvalidInputError("--clusters", "does not apply to logs", hint=hint)
    tool, options = log
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = compare_logs(rows.listed(file), tool, level=confidence, missing=missing, **asdict(options))
    out.print_note(*(str(warning.message) for warning in caught))
    show_result(found, json_, found.table())


def _charts(y: Any, models: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    from calibrant.report.charts import comparison, decision_curves

    def reliability() -> Any:
        given = {name: how[name] for name in ("sample_weight", "missing")}
        return comparison({name: Forecasts(y, p, **given) for name, p in models.items()})

    def benefit() -> Any:
        return decision_curves(net_benefits(y, models, **how))

    return {"reliability": reliability, "net-benefit": benefit}


def _compare_groups(
    file: FileNames, outcome: str, predictions: tuple[str, ...], weight: str | None, groups: str,
    within: str | None, charts: out.Charts, json_: bool, *, missing: Missing, ordered: bool | None,
    **how: Any,
) -> None:  # fmt: skip
    if "," in groups:
        hint = "--within takes the second column, and calibrant audit several columns"
        raise InvalidInputError("--groups", "takes one column here", f"got {groups!r}", hint)
    if len(predictions) > 1:
        rule, got = "compares one column of predictions", f"got {pluralize(len(predictions), 'column')}"
        raise InvalidInputError("--groups", rule, got, "compare the models one by one")
    opt.refuse_typed("does not apply to --groups, which compares by the odds", "measure")
    column = opt.kept("clusters")
    y, p, masses, labels = rows.read_checked(
        file, [name for name in (groups, within, column) if name],
        outcome=outcome, prediction=predictions[0], weight=weight, missing=missing,
    )  # fmt: skip
    if ordered:
        rows.refuse_dates_as_text(labels[groups], groups)
    result = compare_groups(
        y, p, {groups: labels[groups]}, sample_weight=masses, ordered=ordered, missing=missing,
        within={within: labels[within]} if within else None,
        clusters={column: labels[column]} if column else None, **how,
    )  # fmt: skip
    if charts:
        from calibrant.report.charts import groups_in_order, groups_within

        draw = groups_within if within else groups_in_order
        out.write_charts(charts, {"groups-in-order": lambda: draw(result)})
    show_result(result, json_, *([result.within_sheet()] if within else ()))
    if json_:
        return
    if within:
        out.print_sentences(f"{TREND_MEANS}\n")
    out.show_sheet(result.group_sheet())
    out.print_sentences(f"{INTERVALS_NOTE}\n")
    pairs = result.pair_sheet()
    if pairs.lines:
        out.show_sheet(pairs)
    if result.pairs_left_out():
        out.print_sentences(result.pairs_left_out())
