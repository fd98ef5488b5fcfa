"""`calibrant compare`: which column of predictions is better calibrated, or for which group is one better?"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from calibrant.cli.options import (
    MEASURE,
    NAME,
    Thresholds,
    as_json,
    chosen_clusters,
    examples,
    missing,
    option_of,
    outcome_option,
    refuse_typed,
    rows_in,
    seed,
    takes_clusters,
    typed,
)
from calibrant.cli.output import (
    charts_out,
    check_chart_names,
    check_chart_targets,
    print_note,
    print_sentences,
    show_json,
    show_sheet,
    write_charts,
)
from calibrant.cli.reading import chosen_log, outcome_columns, takes_censored
from calibrant.cli.rows import listed, progress_bar, read_checked, refuse_dates_as_text, refuse_swapped
from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.groups.compare_groups import SEVERAL, compare_groups
from calibrant.groups.group_comparison import INTERVALS_ALONE
from calibrant.inference.compare import compare as compare_models
from calibrant.inference.comparison import Comparison
from calibrant.inference.net_benefits import NetBenefits, net_benefits
from calibrant.inputs import InputNames
from calibrant.io.read import FileNames, read_categories
from calibrant.records import Missing, check_records

if TYPE_CHECKING:
    from calibrant.logs.answer import Options

DRAWN = (2, 3)  # models in one chart of reliability


@click.command(
    epilog=examples(
        "calibrant compare loans.csv -y default -p p -p p_old --measure brier",
        "calibrant compare loans.csv -y default -p p --groups month --ordered",
    )
)
@takes_clusters
@takes_censored
@rows_in
@outcome_option
@click.option(
    "--prediction",
    "-p",
    "predictions",
    type=NAME,
    required=True,
    multiple=True,
    help="Column of predicted probabilities; give it once for each model.",
)
@click.option("--weight", "-w", type=NAME, help="Column of record weights.")
@missing
@click.option(
    "--measure",
    "-m",
    type=MEASURE,
    default="atb",
    show_default=True,
    help="Measure; truthful ones rank fairly.",
)
@click.option(
    "--groups",
    type=NAME,
    metavar="COLUMN",
    help="With one column of predictions: compare these groups of different rows (sites, leagues, seasons).",
)
@click.option(
    "--ordered",
    is_flag=True,
    help="The groups have an order, so test a trend; numbers and dates have one anyway.",
)
@click.option(
    "--net-benefit",
    "thresholds",
    type=Thresholds(),
    metavar="T,T",
    help="Show the net benefit of every column at these thresholds of action, with intervals.",
)
@charts_out
@option_of(compare_models, "--draws", help="Resamples of the rows.")
@option_of(compare_models, "--confidence", help="Of the intervals.")
@seed
@as_json
def compare(
    file: FileNames, outcome: str, predictions: tuple[str, ...], weight: str | None, missing: Missing,
    measure: str, groups: str | None, ordered: bool, thresholds: list[float] | None,
    charts: tuple[str, ...], chart_text: str, draws: int, confidence: float, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Compare two or more columns of predictions in FILE row by row, or one between --groups."""
    log = chosen_log()
    if log is not None:
        _compare_logs(file, log, missing, confidence, json_)
        return
    if groups is not None:
        _refuse_measure_of_groups(predictions, groups)
        _refuse_beside_groups(thresholds, charts)
        _compare_groups(
            file, outcome, predictions[0], weight, missing, groups, ordered, draws, confidence, seed, json_
        )
        return
    refuse_typed("needs --groups", "ordered")
    check_chart_targets(charts)
    _refuse_models_to_draw(predictions, charts)
    read = _read(file, outcome, predictions, weight, missing)
    column = chosen_clusters()
    clusters = None if column is None else read_categories(file, [column])
    models = {name: read[name] for name in predictions}
    masses = read[weight] if weight else None
    result = None
    if len(predictions) == 1 and thresholds is not None:
        refuse_typed("needs two columns of predictions", "measure")
    else:
        with progress_bar("drawing outcomes") as progress:
            result = compare_models(
                read[outcome],
                models,
                sample_weight=masses,
                clusters=clusters,
                missing=missing,
                measure=measure,
                draws=draws,
                confidence=confidence,
                seed=seed,
                progress=progress,
            )
    benefits = None
    if thresholds is not None:
        benefits = net_benefits(
            read[outcome], models, thresholds=thresholds, sample_weight=masses, missing=missing,
            confidence=confidence, clusters=clusters, seed=seed,
        )  # fmt: skip
    drawn = _charts(read[outcome], models, masses, missing, confidence) if charts else {}
    check_chart_names(drawn, charts)
    write_charts(drawn, charts, chart_text)
    _show(result, benefits, json_)
    if result is not None and result.undecided and not result.real:
        sys.exit(3)


def _compare_logs(
    file: FileNames, log: tuple[str | None, Options], missing: Missing, confidence: float, json_: bool
) -> None:
    """Compare the models of several logs, each with its own correctness."""
    from calibrant.logs.evaluation import compare_logs

    refuse_typed(
        "does not apply to logs, which are compared by four scores",
        "measure", "outcome", "predictions", "weight", "groups", "ordered", "thresholds", "charts",
    )  # fmt: skip
    if chosen_clusters() is not None:
        hint = "--log-option cluster=FIELD names a field of the questions"
        raise InvalidInputError(sentence("--clusters", "does not apply to logs", hint=hint))
    tool, options = log
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = compare_logs(listed(file), tool, level=confidence, missing=missing, **asdict(options))
    for one in said:
        print_note(str(one.message))
    if json_:
        show_json(found.to_dict())
        return
    print_sentences(f"{found}\n")
    show_sheet(found.table())


def _read(
    file: FileNames, outcome: str, predictions: tuple[str, ...], weight: str | None, missing: Missing
) -> dict[str, npt.NDArray[np.float64]]:
    """Read the columns and check them here, so that errors name them."""
    for name in predictions:
        if predictions.count(name) > 1:
            rule, again = "must be a different column each time", predictions.count(name)
            raise InvalidInputError(sentence("--prediction", rule, f"got {name!r} {again} times"))
    named = [InputNames.of_columns(outcome, name, weight) for name in predictions]
    read = outcome_columns(file, [outcome, *predictions, *([weight] if weight else [])])
    for name, names in zip(predictions, named, strict=True):
        refuse_swapped(
            check_records(read[outcome], read[name], read[weight] if weight else None, missing, names), names
        )
    return read


def _charts(
    y: Any, models: dict[str, Any], masses: Any, missing: Missing, confidence: float
) -> dict[str, Any]:
    """Return what draws each chart; it is drawn when it is asked for."""
    from calibrant.report.charts import comparison, decision_curves

    def reliability() -> Any:
        forecasts = {
            name: Forecasts(y, p, sample_weight=masses, missing=missing) for name, p in models.items()
        }
        return comparison(forecasts)

    def benefit() -> Any:
        return decision_curves(
            net_benefits(y, models, sample_weight=masses, missing=missing, confidence=confidence)
        )

    return {"reliability": reliability, "net-benefit": benefit}


def _refuse_models_to_draw(predictions: tuple[str, ...], charts: tuple[str, ...]) -> None:
    if len(predictions) not in DRAWN and any(text.partition("=")[0] == "reliability" for text in charts):
        rule, got = "draws two or three columns of predictions", f"got {len(predictions)}"
        hint = "compare all without it, then draw those that matter"
        raise InvalidInputError(sentence("--chart reliability", rule, got, hint))


def _refuse_measure_of_groups(predictions: tuple[str, ...], groups: str) -> None:
    if "," in groups:
        raise InvalidInputError(sentence("--groups", "takes one column here", f"got {groups!r}", SEVERAL))
    if len(predictions) > 1:
        got = f"got {pluralize(len(predictions), 'column')}"
        raise InvalidInputError(
            sentence("--groups", "compares one column of predictions", got, "compare the models one by one")
        )
    if typed("measure"):
        rule, hint = "does not apply to --groups, which compares by the odds", "leave it out"
        raise InvalidInputError(sentence("--measure", rule, hint=hint))


def _refuse_beside_groups(thresholds: list[float] | None, charts: tuple[str, ...]) -> None:
    for name, given in (("--net-benefit", thresholds), ("--chart", charts)):
        if given:
            raise InvalidInputError(sentence(name, "does not apply to --groups", hint="leave it out"))


def _compare_groups(
    file: FileNames,
    outcome: str,
    prediction: str,
    weight: str | None,
    missing: Missing,
    groups: str,
    ordered: bool,
    draws: int,
    confidence: float,
    seed: int | None,
    json_: bool,
) -> None:
    column = chosen_clusters()
    wanted = [groups, *([column] if column else [])]
    y, p, masses, labels = read_checked(file, (outcome, prediction, weight), missing, wanted)
    if ordered:
        refuse_dates_as_text(labels[groups], groups)
    result = compare_groups(
        y,
        p,
        {groups: labels[groups]},
        sample_weight=masses,
        clusters={column: labels[column]} if column else None,
        ordered=ordered or None,
        missing=missing,
        confidence=confidence,
        draws=draws,
        seed=seed,
    )
    if json_:
        show_json(result.to_dict())
        return
    print_sentences(f"{result}\n")
    show_sheet(result.group_sheet())
    print_sentences(f"{INTERVALS_ALONE}\n")
    pairs = result.pair_sheet()
    if pairs.lines:
        show_sheet(pairs)
    if result.pairs_left_out():
        print_sentences(result.pairs_left_out())


def _show(given: Comparison | None, benefits: NetBenefits | None, json_: bool) -> None:
    if json_:
        parts = {} if benefits is None else {"net_benefit": benefits.to_dict()}
        show_json({**(given.to_dict() if given else {"sentence": str(benefits)}), **parts})
        return
    if given is not None:
        print_sentences(f"{given}\n")
        for sheet in (given.model_sheet(), given.pair_sheet()):
            show_sheet(sheet)
    if benefits is not None:
        print_sentences(f"{benefits}\n")
        show_sheet(benefits.sheet())
        if benefits.differences:
            show_sheet(benefits.difference_sheet())
